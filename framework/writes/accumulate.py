"""Totals of groups: a batch is added up, and its totals are merged with those of the table.

Guarantee: the same totals come out of the same messages in any order and in any batches, but for sums of floats, whose last digits depend
on the order, and for rows that are too late by `late_after`, which depends on what came in earlier batches.
Cost: an aggregate over the batch; of the table only files are read whose bounds can hold a group of the batch. Rows that change are marked
in deletion vectors (position deletes in format 2), and no file is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from framework.engine.rows.counts import Counted
from framework.engine.rows.frame import Frame
from framework.engine.spark.reading_errors import kept
from framework.engine.staging import Target, ranges
from framework.engine.staging.merge import merge
from framework.engine.staging.ranges import Near
from framework.errors import BatchError
from framework.model.accumulated import MEASURES, ORDER, TIME, WINDOW_END, WINDOW_START, Accumulated, Measure
from framework.plan.modes import Mode
from framework.sql.aggregates import FUNCTIONS, Part
from framework.sql.quote import identifier
from framework.types import VOID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FEW = 20_000  # messages that one task adds up, which shuffles none


def stage(to: Target, frame: Frame) -> Counted:
    totals = _totals(to, frame.good.coalesce(1) if to.size <= _FEW and not to.pipeline.explodes else frame.good)
    with _fitting(to.accumulated), kept(totals):
        newest, without_nulls = _about(to, totals)
        counted = to.counted(frame)
        if counted.unknown_schemas:
            return counted
        near = ranges.near(to, totals, without_nulls)
        merge(to.with_newest(newest), totals, Near(near, False), lambda view: _statement(to, view, near))
    return replace(counted, newest=newest)


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
        rows = rows.withColumn(name, functions.expr(f"CAST({identifier(name)} AS {to.there[name].sql})"))
    keys = list(map(identifier, totals.by))
    if totals.window:
        rows = _in_windows(rows, totals.window.every, totals.window.size)
        keys.append(WINDOW_START)
    parts = {
        _part(at, name): sql.of_rows.format(x=identifier(measure.row_column) if measure.argument else "1", order=ORDER)
        for at, measure in enumerate(totals.measures)
        for name, sql in _parts_of(measure).items()
    }
    newest = [functions.expr(f"max({TIME}) AS {TIME}")] if totals.window else []
    return rows.groupBy(*keys).agg(*(functions.expr(f"{sql} AS {name}") for name, sql in parts.items()), *newest)


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


def _about(to: Target, totals: DataFrame) -> tuple[int, list[str]]:
    """The greatest time of the batch in microseconds, and the keys of which none is null. Runs the pass over the messages."""
    keys = to.accumulated.keys
    newest = f"coalesce(max(unix_micros({TIME})), 0L)" if to.accumulated.window else "0L"
    (row,) = totals.selectExpr(newest, *(f"count_if({identifier(name)} IS NULL)" for name in keys)).collect()
    return int(row[0]), [name for name, nulls in zip(keys, row[1:], strict=True) if not nulls]


def _statement(to: Target, view: str, near: str) -> Iterator[str]:
    totals = to.accumulated
    same = [f"t.{identifier(name)} <=> s.{identifier(name)}" for name in totals.keys]
    yield f"MERGE INTO {to.own} t USING {view} s ON {' AND '.join(filter(None, (*same, near))) or 'true'}"
    changed = _values(to, merges=True)
    yield f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in changed.items())}"
    new = {identifier(name): f"s.{identifier(name)}" for name in totals.keys}
    if totals.window:
        new[WINDOW_END] = f"s.{WINDOW_START} + INTERVAL '{totals.window.size}' SECOND"
    new |= _values(to, merges=False)
    yield f"WHEN NOT MATCHED THEN INSERT ({', '.join(new)}) VALUES ({', '.join(new.values())})"


def _values(to: Target, merges: bool) -> dict[str, str]:
    """SQL of the measures' columns, from the batch alone or merged with those of the table."""
    values, hidden = {}, []
    for at, measure in enumerate(to.accumulated.measures):
        parts = _parts_of(measure)
        of_batch = {name: f"s.{_part(at, name)}" for name in parts}
        now = of_batch
        if merges:
            of_table = {name: _in_table(measure, name) for name in parts}
            now = {name: f"({part.merged.format(t=of_table, s=of_batch)})" for name, part in parts.items()}
        value = FUNCTIONS[measure.function].value(measure.argument or VOID).format(p=now)
        values[identifier(measure.name)] = f"CAST({value} AS {measure.type.sql})"
        kept_parts = [f"'{name}', {sql}" for name, sql in now.items() if name != "value"]
        if kept_parts:
            hidden.append(f"'{measure.name}', named_struct({', '.join(kept_parts)})")
    if hidden:
        values[MEASURES] = f"named_struct({', '.join(hidden)})"
    return values


def _parts_of(measure: Measure) -> Mapping[str, Part]:
    return FUNCTIONS[measure.function].parts(measure.argument or VOID, VOID)


def _part(at: int, name: str) -> str:
    return f"_sluice_part{at}_{name}"


def _in_table(measure: Measure, part: str) -> str:
    return f"t.{identifier(measure.name)}" if part == "value" else f"t.{MEASURES}.{identifier(measure.name)}.{part}"


MODE = Mode(
    "keeps the totals of an `aggregate` step, to which each batch adds",
    stage,
    groups=True,
    changes={"inserted": "inserted", "updated": "matched-updated"},
)
