"""Totals of groups: a batch is added up, and its totals are merged with those of the table.

Guarantee: the same totals come out of the same messages in any order and in any batches, but for sums of floats, whose last digits depend
on the order, and for rows that are too late by `late_after`, which depends on what came in earlier batches. Where
rows of the source change, those that are no more are taken off, or the group is computed again from all rows of the source.
Cost: an aggregate over the batch; of the table only files are read whose bounds can hold a group of the batch. Rows that change are marked
in deletion vectors (position deletes in format 2), and no file is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from framework.base.errors import BatchError
from framework.base.types import VOID
from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame, frame_of
from framework.core.spark.reading_errors import cached_frame
from framework.core.staging import Target, ranges
from framework.core.staging.merge import merge
from framework.core.staging.ranges import Near
from framework.documents.write_mode import WriteMode
from framework.plan import OLD
from framework.plan.totals import MEASURES, ORDER, ROWS, TIME, WINDOW_END, WINDOW_START, Accumulated, Measure
from framework.sql import aggregates
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MANY = 1_000_000_000  # rows, in place of the number of all rows of the source, which is not known
LOST, THERE = "_sluice_lost", "_sluice_there"  # of a group: whether it lost rows, and whether it has any


def stage(to: Target, frame: Frame) -> Counted:
    totals = _totals(to, to.rows(frame))
    with _fitting(to.accumulated), cached_frame(totals):
        about = _about(to, totals)
        counted = to.counted(frame)
        if counted.unknown_schemas:
            return counted
        window = to.accumulated.window
        near = ranges.near(to, totals, about.without_nulls, -(-window.size // window.every) if window else 1)
        new = _with_groups_again(to, totals) if about.some_lost else totals
        merge(to.with_newest(about.newest_time), new, Near(near, False), lambda view: _statement(to, view, near))
    return replace(counted, newest_time=about.newest_time)


@contextmanager
def _fitting(totals: Accumulated) -> Iterator[None]:
    """Names an error of Spark where a total does not fit into its type."""
    from pyspark.errors import ArithmeticException

    try:
        yield
    except ArithmeticException:
        sums = [f"{each.name} = {each.text} ({each.type})" for each in totals.measures if each.function in ("sum", "avg")]
        message = f"a total does not fit into its type: {', '.join(sums)}"
        hint = "cast what is added to a larger type, such as `sum(cast(x as decimal(38, 2)))`; nothing was published"
        raise BatchError("total-too-large", message, hint) from None


def _totals(to: Target, rows: DataFrame) -> DataFrame:
    """One row for each group of the batch: its keys, and the parts of its measures."""
    from pyspark.sql import functions

    totals = to.accumulated
    for name in totals.by:
        rows = rows.withColumn(name, functions.expr(f"CAST({identifier(name)} AS {to.column_types[name].sql})"))
    keys = list(map(identifier, totals.by))
    if totals.window:
        rows = _in_windows(rows, totals.window.every, totals.window.size)
        keys.append(WINDOW_START)
    sign = f"IF({OLD}, -1, 1)" if OLD in rows.columns else "1"
    parts = {
        _part(at, name): part.of_rows.format(
            x=identifier(measure.row_column) if measure.argument else "1", order=ORDER, sign=sign
        )
        for at, measure in enumerate(totals.measures)
        for name, part in _parts_of(to, measure).items()
    }
    if totals.takes_off:
        parts[ROWS] = aggregates.ROWS.of_rows.format(sign=sign)
    parts |= {TIME: f"max({TIME})"} if totals.window else {}
    parts |= {LOST: f"bool_or({OLD})" if OLD in rows.columns and not totals.takes_off else "false", THERE: "true"}
    return rows.groupBy(*keys).agg(*(functions.expr(f"{sql} AS {name}") for name, sql in parts.items()))


def _with_groups_again(to: Target, totals: DataFrame) -> DataFrame:
    """The totals, in which a group that lost rows is computed from all rows of the source. It is not there if it has none."""
    from pyspark.sql import functions

    reached, keys = to.reached, list(map(identifier, to.accumulated.keys))
    assert reached is not None
    lost = totals.where(LOST).select(*keys).alias("l")
    source: Any = to.source  # a table, of which changes are read
    rows = frame_of(source.whole(reached.ends, reached.batch), to.pipeline, _MANY, carry=False).good
    same = functions.expr(" AND ".join(f"l.{key} <=> a.{key}" for key in keys) or "true")
    again = _totals(to, rows).drop(LOST).alias("a")
    values = [f"a.{identifier(name)}" for name in again.columns if identifier(name) not in keys]
    whole = lost.join(again, same, "left").selectExpr(*(f"l.{key}" for key in keys), *values, f"true AS {LOST}")
    return totals.where(f"NOT {LOST}").unionByName(whole)


def _in_windows(rows: DataFrame, every: int, size: int) -> DataFrame:
    """The rows, each with the beginning of its window, or once for each of its windows."""
    micros = every * 1_000_000
    last = f"unix_micros({TIME}) - pmod(unix_micros({TIME}), {micros}L)"
    if size == every:
        return rows.selectExpr("*", f"timestamp_micros({last}) AS {WINDOW_START}")
    # The windows that begin at most `size` before the row, and not at that moment.
    count = f"({size * 1_000_000}L - pmod(unix_micros({TIME}), {micros}L) + {micros - 1}L) div {micros}L"
    starts = f"transform(sequence(0, {count} - 1), n -> timestamp_micros({last} - n * {micros}L))"
    return rows.selectExpr("*", f"explode({starts}) AS {WINDOW_START}").where(f"{WINDOW_START} IS NOT NULL")


@dataclass(frozen=True)
class _About:
    newest_time: int  # the greatest time in microseconds
    some_lost: bool  # whether a group lost rows
    without_nulls: tuple[str, ...]  # the keys of which none is null


def _about(to: Target, totals: DataFrame) -> _About:
    """Runs the pass over the messages."""
    keys = to.accumulated.keys
    newest_time = f"coalesce(max(unix_micros({TIME})), 0L)" if to.accumulated.window else "0L"
    nulls = (f"count_if({identifier(name)} IS NULL)" for name in keys)
    (row,) = totals.selectExpr(newest_time, f"coalesce(bool_or({LOST}), false)", *nulls).collect()
    return _About(int(row[0]), bool(row[1]), tuple(name for name, count in zip(keys, row[2:], strict=True) if not count))


def _statement(to: Target, view: str, near: str) -> Iterator[str]:
    totals = to.accumulated
    same = [f"t.{identifier(name)} <=> s.{identifier(name)}" for name in totals.keys]
    yield f"MERGE INTO {to.attempt_branch} t USING {view} s ON {' AND '.join(filter(None, (*same, near))) or 'true'}"
    some = ""
    if totals.takes_off:
        some = f" AND s.{ROWS} > 0"
        yield f"WHEN MATCHED AND {_rows_left()} <= 0 THEN DELETE"
    elif to.pipeline.source and to.pipeline.source.old != "none":
        yield f"WHEN MATCHED AND s.{LOST} AND s.{THERE} IS NULL THEN DELETE"
        yield f"WHEN MATCHED AND s.{LOST} THEN UPDATE SET {_set(_values(to, merges=False))}"
    yield f"WHEN MATCHED THEN UPDATE SET {_set(_values(to, merges=True))}"
    new = {identifier(name): f"s.{identifier(name)}" for name in totals.keys}
    if totals.window:
        new[WINDOW_END] = f"s.{WINDOW_START} + INTERVAL '{totals.window.size}' SECOND"
    new |= _values(to, merges=False)
    yield f"WHEN NOT MATCHED AND s.{THERE}{some} THEN INSERT ({', '.join(new)}) VALUES ({', '.join(new.values())})"


def _set(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _values(to: Target, merges: bool) -> dict[str, str]:
    """SQL of the measures' columns, from the batch alone or merged with those of the table."""
    values, hidden = {}, []
    for at, measure in enumerate(to.accumulated.measures):
        parts = _parts_of(to, measure)
        of_batch = {name: f"s.{_part(at, name)}" for name in parts}
        now = of_batch
        if merges:
            of_table = {name: _in_table(measure, name) for name in parts}
            now = {name: f"({part.merged.format(t=of_table, s=of_batch)})" for name, part in parts.items()}
        value = aggregates.function(measure.function, to.accumulated.takes_off).value(measure.argument or VOID).format(p=now)
        values[identifier(measure.name)] = f"CAST({value} AS {measure.type.sql})"
        kept_parts = [f"'{name}', {sql}" for name, sql in now.items() if name != "value"]
        if kept_parts:
            hidden.append(f"{literal(measure.name)}, named_struct({', '.join(kept_parts)})")
    if to.accumulated.takes_off:
        hidden.append(f"'{ROWS}', {_rows_left() if merges else f's.{ROWS}'}")
    if hidden:
        values[MEASURES] = f"named_struct({', '.join(hidden)})"
    return values


def _rows_left() -> str:
    return aggregates.ROWS.merged.format(t=f"t.{MEASURES}.{ROWS}", s=f"s.{ROWS}")


def _parts_of(to: Target, measure: Measure) -> Mapping[str, aggregates.Part]:
    return aggregates.function(measure.function, to.accumulated.takes_off).parts(measure.argument or VOID, VOID)


def _part(at: int, name: str) -> str:
    return f"_sluice_part{at}_{name}"


def _in_table(measure: Measure, part: str) -> str:
    return f"t.{identifier(measure.name)}" if part == "value" else f"t.{MEASURES}.{identifier(measure.name)}.{part}"


MODE = WriteMode(
    stage,
    does="keeps the totals of an `aggregate` step, to which each batch adds",
    groups=True,
    changes={"inserted": "inserted", "updated": "matched-updated", "deleted": "matched-deleted"},
)
