"""The second table of a rebuild, next to the pipeline's own: created, resumed after a death, and deleted.

Guarantee: files that the pipeline's own table took over are never deleted with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework.base.errors import BatchError, RefusedError, SluiceError, Transient
from framework.core.context.context import Context
from framework.core.iceberg import replaced_table, table_state
from framework.core.iceberg.jvm_state import at_work, state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.second_identity import GOING, refuse_changes, second_pipeline
from framework.core.publish.tables import LAYOUT, write_properties
from framework.core.rules import attempts, forgotten, protocol, refusals
from framework.core.rules.protocol import Partition, TopicState
from framework.core.sources import commits
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.operations.drop import drop
from framework.plan import Pipeline
from framework.plan.change import Change, changes, renamed_columns
from framework.systems.catalogs import TableFiles


def find_resumable(lake: TableStore, pipeline: Pipeline, own_table: Any, topic_state: TopicState) -> Any | None:
    """The second table of an interrupted rebuild that can be resumed. Any other leftover is deleted."""
    second = second_pipeline(pipeline)
    table = lake.find(second.table.identifier)
    if table is None:
        return None
    owner = table.properties().get(protocol.OWNER)
    if not refusals.is_ours(pipeline, owner):
        message = (
            f"the table {second.table.identifier} exists and no rebuild of this pipeline created it; a rebuild needs that name"
        )
        raise RefusedError("table-not-ours", message, "rename or drop that table")
    if _is_resumable(lake, pipeline, own_table, table, topic_state):
        return table
    _throw_away(lake, pipeline, table)
    return None


def create_second(
    context: Context,
    lake: TableStore,
    pipeline: Pipeline,
    own_table: Any,
    starts: Mapping[Partition, int],
    accepted: Mapping[Partition, int],
) -> None:
    """Creates the second table, with the position from which it is filled."""
    topic_state = context.source(pipeline).topic_state()
    position = replace(protocol.born(topic_state, starts, pipeline.spec), accepted=accepted)
    properties = {
        **LAYOUT,
        **write_properties(pipeline),
        protocol.OWNER: refusals.owner(pipeline),
        protocol.OF: str(own_table.uuid()),
    }
    accepted_changes = own_table.properties().get(protocol.ACCEPTED)
    if accepted_changes is not None:
        properties[protocol.ACCEPTED] = accepted_changes
    rebuild_changes = wanted_changes(lake, pipeline, own_table)
    properties |= forgotten_keys(own_table, rebuild_changes)
    identifier = second_pipeline(pipeline).table.identifier
    try:
        replaced_table.create_second_table(lake, own_table, identifier, rebuild_changes, pipeline.table, properties, position)
    except (CommitRefused, CommitUnknown) as error:
        raise BatchError("table-not-created", f"the table {identifier} could not be created: {error}", "run again") from None


def wanted_changes(lake: TableStore, pipeline: Pipeline, own_table: Any) -> tuple[Change, ...]:
    """The changes that the rebuild makes in the table. Raises an error for changes that are not allowed or not possible."""
    spec_changes = changes(pipeline, lake.existing(own_table))
    refuse_changes(pipeline, spec_changes)
    return spec_changes


def forgotten_keys(own_table: Any, changes: Sequence[Change]) -> dict[str, str]:
    """The property with the keys that were forgotten in the pipeline's own table, after these changes."""
    return forgotten.after_renaming(own_table.properties(), renamed_columns(changes))


def knows_forgotten(own_table: Any, changes: Sequence[Change], second: Any) -> bool:
    """Whether nothing was forgotten in the pipeline's own table since the second one began."""
    return bool(second.properties().get(forgotten.PROPERTY) == forgotten_keys(own_table, changes).get(forgotten.PROPERTY))


def was_swapped_in(own_table: Any, table: Any) -> bool:
    """Whether the pipeline's own table has taken this one's files."""
    return bool(own_table.properties().get(protocol.REBUILT) == str(table.uuid()))


def _throw_away(lake: TableStore, pipeline: Pipeline, table: Any) -> None:
    """Deletes the table and its rows' files, unless these may belong to another table. A publishing run first creates a branch in it
    and then checks for the mark: so either that run sees the mark, or this one sees the branch."""
    second = second_pipeline(pipeline).table
    try:
        commit = lake.begin(table)
        if not all(map(attempts.is_dead, at_work(commit.table))):
            hint = "another rebuild is running: wait for it, or stop it"
            raise SluiceError("run-under-way", f"a batch is being written to {second.identifier}", hint)
        lake.mark_as_seen(commit, {GOING: "true"})
    except (CommitRefused, CommitUnknown) as error:
        raise _not_dropped(pipeline, error) from None
    own_table = lake.load(pipeline.table.identifier)  # after the mark: from now on no rebuild takes over the files
    owner_uuid = table.properties().get(protocol.OF)
    delete_second(
        lake,
        pipeline,
        data=own_table is not None
        and (owner_uuid is None or (owner_uuid == str(own_table.uuid()) and not was_swapped_in(own_table, table))),
    )


def delete_second(lake: TableStore, pipeline: Pipeline, data: bool) -> None:
    """Deletes the second table. Its side tables are deleted first, so that the mark identifies the tables that remain."""
    second = second_pipeline(pipeline).table
    table = lake.load(second.identifier)
    if table is None:
        return
    try:
        lake.mark(table, {GOING: "true"})
        own_table = lake.load(pipeline.table.identifier)
        row_folders = (str(own_table.location()),) if data and own_table is not None else ()
        side_names = [side.identifier for side in second.side_tables]
        for identifier in (*side_names, second.identifier):
            current = table_state.table(second.catalog, identifier)
            if current is not None:
                is_side = identifier in side_names
                files, _ = drop.files_of(second.catalog, current, () if is_side else row_folders, rows=data or is_side)
                file_store = lake.component.files_of(identifier)
                if not is_side:
                    files = (*files, *_left_by_attempts(file_store, current.metadata.location))
                lake.drop(identifier)
                file_store.delete(files, current.metadata.location)
    except (CommitRefused, CommitUnknown) as error:
        raise _not_dropped(pipeline, error) from None


def _left_by_attempts(file_store: TableFiles, location: str) -> Sequence[str]:
    """The files in the metadata folder of the second table. That folder is its alone, and no snapshot names those of a batch that died
    before it was published."""
    metadata_files = (file for folder in file_store.folders(f"{location}/metadata") for file in file_store.older(folder))
    return file_store.split_deletable(metadata_files, file_store.folders(location))[0]


def _not_dropped(pipeline: Pipeline, error: Exception) -> BatchError:
    message = f"the catalog did not drop {second_pipeline(pipeline).table.identifier}: {error}"
    return Transient("table-busy", message, f"`sluice rebuild {pipeline.name}` tries again")


def _is_resumable(lake: TableStore, pipeline: Pipeline, own_table: Any, table: Any, topic_state: TopicState) -> bool:
    if (
        table.properties().get(protocol.OF) != str(own_table.uuid())
        or was_swapped_in(own_table, table)
        or table.currentSnapshot() is None
    ):
        return False
    if table.properties().containsKey(GOING):
        return False
    second_state, second = state(table), second_pipeline(pipeline)
    if second_state.position is None or second_state.position.spec != pipeline.spec:
        return False
    if not pipeline.computes_all and commits.expired(pipeline, second_state.position.ends):
        return False
    if any(change.kind != "narrow" or not change.allowed for change in changes(second, lake.existing(table))):
        return False
    try:
        refusals.check(second, second_state, topic_state)
        rebuild_changes = wanted_changes(lake, pipeline, own_table)
        return knows_forgotten(own_table, rebuild_changes, table) and replaced_table.can_swap(
            lake, own_table, rebuild_changes, pipeline.table, table
        )
    except (RefusedError, CommitRefused, CommitUnknown):
        return False
