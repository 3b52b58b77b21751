"""Sets a column to the label of the first rule that is true, or else to `otherwise`.

A rule can be moving: it compares a value with those that the pipeline's table held when the batch began, such as the prices of a symbol
in the day before. So the first rows of a table are never beyond, and how batches are cut decides what was before; a batch that is
repeated labels alike, and records the snapshot on which it measured. A rebuild measures again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from framework.base.errors import Problem
from framework.base.types import BOOLEAN, STRING, VOID, Array, Map, Struct, is_numeric
from framework.documents.pipeline.landing import Landing
from framework.documents.rows import Resolved, Rows
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import ColumnName, Duration, Expression
from framework.plan import Bounds, ColumnSql, Measure
from framework.sql.expressions import Checked
from framework.sql.quote import identifier, literal

EXAMPLE = """\
columns: {symbol: string, quantity: int, price: double}
steps:
  - flag:
      into: anomaly_flag
      rules:
        - {when: price < 0, label: NEGATIVE_PRICE}
        - {when: quantity > 4000, label: LARGE_TRADE}
      otherwise: NORMAL
given:
  - {symbol: ZVZZT, quantity: 10, price: 2.5}
  - {symbol: ZJZZT, quantity: 5000, price: 2.5}
  - {symbol: ZWZZT, quantity: 5000, price: -1.0}
expect:
  - {symbol: ZVZZT, quantity: 10, price: 2.5, anomaly_flag: NORMAL}
  - {symbol: ZJZZT, quantity: 5000, price: 2.5, anomaly_flag: LARGE_TRADE}
  - {symbol: ZWZZT, quantity: 5000, price: -1.0, anomaly_flag: NEGATIVE_PRICE}
"""


@dataclass(frozen=True)
class Beyond(OptionGroup):
    """Bounds of a number, by what the table held when the batch began."""

    column: ColumnName = option("The number. The table must have it.", example="price", aka=["of", "value"])
    per: tuple[ColumnName, ...] = option(
        "The columns whose values each have bounds of their own; the table must have them.", default=(), example="[symbol]",
        aka=["by", "group_by", "partition_by"],
    )  # fmt: skip
    deviations: float | None = option(
        "Beyond is what differs from the mean by more than so many standard deviations.", default=None, example="4",
        aka=["sigma", "sigmas", "stddev"],
    )  # fmt: skip
    quantiles: tuple[float, float] | None = option(
        "Beyond is what is below the first of these quantiles or above the second.", default=None, example="[0.01, 0.99]",
        aka=["percentiles"],
    )  # fmt: skip
    over: Duration | None = option(
        "How far back rows count, from the newest one of the table by its time; to a 24th of it.",
        default=None,
        at_least="1s",
        example="24h",
        aka=["within"],
    )
    rows: int | None = option(
        "In place of `over`, how many of the newest rows of each group count.",
        default=None,
        at_least=2,
        example="1000",
        aka=["last"],
    )
    at_least: int | None = option(
        "How many values a group needs; before it has them none is beyond. Default: 30, or `rows` if that is less.",
        default=None, at_least=2, example="30", aka=["min_rows"],
    )  # fmt: skip

    @property
    def fewest(self) -> int:
        return min(30, self.rows or 30) if self.at_least is None else self.at_least

    def problems(self) -> Iterator[Problem]:
        for first_option, second_option, example in (("deviations", "quantiles", "deviations: 4"), ("over", "rows", "over: 24h")):
            given_options = [
                name for name in (first_option, second_option) if getattr(self, name) is not None or name in self.gaps
            ]
            if len(given_options) != 1:
                hint = (
                    f"remove `{first_option}`, or remove `{second_option}`"
                    if given_options
                    else f"write one of them, such as `{example}`"
                )
                fault = (
                    f"has both `{first_option}` and `{second_option}`"
                    if given_options
                    else f"has neither `{first_option}` nor `{second_option}`"
                )
                yield Problem(self.place(), "one-of", f"`beyond` {fault}", hint)
        if self.rows is not None and self.at_least is not None and self.at_least > self.rows:
            message = f"of {self.rows} rows there are never {self.at_least}"
            yield Problem(
                self.place("at_least"), "out-of-range", message, f"write `at_least: {self.rows}` or less, or more `rows`"
            )
        if self.deviations is not None and self.deviations <= 0:
            yield Problem(
                self.place("deviations"), "out-of-range", "`deviations` must be greater than 0", "write `deviations: 4`"
            )
        if self.quantiles is not None and not 0 <= self.quantiles[0] < self.quantiles[1] <= 1:
            message = "`quantiles` are two numbers from 0 to 1, the smaller one first"
            yield Problem(self.place("quantiles"), "out-of-range", message, "write `quantiles: [0.01, 0.99]`")


@dataclass(frozen=True)
class Rule(OptionGroup):
    """A condition and the label of the rows for which it is true."""

    in_example: ClassVar[tuple[str, ...]] = ("when",)

    label: str = option("The label.", example="NEGATIVE_PRICE", aka=["then", "value", "flag"])
    when: Expression | None = option(
        "The condition; null is not true.", default=None, example="price < 0", aka=["if", "condition"]
    )
    beyond: Beyond | None = option(
        "In place of `when`, bounds that move.", default=None, example="{column: price, per: [symbol], deviations: 4, over: 24h}",
        aka=["outside", "anomaly"],
    )  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        if (self.when is None) == (self.beyond is None) and not self.gaps & {"when", "beyond"}:
            fault, hint = "both `when` and `beyond`", "remove `when`, or remove `beyond`"
            if self.when is None:
                fault, hint = "no condition", "write `when: price < 0`, or `beyond: {…}` for bounds that move"
            yield Problem(self.place(), "one-of", f"this rule has {fault}", hint)


@dataclass(frozen=True)
class Written(OptionGroup):
    """Labels rows by rules; the first that is true counts."""

    into: ColumnName = option("The column that takes the label.", example="anomaly_flag", aka=["column", "as", "name"])
    rules: tuple[Rule, ...] = option("The rules, in order.", example="[{when: price < 0, label: LOW}]", at_least=1)
    otherwise: str | None = option("The label where no rule is true; default: null.", default=None, aka=["else", "default"])


ADDS = "into"


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    written: Written = step.value
    bounds: dict[Bounds, None] = {}
    conditions = [_condition(rule, rows, bounds) for rule in written.rules]
    cases = " ".join(
        f"WHEN {condition.sql} THEN {literal(rule.label)}" for condition, rule in zip(conditions, written.rules, strict=True)
    )
    otherwise = "NULL" if written.otherwise is None else literal(written.otherwise)
    reads = (name for condition in conditions for name in condition.sql.reads)
    # One attempt for all rules: a rule is computed only for rows for which no rule before it was true.
    fails = any(condition.fails for condition in conditions)
    label = rows.attempted(Checked(ColumnSql(f"CASE {cases} ELSE {otherwise} END", reads), STRING, fails))
    return Resolved(
        rows.with_columns([rows.new_column(written.into, STRING, written.place("into"))]),
        assign=((written.into, label.sql),),
        faults=rows.faults("flag", written.into, label),
        effect=Measure(tuple(bounds)) if bounds else None,
        landing=(lambda landing: _landing(written, landing, rows.types)) if bounds else None,
        says=(
            *(f"{rule.label} when {_says(rule)}" for rule in written.rules),
            f"{'null' if written.otherwise is None else written.otherwise} otherwise",
            *(("bounds are those of the table when a batch begins; a rebuild measures again",) if bounds else ()),
        ),
    )


def _condition(rule: Rule, rows: Rows, bounds: dict[Bounds, None]) -> Checked:
    if rule.when is not None:
        return rows.unguarded_condition(rule.when, rule.place("when"))
    beyond = rule.beyond
    if beyond is None or beyond.gaps:
        return Checked(ColumnSql("NULL", ()), VOID)
    column = rows.column(beyond.column, beyond.place("column"))
    if column is not None and column.type != VOID and not is_numeric(column.type):
        message = f"`{beyond.column}` is {column.type}, and bounds are those of a number"
        number = next(
            (f"take a number, such as `{candidate.name}`" for candidate in rows.columns if is_numeric(candidate.type)), ""
        )
        rows.problems.append(
            Problem(beyond.place("column"), "wrong-type", message, number or "make a number of it before: `cast`")
        )
    for index, name in enumerate(beyond.per):
        group_column = rows.column(name, beyond.place("per", index))
        if group_column is not None and isinstance(group_column.type, Array | Map | Struct):
            message = f"`{name}` is {group_column.type}, by which rows are not grouped"
            rows.problems.append(Problem(beyond.place("per", index), "wrong-type", message, "take a column with single values"))
    new_bounds = _bounds(beyond, f"_sluice_bounds{len(bounds)}")
    name = next(
        (earlier_bounds.name for earlier_bounds in bounds if replace(earlier_bounds, name="") == replace(new_bounds, name="")),
        new_bounds.name,
    )
    bounds[replace(new_bounds, name=name)] = None
    value = f"CAST({identifier(beyond.column)} AS DOUBLE)"
    sql = f"({value} < {name}.low OR {value} > {name}.high)"
    return Checked(ColumnSql(sql, (beyond.column, *beyond.per)), BOOLEAN)


def _bounds(beyond: Beyond, name: str) -> Bounds:
    return Bounds(
        name, beyond.column, beyond.per, deviations=beyond.deviations, quantiles=beyond.quantiles, over=beyond.over, rows=beyond.rows,
        at_least=beyond.fewest,
    )  # fmt: skip


def _says(rule: Rule) -> str:
    beyond = rule.beyond
    if beyond is None:
        return rule.when or ""
    group = f" of the same {', '.join(beyond.per)}" if beyond.per else ""
    text = beyond.node.get("over")
    row_range = f"the {beyond.rows:,} newest rows" if beyond.rows else f"the rows of the last {text.text if text else ''}"
    if beyond.quantiles is not None:
        low, high = beyond.quantiles
        return f"{beyond.column} is not between the quantiles {low:g} and {high:g} of {row_range}{group}, once there are {beyond.fewest}"
    distance = f"{beyond.deviations or 0:g} deviations"
    return f"{beyond.column} is over {distance} from the mean of {row_range}{group}, once there are {beyond.fewest}"


def _changed(name: str, written: Written, landing: Landing) -> tuple[str, str] | None:
    """Returns the reason why the table lacks the measured values of a column, and the hint; None if it has them."""
    step = landing.changing(name)
    if name == written.into or (step is not None and step.name == "flag"):
        return "a `flag` writes its label into it", "write the label into a column of its own"
    if step is not None:
        return f"`{step.name}` computes it after `flag`", f"move `flag` behind `{step.name}`"
    return None if landing.has(name) else ("the table does not have it", "keep it in the table")


def _landing(written: Written, landing: Landing, input_names: Collection[str]) -> Iterator[Problem]:
    """The problems of moving rules: the table must hold the columns that they measure."""
    for beyond in (rule.beyond for rule in written.rules if rule.beyond is not None):
        if landing.mode.whole or landing.mode.groups:
            message = f"`beyond` compares with the rows that the table held before, and `write: {landing.into.write}` holds none of them"
            yield Problem(
                beyond.place(), "beyond-needs-rows", message, "flag into a table with `write: append`, and read that one"
            )
            return
        places = {beyond.column: beyond.place("column")} | {
            name: beyond.place("per", index) for index, name in enumerate(beyond.per)
        }
        for name, where in places.items():
            change = _changed(name, written, landing) if name in input_names else None
            if change:
                why, hint = change
                yield Problem(where, "beyond-changed", f"`{name}` is compared with that of the table, and {why}", hint)
        where = beyond.place("over" if beyond.over else "rows")
        problem = landing.time_problem("`beyond`", where, missing="beyond-needs-time", changed="beyond-changed-time")
        yield from [problem] if problem else []
