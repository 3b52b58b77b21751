"""Adds rows whose keys the table does not have; rows that are there stay as they are."""

from __future__ import annotations

from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import NTH
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import Target, by_key, events, ranges
from framework.core.staging.merge import inserts, merge
from framework.documents.write_mode import WriteMode


def stage(to: Target, frame: Frame) -> Counted:
    with cached_frame(by_key.newest_per_key(events.of(to, frame), to.keyed, NTH)) as rows:
        near = ranges.scan_keys(to, rows, to.keyed.keys).near
        counted = to.counted(frame)
        met = by_key.same(to.keyed, "s", "t") + (f" AND {near.sql}" if near.sql else "")
        merge(to, rows, near, lambda view: [f"MERGE INTO {to.own} t USING {view} s ON {met}", inserts(to, "false")])
    return counted


MODE = WriteMode(stage, does="adds rows of keys that the table does not have", by_key=True, changes={"inserted": "inserted"})
