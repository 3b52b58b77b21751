"""Computes the whole table from other tables at each run; of a select by groups only those whose rows have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame
from framework.core.sources.select import ChangedGroups, SelectReader
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import StagingTarget, ranges
from framework.core.staging.merge import inserts, merge
from framework.core.staging.ranges import KeyRange
from framework.documents.write_mode import WriteMode
from framework.sql.quote import identifier, present_or_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_GROUPS = 10_000  # that one task merges
_GROUP = "_sluice_group"  # whether a row is a group that is computed again, in place of one of its new rows


def stage(target: StagingTarget, frame: Frame) -> BatchCounts:
    from pyspark.sql import functions

    groups = target.source.changed(target.range_) if isinstance(target.source, SelectReader) and target.range_.starts else None
    if groups is None:
        target.writer(frame.good).overwrite(functions.lit(True))
    elif groups.partitions:
        ((column, name),) = groups.names
        partitions = groups.listed(column, name)
        assert partitions is not None
        target.writer(frame.good).overwrite(functions.expr(partitions))
    else:
        with cached_frame(frame.good):
            frame.good.count()
            counted = target.counted(frame)
            _merge(target, frame.good, groups)
        return counted
    return target.counted(frame)


def _merge(target: StagingTarget, rows: DataFrame, groups: ChangedGroups) -> None:
    """Replaces the table's rows of these groups by the new rows."""
    names = [name for _, name in groups.names]
    keys = groups.frame(target.spark).selectExpr(*present_or_null(target.pipeline.table.columns, names), f"true AS {_GROUP}")
    # A column without nulls among the groups leaves out files that have none of its values.
    near = ranges.near(target, keys, [name for column, name in groups.names if not groups.values[column].null_count])
    rows_and_groups = rows.selectExpr("*", f"false AS {_GROUP}").unionByName(keys)
    merge(
        target,
        rows_and_groups,
        KeyRange(near, len(groups.values) <= _MAX_GROUPS),
        lambda view: _statement(target, view, names, near),
    )


def _statement(target: StagingTarget, view: str, names: list[str], near: str) -> Iterator[str]:
    same = [f"t.{identifier(name)} <=> s.{identifier(name)}" for name in names]
    yield f"MERGE INTO {target.attempt_branch} t USING {view} s ON {' AND '.join(filter(None, (*same, f's.{_GROUP}', near)))}"
    yield "WHEN MATCHED THEN DELETE"
    yield inserts(target, f"s.{_GROUP}")


MODE = WriteMode(stage, does="computes the whole table from other tables at each run", whole=True)
