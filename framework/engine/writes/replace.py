"""Puts the rows in the place of all that were there."""

from __future__ import annotations

from framework.engine import rows
from framework.engine.rows import Counted, Frame
from framework.engine.spark_errors import named_errors
from framework.engine.writes import Target


def stage(to: Target, frame: Frame) -> Counted:
    from pyspark.sql import functions

    with named_errors(to.pipeline):
        to.writer(frame.good).overwrite(functions.lit(True))
    return rows.counted(to.spark, to.pipeline, frame.observed)
