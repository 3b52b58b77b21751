"""Forgets a person, in an order in which each step can be repeated after a death. A step is reported only once it is done.

Guarantee: afterwards no file that the table names has a row of the key, none of its bad rows mentions it, and no batch brings a row back. A
bad message that is read again becomes a bad row again.
Cost: files with rows that were ever deleted or changed are written again, and all older snapshots go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from framework.base import amounts
from framework.base.errors import RefusedError, SluiceError, visible
from framework.core.context.context import Context
from framework.core.iceberg import deletable_files, metadata
from framework.core.iceberg.commit import RETRY_HINT
from framework.core.iceberg.jvm_state import at_work, state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.second_identity import second_pipeline
from framework.core.publish import side_tables
from framework.core.publish.sweep import sweep
from framework.core.rules import attempts, refusals
from framework.core.rules.protocol import Standing, TableState, standing
from framework.features.export import rewriting
from framework.operations.forget import bad_rows, elsewhere, keys, rows, snapshots
from framework.operations.forget.expiring import Deleted
from framework.operations.forget.keys import PersonKey
from framework.plan import Pipeline

KILL_POINTS = (
    "remembered",  # no batch adds rows of the key any more
    "deleted",  # its rows are gone from the newest snapshot
    "rewritten",  # its rows are gone from all files of that snapshot
    "ended",  # the position belongs to a commit without them
    "deleted_bad_rows",
    "expired",  # older snapshots and their files are gone
)


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """The effects of forgetting a key."""

    key: PersonKey
    rows: int
    bad_rows: int
    snapshots: int  # older ones, which expire
    pins: tuple[str, ...]  # of the table and its bad rows
    diverged: Mapping[str, int]  # the commits that pins have and main does not
    exports: tuple[str, ...]  # files that are written again


def judged(context: Context, pipeline: Pipeline, values: Mapping[str, str]) -> Meaning:
    """The effects of forgetting the key with these values. Changes nothing."""
    lake = context.lake(pipeline)
    _opened(lake, pipeline)
    context.provide_keys(pipeline)
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    bad_table = metadata.read(pipeline.table.catalog, pipeline.table.bad_rows)
    tables = [table, *([bad_table] if bad_table else [])]
    key = keys.read_key(context, pipeline, values)
    return Meaning(
        key=key,
        rows=rows.count(lake, pipeline, key),
        bad_rows=bad_rows.count(context, lake, pipeline, key),
        snapshots=len(table.snapshots) - 1,
        pins=tuple(dict.fromkeys(name for table in tables for name in snapshots.pins(table, pipeline))),
        diverged={name: count for table in reversed(tables) for name, count in table.diverged.items()},
        exports=tuple(record.file for _, record in rewriting.written(context.plan, pipeline)),
    )


def forget(context: Context, pipeline: Pipeline, key: PersonKey) -> Iterator[str]:
    """Forgets the key. Yields a line after each step, and then the places where the person may still be."""
    deletable_files.require_right(pipeline)
    lake = context.lake(pipeline)
    _opened(lake, pipeline)
    rows.remember(lake, pipeline.table.identifier, key)
    context.reached("remembered")
    _refuse_rebuild(lake, pipeline)
    sweep(lake, pipeline)
    row_count = rows.delete(context, lake, pipeline, key)
    end_snapshot = rows.end(context, lake, pipeline)
    context.reached("ended")
    yield f"{amounts.counted(row_count, 'row')} of {pipeline.table.identifier} {'is' if row_count == 1 else 'are'} gone"
    attempt = _roll_forward(lake, pipeline)
    bad_row_count = bad_rows.delete(context, lake, pipeline, key)
    context.reached("deleted_bad_rows")
    yield f"{amounts.counted(bad_row_count, 'bad row')} of {pipeline.table.bad_rows} {'is' if bad_row_count == 1 else 'are'} gone"
    yield from snapshots.catch_up(context, lake, pipeline, end_snapshot)
    snapshots.refuse_readers_behind(context.plan.pipelines, pipeline, end_snapshot)
    _refuse_running(lake, pipeline)
    sweep(lake, pipeline)
    if (latest_attempt := _roll_forward(lake, pipeline)) != attempt:  # a batch was published meanwhile, with bad rows of its own
        bad_rows.delete(context, lake, pipeline, key)
    results = [
        snapshots.expire_older(
            lake, pipeline, pipeline.table.identifier, end_snapshot, latest_attempt, partial(rows.holds, lake, pipeline, key)
        ),
        snapshots.expire_older(lake, pipeline, pipeline.table.bad_rows, None, latest_attempt),
    ]
    context.reached("expired")
    yield f"older snapshots are gone, with {amounts.counted(sum(result.files.files for result in results), 'file')}"
    yield from (f"`{visible(name)}`, which kept an older snapshot, is gone" for result in results for name in result.pins)
    yield from _exported(context, pipeline, key)
    _refuse_left(pipeline, [result.files for result in results])


def _roll_forward(lake: TableStore, pipeline: Pipeline) -> str:
    """Publishes the bad rows of the last batch, and returns its attempt."""
    current = _opened(lake, pipeline)
    assert current.position is not None
    side_tables.roll_forward(lake, pipeline, current.uuid, current.position)
    return current.position.attempt


def _refuse_left(pipeline: Pipeline, deletions: list[Deleted]) -> None:
    if remaining_count := sum(deletion.remaining for deletion in deletions):
        names = ", ".join(name for deletion in deletions for name in deletion.named_by) or "nothing in the tables' folders"
        files = amounts.counted(remaining_count, "file")
        message = f"{files} of older snapshots of {pipeline.table.identifier} could not be deleted; named by {names}"
        hint = "if no other catalog or reader needs what names them, delete that; then give the same command again"
        raise SluiceError("named-by-others", message, hint)


def _opened(lake: TableStore, pipeline: Pipeline) -> TableState:
    """The table's state. Refuses a table that does not match its position."""
    table = lake.load(pipeline.table.identifier)
    current = state(table) if table is not None else None
    if current is None or current.position is None:
        raise refusals.no_table(pipeline)
    refusals.check_owner(pipeline, current)
    if standing(current) is Standing.ROLLED_BACK:
        message = f"another program rolled {pipeline.table.identifier} back, and its position is of rows that it does not have"
        raise RefusedError("rolled-back", message, f"`sluice run {pipeline.name}` says what to do; then forget")
    return current


def _refuse_rebuild(lake: TableStore, pipeline: Pipeline) -> None:
    """Refuses while a rebuild is under way that began earlier. A later one knows the key."""
    second = second_pipeline(pipeline).table.identifier
    if lake.find(second) is not None:
        hint = f"`sluice rebuild {pipeline.name}` ends it; then give the same command again"
        raise SluiceError(
            "rebuild-under-way", f"a rebuild of {pipeline.table.identifier} has begun, and {second} has its rows", hint
        )


def _refuse_running(lake: TableStore, pipeline: Pipeline) -> None:
    tables = [lake.load(pipeline.table.identifier), *(lake.find(side.identifier) for side in pipeline.table.side_tables)]
    if not all(map(attempts.is_dead, (name for table in tables if table is not None for name in at_work(table)))):
        hint = f"`sluice pause {pipeline.name}`, and {RETRY_HINT}"
        raise SluiceError("run-under-way", f"a batch is being written to {pipeline.table.identifier}", hint)


def _exported(context: Context, pipeline: Pipeline, key: PersonKey) -> Iterator[str]:
    failures = []
    for export, record in rewriting.written(context.plan, pipeline):
        try:
            result = rewriting.write_again(context.plan, export, record, datetime.now(timezone.utc))
            if result is None:
                continue
        except SluiceError as error:
            failures.append(f"{record.file} ({error.message})")
            continue
        yield f"{record.file} is written again: {amounts.counted(result.record.rows, 'row')}, {record.rows:,} before"
    yield "where the person may still be:"
    yield from (f"  {line}" for line in elsewhere.places(context.plan, pipeline, key))
    if failures:
        message = f"these files may have the person, and could not be written again: {'; '.join(failures)}"
        raise SluiceError("not-exported-again", message, "correct that, and give the same command again; or delete them")
