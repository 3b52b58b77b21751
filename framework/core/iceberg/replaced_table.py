"""The Iceberg side of a rebuild: creates the second table, and swaps it into the first by one commit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework.core.iceberg import evolve, state_branches
from framework.core.iceberg.lake import TableStore, begin_table
from framework.core.iceberg.updates import Commit
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.core.spark.java_errors import CommitRefused, commit_answers
from framework.plan import State, Table
from framework.plan.change import Change


def create_second_table(
    lake: TableStore,
    main: Any,
    identifier: str,
    changes: Sequence[Change],
    planned: Table,
    properties: Mapping[str, str],
    start_position: Position,
) -> None:
    """Creates a second table without rows, with the first one's columns after these changes: the ids of columns and partitions are
    the same, so that its files can become the first's. They are written to the first's folder."""
    metadata = json.loads(lake.iceberg.TableMetadataParser.toJson(main.operations().current()))
    table_uuid = str(uuid.uuid4())
    location = f"{metadata['location']}__{table_uuid[:8]}"  # a new folder, even if an earlier rebuild left files
    reset_fields = {
        "table-uuid": table_uuid, "location": location, "last-sequence-number": 0, "current-snapshot-id": -1, "next-row-id": 0, "refs": {},
        **{key: [] for key in ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics")},
        "properties": {**properties, "write.data.path": f"{metadata['location'].rstrip('/')}/data"},
    }  # fmt: skip
    second_metadata = lake.iceberg.TableMetadataParser.fromJson(json.dumps({**metadata, **reset_fields}))
    file = f"{location}/metadata/00000-{table_uuid}.metadata.json"
    with commit_answers():
        lake.iceberg.TableMetadataParser.write(second_metadata, main.io().newOutputFile(file))
        table = lake.catalog.registerTable(lake.parsed(identifier), file)
        commit = lake.begin(table)
        evolve.evolve(lake.apache, commit.transaction, changes, planned, replaced=True)

    def describe(snapshot: int, sequence: int) -> dict[str, str]:
        return {protocol.POSITION: replace(start_position, snapshot=snapshot, sequence=sequence).text()}

    begin_table(commit, describe, start_position, bool(planned.states))
    commit.make()


def can_swap(lake: TableStore, main: Any, changes: Sequence[Change], planned: Table, second: Any) -> bool:
    """Whether the second table still equals the first one after these changes, so that its files can become the first's."""
    trial = lake.begin(main)
    with commit_answers():
        evolve.evolve(lake.apache, trial.transaction, changes, planned, replaced=True)
        has_deletes = not planned.rows_change and not second.currentSnapshot().deleteManifests(second.io()).isEmpty()
        return _alike(trial.table, second) and not has_deletes


def swap_in(
    lake: TableStore, commit: Commit, changes: Sequence[Change], planned: Table, second: Any, snapshot: int, position: Position,
    properties: Mapping[str, str],
) -> int:  # fmt: skip
    """Makes the table equal to a snapshot of the second one: columns, partitions, order, files, position and tag, in one commit.
    Returns the new snapshot. *Cost*: reads the metadata of each file."""
    with commit_answers():
        before = _Former(commit.table, planned)
        evolve.evolve(lake.apache, commit.transaction, changes, planned, replaced=True)
        if not _alike(commit.table, second):
            raise CommitRefused("the table's columns have changed")
        # A snapshot of its own inside the same commit: the deleted files are partitioned by columns that may be gone, which
        # DuckDB cannot read in the newest snapshot.
        everything = lake.iceberg.expressions.Expressions.alwaysTrue()
        commit.delete_rows(everything, {protocol.REBUILT: str(second.uuid())})
        empty_snapshot = commit.main
        if planned.states or before.has_states:
            _replace_state(lake, commit, planned, before, second)
        deletes = lake.files(second, snapshot, deletes=True)
        commit.add_rows(lake.files(second, snapshot), deletes, empty_snapshot, {protocol.POSITION: position.short_text()})
        new_snapshot = commit.table.currentSnapshot()
        position = replace(position, snapshot=new_snapshot.snapshotId(), sequence=new_snapshot.sequenceNumber())
        commit.set({protocol.POSITION: position.text(), **properties})
        with commit.references() as references:
            references.tag(protocol.TAG, position.snapshot)
        commit.remove_own(protocol.BRANCH + position.attempt, empty_snapshot)
        commit.publish()
        return position.snapshot


class _Former:
    """The table as it was, as far as it counts later: what a commit shows of it changes with each update."""

    def __init__(self, table: Any, planned: Table) -> None:
        self.has_states = bool(table.refs().containsKey(protocol.EMPTY))
        self.branches = state_branches.branches(table)
        self.words = table.properties().get(protocol.WRITE)
        self.ids = {name: _id_of(table, name) for state in planned.states for name in state.columns}


def _id_of(table: Any, column: str) -> int | None:
    field = table.schema().findField(column)
    return None if field is None else int(field.fieldId())


def _replace_state(lake: TableStore, commit: Commit, planned: Table, before: _Former, second: Any) -> None:
    """Replaces the state by the second table's. State that outlives a rebuild, with the same meaning, is added to instead. The table
    is empty at this moment."""
    empty = commit.main
    staying_states = [state.name for state in planned.states if _stays(state, before, commit.table, second)]
    beginnings = tuple(protocol.state_branch(name, "") for name in staying_states)
    with commit.references() as references:
        if planned.states:
            references.tag(protocol.EMPTY, empty)
        else:
            references.untag(protocol.EMPTY)
        references.remove(*(branch for branch in before.branches if not branch.startswith(beginnings)))
    for branch in state_branches.branches(second):
        if not commit.table.refs().containsKey(branch):
            with commit.references() as references:
                references.branch(branch, empty)
        commit.append({}, branch, lake.files(second, second.snapshot(branch).snapshotId()))


def _stays(state: State, before: _Former, after: Any, second: Any) -> bool:
    """Whether the state's rows mean the same `before` and `after`: the columns are the same, also to Iceberg."""
    if not state.outlives_rebuild or before.words != second.properties().get(protocol.WRITE):
        return False
    return all(before.ids[name] is not None and before.ids[name] == _id_of(after, name) for name in state.columns)


def _alike(table: Any, other_table: Any) -> bool:
    same_schema = table.schema().asStruct().equals(other_table.schema().asStruct())
    return bool(same_schema and table.spec().equals(other_table.spec()) and table.sortOrder().equals(other_table.sortOrder()))
