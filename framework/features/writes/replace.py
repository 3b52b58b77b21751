"""Computes the whole table from other tables at each run; of a select by groups only those whose rows have changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame
from framework.core.sources.select import Groups, Select
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import Target, ranges
from framework.core.staging.merge import inserts, merge
from framework.core.staging.ranges import Near
from framework.documents.write_mode import WriteMode
from framework.sql.quote import identifier, present_or_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW = 10_000  # groups, which one task merges
_GROUP = "_sluice_group"  # whether a row is a group that is computed again, in place of one of its new rows


def stage(to: Target, frame: Frame) -> Counted:
    from pyspark.sql import functions

    groups = to.source.changed(to.range_) if isinstance(to.source, Select) and to.range_.starts else None
    if groups is None:
        to.writer(frame.good).overwrite(functions.lit(True))
    elif groups.partitions:
        ((column, name),) = groups.names
        partitions = groups.listed(column, name)
        assert partitions is not None
        to.writer(frame.good).overwrite(functions.expr(partitions))
    else:
        with cached_frame(frame.good):
            frame.good.count()
            counted = to.counted(frame)
            _merge(to, frame.good, groups)
        return counted
    return to.counted(frame)


def _merge(to: Target, rows: DataFrame, groups: Groups) -> None:
    """Puts the rows of these groups in the place of those that the table has."""
    names = [name for _, name in groups.names]
    keys = groups.frame(to.spark).selectExpr(*present_or_null(to.pipeline.table.columns, names), f"true AS {_GROUP}")
    # A column without nulls among the groups leaves out files that have none of its values.
    near = ranges.near(to, keys, [name for column, name in groups.names if not groups.values[column].null_count])
    both = rows.selectExpr("*", f"false AS {_GROUP}").unionByName(keys)
    merge(to, both, Near(near, len(groups.values) <= _FEW), lambda view: _statement(to, view, names, near))


def _statement(to: Target, view: str, names: list[str], near: str) -> Iterator[str]:
    same = [f"t.{identifier(name)} <=> s.{identifier(name)}" for name in names]
    yield f"MERGE INTO {to.attempt_branch} t USING {view} s ON {' AND '.join(filter(None, (*same, f's.{_GROUP}', near)))}"
    yield "WHEN MATCHED THEN DELETE"
    yield inserts(to, f"s.{_GROUP}")


MODE = WriteMode(stage, does="computes the whole table from other tables at each run", whole=True)
