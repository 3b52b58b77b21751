"""Adds up rows by group, and by window of time: the table has one row for each, which `write: accumulate` keeps up to date.

Guarantee: each row that lands counts once in each of its windows, also after a crash. Sums of whole numbers and decimals are exact.
Cost: a row of the table for each group that a batch touches; only files whose bounds can hold such a group are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from framework.base.errors import Problem
from framework.base.types import BIGINT, TIMESTAMP, VOID, Type, holds_map
from framework.documents.pipeline.landing import Landing
from framework.documents.rows import Resolved, Rows, case_collisions, name_problems
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import ColumnName, Duration, Expression
from framework.plan import Column, ColumnSql, Fault
from framework.plan.text import duration
from framework.plan.totals import MEASURES, TIME, WINDOW_END, WINDOW_START, Groups, Measure as Planned, Window as Windows
from framework.sql import aggregates
from framework.sql.expressions import Checked, ExpressionError, typed
from framework.sql.faults import refused
from framework.sql.measure_remedies import suggest_for_argument
from framework.sql.quote import identifier
from framework.sql.suggested import cast, code

EXAMPLE = """\
columns: {symbol: string, quantity: int, price: double, at: timestamp}
steps:
  - aggregate:
      by: [symbol]
      window: {column: at, every: 1m}
      measures: {total: sum(price * quantity), trades: count(*)}
into: {write: accumulate}
given:
  - {symbol: ZVZZT, quantity: 10, price: 2.5, at: 2026-01-05T10:00:05Z}
  - {symbol: ZVZZT, quantity: 2, price: 2.5, at: 2026-01-05T10:00:40Z}
  - {symbol: ZVZZT, quantity: 1, price: 2.5, at: 2026-01-05T10:01:00Z}
expect:
  - {symbol: ZVZZT, window_start: 2026-01-05T10:00:00Z, window_end: 2026-01-05T10:01:00Z, total: 30.0, trades: 2}
  - {symbol: ZVZZT, window_start: 2026-01-05T10:01:00Z, window_end: 2026-01-05T10:02:00Z, total: 2.5, trades: 1}
"""

ADDS = None
_MOST_WINDOWS = 1000


@dataclass(frozen=True)
class Window(OptionGroup):
    """Windows of time. They begin at multiples of `every` since 1970 in UTC."""

    column: ColumnName = option("The column with a row's time.", example="at", aka=["by", "on", "time"])
    every: Duration = option("How often a window begins.", at_least="1s", example="1m", aka=["slide", "step"])
    size: Duration | None = option(
        "How long a window is; default: `every`. In a longer one windows overlap, and a row is in several.",
        default=None, at_least="1s", example="5m", aka=["length", "width", "for"],
    )  # fmt: skip


@dataclass(frozen=True)
class Written(OptionGroup):
    """Groups of rows, and what is computed of each."""

    measures: dict[ColumnName, Expression] = option(
        "Columns, and for each a function over the group's rows: `sum(x)`, `count(*)`, `count(x)`, `count_if(c)`, `min(x)`, `max(x)`, "
        "`avg(x)`, `first(x)`, `last(x)`, `count(distinct x)`, `approx_count_distinct(x)`.",
        example="{total: sum(price * quantity)}", at_least=1, aka=["values", "aggregates", "compute"],
    )  # fmt: skip
    by: tuple[ColumnName, ...] = option(
        "The columns whose values make a group; null is a value, too.",
        default=(),
        example="[symbol]",
        aka=["group_by", "keys", "per"],
    )
    window: Window | None = option("Windows of time, each a group of its own.", default=None, example="{column: at, every: 1m}")


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    written: Written = step.value
    rows.problems.extend(_of_groups(written, rows))
    window = _window(written, rows)
    measures: list[Planned] = []
    assign: list[tuple[str, str]] = [(TIME, ColumnSql(identifier(window.column), (window.column,)))] if window else []
    faults = [_without_time(window)] if window else []
    for name, text in written.measures.items():
        argument = _argument(name, text, written, rows)
        if argument is None:
            continue
        function, value = argument
        type_ = value.type if value else None
        result_type = BIGINT if type_ is None else aggregates.FUNCTIONS[function].type(type_)
        measures.append(Planned(name, text, function, type=result_type, argument=type_))
        if value:
            assign.append((measures[-1].row_column, value.sql))
            faults.extend(rows.faults("aggregate", f"{name}: {text}", value))
    unclear = len(measures) < len(written.measures) or (written.window is not None and window is None)
    return Resolved(
        rows.with_columns(
            Column(row_column, TIMESTAMP if row_column == TIME else _type_of(row_column, measures)) for row_column, _ in assign
        ),
        assign=tuple(assign), faults=tuple(faults), says=tuple(_says(written, measures)), more=unclear,
        groups=Groups(written.by, window, tuple(measures)), landing=lambda landing: _lands(step, landing),
    )  # fmt: skip


def _type_of(row_column: str, measures: Iterable[Planned]) -> Type:
    return next(measure.argument or VOID for measure in measures if measure.row_column == row_column)


def _of_groups(written: Written, rows: Rows) -> Iterator[Problem]:
    earlier_names = [MEASURES, *([WINDOW_START, WINDOW_END] if written.window else [])]
    for index, name in enumerate(written.by):
        column, where = rows.column(name, written.place("by", index)), written.place("by", index)
        if column and holds_map(column.type):
            message = f"`{name}` is {column.type}, by which rows are not grouped"
            yield Problem(where, "bad-key", message, "take a column that holds no map")
        if name in earlier_names:
            yield Problem(
                where, "duplicate-column", f"there are two columns `{name}`", "name each column once, or rename it before"
            )
        yield from case_collisions(name, where, earlier_names)
        earlier_names.append(name)
    for name in written.measures:
        yield from name_problems(name, written.key_place("measures", name), earlier_names)
        if name in earlier_names:
            hint = "give the measure another name"
            yield Problem(written.key_place("measures", name), "duplicate-column", f"there are two columns `{name}`", hint)
        earlier_names.append(name)


def _window(written: Written, rows: Rows) -> Windows | None:
    if written.window is None or written.window.gaps & {"column", "every", "size"}:
        return None
    window = written.window
    type_ = rows.types.get(window.column)
    if type_ is None:
        rows.column(window.column, window.place("column"))
    elif type_ not in (TIMESTAMP, VOID):
        message = f"`{window.column}` is {type_}, and a window needs a moment in time"
        rows.problems.append(
            Problem(window.place("column"), "bad-window", message, "take a `timestamp`, or `cast` it to one before")
        )
    size = window.every if window.size is None else window.size
    if size < window.every:
        message = "a row between two windows would be in none: `size` is shorter than `every`"
        rows.problems.append(Problem(window.place("size"), "bad-window", message, "make `size` as long as `every`, or longer"))
    elif size > window.every * _MOST_WINDOWS:
        message = f"each row would be in {size // window.every:,} windows, and at most {_MOST_WINDOWS:,} are allowed"
        rows.problems.append(
            Problem(window.place("size"), "bad-window", message, "begin windows less often, by a longer `every`")
        )
    return Windows(column=window.column, every=window.every, size=size) if type_ == TIMESTAMP else None


def _without_time(window: Windows) -> Fault:
    null = ColumnSql(f"{identifier(window.column)} IS NULL", (window.column,))
    return Fault("aggregate", "no_time", f"`{window.column}` is null, and it says in which window the row is", when=null)


def _argument(name: str, text: str, written: Written, rows: Rows) -> tuple[str, Checked | None] | None:
    """Returns the function and its argument; None after a problem was reported."""
    where = written.place("measures", name)
    try:
        measure = aggregates.read(text)
        value = typed(measure.argument, rows.types) if measure.argument else None
        if value and value.type == VOID:
            return None
        function = aggregates.FUNCTIONS[measure.function]
        if value and not function.takes(value.type):
            hint = suggest_for_argument(measure.function, value, function.wants)
            raise refused(
                measure.offset, "sql-measure", f"{measure.function} takes {function.wants}, and this is {value.type}", hint
            )
        if value and aggregates.rounds(measure.function, value.type):
            rounded = cast(value, "decimal(38, 18)")
            message = f"{measure.function} of {value.type} rounds: up to {aggregates.MOST_SCALE} digits behind the point are added exactly"
            raise refused(measure.offset, "sql-measure", message, f"write {code(f'{measure.function}({rounded})')}")
    except ExpressionError as error:
        rows.refuse(error, text, where)
        return None
    return measure.function, rows.attempted(value) if value else None


def _says(written: Written, measures: Iterable[Planned]) -> Iterator[str]:
    yield f"by {', '.join(written.by)}" if written.by else "of all rows"
    if written.window:
        window = written.window
        longer = f", each {duration(window.size)} long" if window.size is not None and window.size != window.every else ""
        yield f"in windows by {window.column}, one every {duration(window.every)}{longer}"
    yield from (f"{measure.name} {measure.type} = {measure.text}" for measure in measures)


def _lands(step: StepDocument, landing: Landing) -> Iterator[Problem]:
    if not landing.mode.groups:
        message = f"`write: {landing.into.write}` would add a row for each group and batch, not one that is kept up to date"
        yield Problem(step.key_place(), "aggregate-needs-accumulate", message, "write `write: accumulate` under `into`")
    later_step = next((candidate for candidate in landing.later if candidate.name not in ("expect", "partition")), None)
    if later_step:
        message = f"`{later_step.name}` would see groups that are not complete: each batch adds to them"
        hint = "put it before `aggregate`, or into a pipeline that reads this table: `from: {table: …}`"
        yield Problem(later_step.where, "aggregate-is-last", message, hint)
