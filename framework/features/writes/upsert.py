"""One row per key: a batch is reduced to the newest row of each, which goes into the table unless what is there is newer.

Guarantee: the same rows come out of the same messages in any order and in any batches, as long as a deleted key is remembered.
Cost: a sort of the batch by its keys; of the table only files are read whose bounds hold a key of the batch. Rows that change are
marked in deletion vectors (position deletes in format 2), and no file is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import DELETE, NTH
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import Target, by_key, deletes, events, ranges, rising
from framework.core.staging.merge import inserts, merge, sources
from framework.core.staging.ranges import Near
from framework.documents.write_mode import WriteMode
from framework.sql import unsent
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def stage(to: Target, frame: Frame) -> Counted:
    keyed = to.keyed
    batch = events.batch_rows(to, frame)
    with ExitStack() as stack:
        clears = False
        if keyed.truncates:
            stack.enter_context(cached_frame(batch))
            clears = events.clears(batch)
        spread = events.spread(to, batch) if clears else batch
        newest_rows = _newest_per_key(to, rising.risen(spread, keyed))
        stack.enter_context(cached_frame(newest_rows))
        scan = ranges.Scan(1, Near("", False), several=True) if clears else ranges.scan_keys(to, newest_rows, keyed.keys)
        counted = to.counted(frame)
        if counted.unknown_schemas:
            return counted
        deleted = scan.deleted
        if scan.several:  # which one is the newest can depend on the times of earlier batches
            newest_rows = _newest_per_key(to, rising.beside_stored(to, spread, scan))
            stack.enter_context(cached_frame(newest_rows))
            deleted = newest_rows.where(DELETE).count()
        elif to.replays or rising.is_before_stored(to, newest_rows, scan):
            newest_rows = rising.beside_stored(to, newest_rows, scan)
        new = deletes.without_late(to, newest_rows, scan.near.sql)
        merge(to, new, scan.near, lambda view: _statement(to, view, scan.near.sql))
        if deleted or clears:
            deletes.remember(to, events.without_spread(newest_rows, batch, keyed) if clears else newest_rows.where(DELETE))
    return counted


def _newest_per_key(to: Target, rows: DataFrame) -> DataFrame:
    rows = rising.with_several(to, events.filled(rows, to.keyed))
    return by_key.newest_per_key(rows, to.keyed, NTH)


def _statement(to: Target, view: str, near: str) -> Iterator[str]:
    keyed = to.keyed
    changed = sources(to)
    for name, marked in keyed.unsent:
        changed[identifier(name)] = (
            f"IF({unsent.holds(marked, f's.{identifier(name)}')}, t.{identifier(name)}, s.{identifier(name)})"
        )
    time = {rising.TIME: rising.merged_time(keyed, "s", "t")} if keyed.partition else {}
    not_older = f"{by_key.moment(keyed, 's.', time)} >= {by_key.moment(keyed, 't.')}"  # equal: the same message, read again
    changed.update({identifier(name): sql for name, sql in time.items()})
    yield f"MERGE INTO {to.attempt_branch} t USING {view} s ON {by_key.same(keyed, 's', 't')}{f' AND {near}' if near else ''}"
    if keyed.deletes:
        yield f"WHEN MATCHED AND s.{DELETE} AND {not_older} THEN DELETE"
    yield f"WHEN MATCHED AND {not_older} THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in changed.items())}"
    yield inserts(to, f"s.{DELETE}")


MODE = WriteMode(
    stage,
    does="keeps the newest row of each key",
    by_key=True,
    changes={"inserted": "inserted", "updated": "matched-updated", "deleted": "matched-deleted"},
)
