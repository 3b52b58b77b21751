"""Adds rows whose keys the table does not have; rows that are there stay as they are."""

from __future__ import annotations

from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame
from framework.core.rows.own_columns import NTH
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import StagingTarget, by_key, events, ranges
from framework.core.staging.merge import inserts, merge
from framework.documents.write_mode import WriteMode


def stage(target: StagingTarget, frame: Frame) -> BatchCounts:
    with cached_frame(by_key.newest_per_key(events.batch_rows(target, frame), target.keyed, NTH)) as rows:
        near = ranges.scan_keys(target, rows, target.keyed.keys).near
        counted = target.counted(frame)
        condition = by_key.same(target.keyed, "s", "t") + (f" AND {near.sql}" if near.sql else "")
        merge(
            target,
            rows,
            near,
            lambda view: [f"MERGE INTO {target.attempt_branch} t USING {view} s ON {condition}", inserts(target, "false")],
        )
    return counted


MODE = WriteMode(stage, does="adds rows of keys that the table does not have", by_key=True, changes={"inserted": "inserted"})
