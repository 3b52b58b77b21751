"""Totals of groups: a batch is added up, and its totals are merged with those of the table.

Guarantee: the same totals come out of the same messages in any order and in any batches, but for sums of floats, whose last digits depend
on the order, and for rows that are too late by `late_after`, which depends on what came in earlier batches. Where
rows of the source change, those that are no more are taken off, or the group is computed again from all rows of the source.
Cost: an aggregate over the batch; of the table only files are read whose bounds can hold a group of the batch. Rows that change are marked
in deletion vectors (position deletes in format 2); in format 3, files of which no row is left are removed. No file is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from framework.base.errors import BatchError
from framework.base.types import VOID
from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame, frame_of
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import StagingTarget, ranges
from framework.core.staging.merge import merge
from framework.core.staging.ranges import KeyRange
from framework.documents.write_mode import WriteMode
from framework.plan import OLD
from framework.plan.totals import MEASURES, ORDER, ROWS, TIME, WINDOW_END, WINDOW_START, Measure, Totals
from framework.sql import aggregates
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNKNOWN_COUNT = 1_000_000_000  # rows, for the number of all rows of the source, which is not known
LOST_ROWS, HAS_ROWS = "_sluice_lost", "_sluice_there"  # columns of a group: whether it lost rows, and whether it has any


def stage(target: StagingTarget, frame: Frame) -> BatchCounts:
    totals = _totals(target, target.rows(frame))
    with _fitting(target.totals), cached_frame(totals):
        about = _about(target, totals)
        counted = target.counted(frame)
        if counted.unknown_schemas:
            return counted
        window = target.totals.window
        near = ranges.near(target, totals, about.without_nulls, -(-window.size // window.every) if window else 1)
        new_totals = _with_groups_again(target, totals) if about.some_lost else totals
        merge(
            target.with_newest(about.newest_time), new_totals, KeyRange(near, False), lambda view: _statement(target, view, near)
        )
    return replace(counted, newest_time=about.newest_time)


@contextmanager
def _fitting(totals: Totals) -> Iterator[None]:
    """Turns Spark's error about a total that does not fit into its type into a BatchError that names the totals."""
    from pyspark.errors import ArithmeticException

    try:
        yield
    except ArithmeticException:
        sums = [
            f"{measure.name} = {measure.text} ({measure.type})"
            for measure in totals.measures
            if measure.function in ("sum", "avg")
        ]
        message = f"a total does not fit into its type: {', '.join(sums)}"
        hint = "cast what is added to a larger type, such as `sum(cast(x as decimal(38, 2)))`; nothing was published"
        raise BatchError("total-too-large", message, hint) from None


def _totals(target: StagingTarget, rows: DataFrame) -> DataFrame:
    """One row for each group of the batch: its keys, and the parts of its measures."""
    from pyspark.sql import functions

    totals = target.totals
    for name in totals.by:
        rows = rows.withColumn(name, functions.expr(f"CAST({identifier(name)} AS {target.column_types[name].sql})"))
    keys = list(map(identifier, totals.by))
    if totals.window:
        rows = _in_windows(rows, totals.window.every, totals.window.size)
        keys.append(WINDOW_START)
    sign = f"IF({OLD}, -1, 1)" if OLD in rows.columns else "1"
    parts = {
        _part(index, name): part.of_rows.format(
            x=identifier(measure.row_column) if measure.argument else "1", order=ORDER, sign=sign
        )
        for index, measure in enumerate(totals.measures)
        for name, part in _parts_of(target, measure).items()
    }
    if totals.takes_off:
        parts[ROWS] = aggregates.ROWS.of_rows.format(sign=sign)
    parts |= {TIME: f"max({TIME})"} if totals.window else {}
    parts |= {LOST_ROWS: f"bool_or({OLD})" if OLD in rows.columns and not totals.takes_off else "false", HAS_ROWS: "true"}
    return rows.groupBy(*keys).agg(*(functions.expr(f"{sql} AS {name}") for name, sql in parts.items()))


def _with_groups_again(target: StagingTarget, totals: DataFrame) -> DataFrame:
    """The totals, with each group that lost rows computed from all rows of the source. `HAS_ROWS` is null if the source has
    none."""
    from pyspark.sql import functions

    position, keys = target.reached, list(map(identifier, target.totals.keys))
    assert position is not None
    lost_groups = totals.where(LOST_ROWS).select(*keys).alias("l")
    source: Any = target.source  # a table, of which changes are read
    rows = frame_of(
        source.whole(position.ends, position.batch), target.pipeline, _UNKNOWN_COUNT, carry=False, pins=target.pins
    ).good
    condition = functions.expr(" AND ".join(f"l.{key} <=> a.{key}" for key in keys) or "true")
    computed_totals = _totals(target, rows).drop(LOST_ROWS).alias("a")
    values = [f"a.{identifier(name)}" for name in computed_totals.columns if identifier(name) not in keys]
    computed_groups = lost_groups.join(computed_totals, condition, "left").selectExpr(
        *(f"l.{key}" for key in keys), *values, f"true AS {LOST_ROWS}"
    )
    return totals.where(f"NOT {LOST_ROWS}").unionByName(computed_groups)


def _in_windows(rows: DataFrame, every: int, size: int) -> DataFrame:
    """The rows, each with the beginning of its window, or once for each of its windows."""
    micros = every * 1_000_000
    last_start = f"unix_micros({TIME}) - pmod(unix_micros({TIME}), {micros}L)"
    if size == every:
        return rows.selectExpr("*", f"timestamp_micros({last_start}) AS {WINDOW_START}")
    # The windows that begin less than `size` before the row.
    count_sql = f"({size * 1_000_000}L - pmod(unix_micros({TIME}), {micros}L) + {micros - 1}L) div {micros}L"
    starts_sql = f"transform(sequence(0, {count_sql} - 1), n -> timestamp_micros({last_start} - n * {micros}L))"
    return rows.selectExpr("*", f"explode({starts_sql}) AS {WINDOW_START}").where(f"{WINDOW_START} IS NOT NULL")


@dataclass(frozen=True)
class _About:
    newest_time: int  # the greatest time in microseconds
    some_lost: bool  # whether a group lost rows
    without_nulls: tuple[str, ...]  # the keys that are never null


def _about(target: StagingTarget, totals: DataFrame) -> _About:
    """Reads the messages once, for the facts that the merge needs."""
    keys = target.totals.keys
    newest_time = f"coalesce(max(unix_micros({TIME})), 0L)" if target.totals.window else "0L"
    nulls = (f"count_if({identifier(name)} IS NULL)" for name in keys)
    (row,) = totals.selectExpr(newest_time, f"coalesce(bool_or({LOST_ROWS}), false)", *nulls).collect()
    return _About(int(row[0]), bool(row[1]), tuple(name for name, count in zip(keys, row[2:], strict=True) if not count))


def _statement(target: StagingTarget, view: str, near: str) -> Iterator[str]:
    totals = target.totals
    equal_keys = [f"t.{identifier(name)} <=> s.{identifier(name)}" for name in totals.keys]
    yield f"MERGE INTO {target.attempt_branch} t USING {view} s ON {' AND '.join(filter(None, (*equal_keys, near))) or 'true'}"
    condition = ""
    if totals.takes_off:
        condition = f" AND s.{ROWS} > 0"
        yield f"WHEN MATCHED AND {_rows_left()} <= 0 THEN DELETE"
    elif target.pipeline.has_old_rows:
        yield f"WHEN MATCHED AND s.{LOST_ROWS} AND s.{HAS_ROWS} IS NULL THEN DELETE"
        yield f"WHEN MATCHED AND s.{LOST_ROWS} THEN UPDATE SET {_set(_values(target, merges=False))}"
    yield f"WHEN MATCHED THEN UPDATE SET {_set(_values(target, merges=True))}"
    new_values = {identifier(name): f"s.{identifier(name)}" for name in totals.keys}
    if totals.window:
        new_values[WINDOW_END] = f"s.{WINDOW_START} + INTERVAL '{totals.window.size}' SECOND"
    new_values |= _values(target, merges=False)
    yield f"WHEN NOT MATCHED AND s.{HAS_ROWS}{condition} THEN INSERT ({', '.join(new_values)}) VALUES ({', '.join(new_values.values())})"


def _set(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _values(target: StagingTarget, merges: bool) -> dict[str, str]:
    """SQL of the measures' columns, from the batch alone or merged with those of the table."""
    values, hidden = {}, []
    for index, measure in enumerate(target.totals.measures):
        parts = _parts_of(target, measure)
        batch_parts = {name: f"s.{_part(index, name)}" for name in parts}
        part_values = batch_parts
        if merges:
            table_parts = {name: _in_table(measure, name) for name in parts}
            part_values = {name: f"({part.merged.format(t=table_parts, s=batch_parts)})" for name, part in parts.items()}
        value = (
            aggregates.function(measure.function, target.totals.takes_off).value(measure.argument or VOID).format(p=part_values)
        )
        values[identifier(measure.name)] = f"CAST({value} AS {measure.type.sql})"
        kept_parts = [f"'{name}', {sql}" for name, sql in part_values.items() if name != "value"]
        if kept_parts:
            hidden.append(f"{literal(measure.name)}, named_struct({', '.join(kept_parts)})")
    if target.totals.takes_off:
        hidden.append(f"'{ROWS}', {_rows_left() if merges else f's.{ROWS}'}")
    if hidden:
        values[MEASURES] = f"named_struct({', '.join(hidden)})"
    return values


def _rows_left() -> str:
    return aggregates.ROWS.merged.format(t=f"t.{MEASURES}.{ROWS}", s=f"s.{ROWS}")


def _parts_of(target: StagingTarget, measure: Measure) -> Mapping[str, aggregates.PartialTotal]:
    return aggregates.function(measure.function, target.totals.takes_off).parts(measure.argument or VOID, VOID)


def _part(index: int, name: str) -> str:
    return f"_sluice_part{index}_{name}"


def _in_table(measure: Measure, part: str) -> str:
    return f"t.{identifier(measure.name)}" if part == "value" else f"t.{MEASURES}.{identifier(measure.name)}.{part}"


MODE = WriteMode(
    stage,
    does="keeps the totals of an `aggregate` step, to which each batch adds",
    groups=True,
    changes={"inserted": "inserted", "updated": "matched-updated", "deleted": "matched-deleted"},
)
