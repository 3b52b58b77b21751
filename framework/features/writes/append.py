"""Adds a row per message."""

from __future__ import annotations

from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame
from framework.core.staging import StagingTarget, by_column
from framework.documents.write_mode import WriteMode


def stage(target: StagingTarget, frame: Frame) -> BatchCounts:
    if by_column.add(target, frame.good) is None:
        target.writer(frame.good).append()
    return target.counted(frame)


MODE = WriteMode(stage, does="adds a row per message", keeps_rows=True, adds=True)
