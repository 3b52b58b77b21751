"""One row per key: a batch is reduced to the newest row of each key, which goes into the table unless the table has a newer one.

Guarantee: the same rows come out of the same messages in any order and in any batches, as long as a deleted key is remembered.
Cost: a sort of the batch by its keys; of the table only files are read whose bounds hold a key of the batch. Rows that change are
marked in deletion vectors (position deletes in format 2); in format 3, files of which no row is left are removed. No file is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import DELETE, NTH
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import StagingTarget, by_key, deletes, events, hashes, ranges, rising
from framework.core.staging.merge import inserts, merge, sources
from framework.core.staging.ranges import KeyRange
from framework.documents.write_mode import WriteMode
from framework.sql import unsent
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage(target: StagingTarget, frame: Frame) -> BatchCounts:
    keyed = target.keyed
    batch = events.batch_rows(target, frame)
    with ExitStack() as stack:
        has_truncate = False
        if keyed.truncates:
            stack.enter_context(cached_frame(batch))
            has_truncate = events.clears(batch)
        spread = events.spread(target, batch) if has_truncate else batch
        newest_rows = _newest_per_key(target, rising.risen(spread, keyed))
        stack.enter_context(cached_frame(newest_rows))
        scan = (
            ranges.Scan(1, KeyRange("", False), several=True)
            if has_truncate
            else ranges.scan_keys(target, newest_rows, keyed.keys)
        )
        counted = target.counted(frame)
        if counted.unknown_schemas:
            return counted
        if not has_truncate:
            scan = replace(scan, near=hashes.narrowed(target, scan.near, newest_rows, keyed.keys, stack))
        deleted = scan.deleted
        if scan.several:  # which one is the newest can depend on the times of earlier batches
            newest_rows = _newest_per_key(target, rising.beside_stored(target, spread, scan))
            stack.enter_context(cached_frame(newest_rows))
            deleted = newest_rows.where(DELETE).count()
        elif target.replays or rising.is_before_stored(target, newest_rows, scan):
            newest_rows = rising.beside_stored(target, newest_rows, scan)
        new_rows = deletes.without_late(target, newest_rows, scan.near.sql)
        merge(target, new_rows, scan.near, lambda view: _statement(target, view, scan.near.sql))
        if deleted or has_truncate:
            deletes.remember(
                target, events.without_spread(newest_rows, batch, keyed) if has_truncate else newest_rows.where(DELETE)
            )
    return counted


def _newest_per_key(target: StagingTarget, rows: DataFrame) -> DataFrame:
    rows = rising.with_several(target, events.filled(rows, target.keyed))
    return by_key.newest_per_key(rows, target.keyed, NTH)


def _statement(target: StagingTarget, view: str, near: str) -> Iterator[str]:
    keyed = target.keyed
    values = sources(target)
    for name, marked in keyed.unsent:
        values[identifier(name)] = (
            f"IF({unsent.holds(marked, f's.{identifier(name)}')}, t.{identifier(name)}, s.{identifier(name)})"
        )
    time_sql = {rising.TIME: rising.merged_time(keyed, "s", "t")} if keyed.partition else {}
    not_older = f"{by_key.moment(keyed, 's.', time_sql)} >= {by_key.moment(keyed, 't.')}"  # equal: the same message, read again
    values.update({identifier(name): sql for name, sql in time_sql.items()})
    yield f"MERGE INTO {target.attempt_branch} t USING {view} s ON {by_key.same(keyed, 's', 't')}{f' AND {near}' if near else ''}"
    if keyed.deletes:
        yield f"WHEN MATCHED AND s.{DELETE} AND {not_older} THEN DELETE"
    yield f"WHEN MATCHED AND {not_older} THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in values.items())}"
    yield inserts(target, f"s.{DELETE}")


MODE = WriteMode(
    stage,
    does="keeps the newest row of each key",
    by_key=True,
    changes={"inserted": "inserted", "updated": "matched-updated", "deleted": "matched-deleted"},
)
