"""Deletion of the rows of forgotten keys: from the table, from the state of its pipeline, and from the files that stay.

Guarantee: after the first commit no batch adds a row of the key, not even one that was staged before. Each step can be repeated.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, moves, removal, state_branches
from framework.core.iceberg.commit import again
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.main_line import main_line
from framework.core.maintain.compact import compact
from framework.core.maintain.due import Due
from framework.core.rules import attempts, forgotten, protocol
from framework.core.rules.forgotten import DELETING, FORGETS, PROPERTY, Forgotten
from framework.core.spark.java_errors import CommitRefused, CommitUnknown, commit_answers
from framework.operations.forget.keys import PersonKey
from framework.plan import Pipeline
from framework.sql.quote import identifier

_SUMMARY = f"spark.sql.iceberg.snapshot-property.{FORGETS}"
_REWRITES = {"write.delete.mode": "copy-on-write"}  # a deleted row is in no file any more


def condition(table: Any, key: PersonKey) -> str:
    """SQL that says whether a row has the key. It contains hashes, and no value of the key."""
    forgotten_keys = forgotten.read(table.properties()) or Forgotten()
    return forgotten_keys.is_one_of(key.columns, [forgotten_keys.hash(combination) for combination in key.combinations])


def remember(lake: TableStore, name: str, key: PersonKey) -> None:
    """Adds the key to those whose rows no batch adds again. This moves main, so that a running batch is staged again."""

    def once() -> None:
        commit = lake.begin(lake.load(name))
        before = forgotten.read(commit.table.properties()) or Forgotten()
        after = before.and_also(key.columns, key.combinations)
        if after != before:
            lake.mark_by_commit(commit, {PROPERTY: after.text(), **_REWRITES}, {FORGETS: "remembered"})

    again(name, once)


def count(lake: TableStore, pipeline: Pipeline, key: PersonKey) -> int:
    """The number of the table's rows with the key."""
    return int(_rows(lake, pipeline, "main").where(condition(_table(lake, pipeline), key)).count())


def holds(lake: TableStore, pipeline: Pipeline, key: PersonKey, branch: str) -> bool:
    """Whether a branch of another program has rows with the key."""
    return not _rows(lake, pipeline, branch).where(condition(_table(lake, pipeline), key)).isEmpty()


def delete(context: Context, lake: TableStore, pipeline: Pipeline, key: PersonKey) -> int:
    """Deletes rows and state of the key, and returns the number of rows. Its first commit invalidates the end of an earlier `forget`."""
    name = pipeline.table.identifier
    key_condition = condition(_table(lake, pipeline), key)
    rows = count(lake, pipeline, key)
    states = [
        branch
        for branch in state_branches.branches(_table(lake, pipeline))
        if not _rows(lake, pipeline, branch).where(key_condition).isEmpty()
    ]
    if rows or states:
        again(name, lambda: lake.mark_by_commit(lake.begin(_table(lake, pipeline)), {}, {FORGETS: DELETING}))
    if rows:
        again(name, lambda: _delete(lake, f"DELETE FROM {_name(pipeline)} WHERE {key_condition}"))
    context.reached("deleted")
    for branch in states:
        again(name, partial(_write_state, lake, pipeline, branch, key_condition))
    return rows


def _delete(lake: TableStore, statement: str) -> None:
    """Runs a DELETE whose commit says in its summary that it is Sluice's."""
    lake.spark.conf.set(_SUMMARY, DELETING)
    try:
        with commit_answers():
            lake.spark.sql(statement)
    finally:
        lake.spark.conf.unset(_SUMMARY)


def _write_state(lake: TableStore, pipeline: Pipeline, branch: str, key_condition: str) -> None:
    """Writes the files of a branch again, without the key; refused if a batch adds to it meanwhile."""
    from pyspark.sql import functions

    with attempts.attempt() as attempt:
        table = _table(lake, pipeline)
        lake.branch(table, attempt, table.currentSnapshot().snapshotId())
        state_branches.begin(lake, table, attempt, branch)
        rows = _rows(lake, pipeline, branch).where(f"NOT ({key_condition})").coalesce(1)
        writer = rows.writeTo(f"{_name(pipeline)}.{identifier(f'branch_{protocol.staged_state(branch, attempt)}')}")
        with commit_answers():
            writer.option(f"snapshot-property.{protocol.ATTEMPT}", attempt).overwrite(functions.lit(True))
        try:
            moves.replace_state(lake.begin(_table(lake, pipeline)), branch, attempt)
        except (CommitRefused, CommitUnknown):
            removal.sweep(lake, _table(lake, pipeline), attempt)
            raise
        attempts.forget(attempt)


def end(context: Context, lake: TableStore, pipeline: Pipeline) -> int:
    """Rewrites all files and manifests that have a deleted row, ends with a commit, and returns its snapshot."""
    name = pipeline.table.identifier
    digest = hashlib.sha256(_table(lake, pipeline).properties()[PROPERTY].encode()).hexdigest()[:16]
    if _ended(lake, pipeline, digest) is None:
        again(name, lambda: _rewrite(lake, pipeline))
        context.reached("rewritten")
        again(name, lambda: moves.renew_empty(lake, _table(lake, pipeline)))
        again(name, lambda: _commit_end(lake, pipeline, digest))
    end_snapshot = _ended(lake, pipeline, digest)
    if end_snapshot is None:
        raise SluiceError("table-busy", f"another person is forgotten in {name} at once", "give the same command again")
    again(name, lambda: _settle(lake, pipeline, end_snapshot))
    return int(end_snapshot.snapshotId())


def _commit_end(lake: TableStore, pipeline: Pipeline, digest: str) -> None:
    """Makes the last commit, with the position in its summary, so that a later rollback finds one."""
    commit = lake.begin(_table(lake, pipeline))
    position = state(commit.table).position
    position_entry = {protocol.POSITION: position.short_text()} if position is not None else {}
    lake.mark_by_commit(commit, {}, {FORGETS: digest, **position_entry})


def _rewrite(lake: TableStore, pipeline: Pipeline) -> None:
    summary = _table(lake, pipeline).currentSnapshot().summary()
    if any(int(summary.get(f"total-{kind}-deletes") or 0) for kind in ("position", "equality")):
        compact(lake, pipeline, Due(identifier=pipeline.table.identifier, compact=True, why=""), None, every_delete=True)
    without_deleted(lake, _table(lake, pipeline))


def without_deleted(lake: TableStore, table: Any) -> None:
    """Rewrites manifests that name deleted files, since they have the least and the greatest values of each."""
    with commit_answers():
        lake.spark._jvm.sluice.Manifests.withoutDeleted(table)


def _ended(lake: TableStore, pipeline: Pipeline, digest: str) -> Any | None:
    """The newest commit of `forget`, if it is the last one for these keys."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    forgets = (snapshot for snapshot in main_line(table) if FORGETS in metadata.summary(snapshot)) if table else iter(())
    last_snapshot = next(forgets, None)
    if last_snapshot is None or metadata.summary(last_snapshot)[FORGETS] != digest:
        return None
    return _table(lake, pipeline).snapshot(last_snapshot["snapshot-id"])


def _settle(lake: TableStore, pipeline: Pipeline, end_snapshot: Any) -> None:
    """Moves the position to the last commit of `forget`, unless a batch was published since."""
    commit = lake.begin(_table(lake, pipeline))
    position = state(commit.table).position
    if (
        position is not None and position.sequence < end_snapshot.sequenceNumber()
    ):  # main was not rolled back: that was checked earlier
        end_position = replace(position, snapshot=end_snapshot.snapshotId(), sequence=end_snapshot.sequenceNumber())
        moves.move_position(commit, end_position)


def _table(lake: TableStore, pipeline: Pipeline) -> Any:
    table = lake.load(pipeline.table.identifier)
    if table is None:
        raise CommitRefused(f"the table {pipeline.table.identifier} is gone")
    return table


def _rows(lake: TableStore, pipeline: Pipeline, branch: str) -> Any:
    return lake.spark.table(f"{_name(pipeline)}.{identifier(f'branch_{branch}')}")


def _name(pipeline: Pipeline) -> str:
    return identifier(pipeline.table.catalog.name, *pipeline.table.identifier.split("."))
