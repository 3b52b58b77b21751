"""Adds the rows."""

from __future__ import annotations

from framework.engine.spark import row_frame
from framework.engine.spark.reading_errors import named_errors
from framework.engine.spark.row_frame import Counted, Frame
from framework.engine.writes import Target


def stage(to: Target, frame: Frame) -> Counted:
    with named_errors(to.pipeline):
        to.writer(frame.good).append()
    return row_frame.counted(to.spark, to.pipeline, frame.observed)
