"""Resolve a pipeline's expectations. A single row that fails becomes a bad row, or the whole batch is checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from framework.base.errors import Problem, Where
from framework.base.types import BINARY, STRING, VOID, Array, Map, Type, folded
from framework.documents import written_values
from framework.documents.pipeline.written_expectation import TESTS, Expectation as WrittenExpectation
from framework.documents.rows import Rows
from framework.plan import Column, ColumnSql, Expectation, Fault, Keyed, Rule, Step
from framework.sql import unsent
from framework.sql.expressions import Checked, ExpressionError, guarded
from framework.sql.patterns import groups
from framework.sql.quote import identifier, literal


def plan_expectations(
    written: Iterable[WrittenExpectation], rows: Rows, rule: Rule, totals: Collection[str]
) -> tuple[tuple[Step, ...], tuple[Expectation, ...]]:
    """The step that checks single rows, and all expectations. Rows that only delete, and values that were not sent, are not checked.
    `totals` are columns that the table gets from many rows."""
    expected: list[Expectation] = []
    names: set[str] = set()
    all_columns, rows = rows.columns, rows.without_own()
    folded_names = {folded(column.name) for column in all_columns}
    rows_with_totals = replace(
        rows, columns=(*rows.columns, *(Column(name, VOID) for name in totals if folded(name) not in folded_names)), problems=[]
    )
    for expectation in written:
        if expectation.of_many:
            continue
        if not expectation.gaps <= {"name", "else"} or not (expectation.when or (expectation.column and _tests(expectation))):
            continue  # its problem was reported
        if totals_read := sorted(_condition(expectation, rows_with_totals)[2].reads.intersection(totals)) if totals else ():
            message = f"`{totals_read[0]}` is computed of many rows, and this expectation is about each row before `aggregate`"
            hint = "write it in a pipeline that reads this table: `from: {table: …}`"
            rows.problems.append(
                Problem(expectation.place("when" if expectation.when else "column"), "expects-totals", message, hint)
            )
            continue
        name, says, holds = _condition(expectation, rows)
        holds = _of_new_rows(holds, rule) if isinstance(rule, Keyed) else holds
        if name in names:
            hint = "give each a `name`"
            rows.problems.append(Problem(expectation.place(), "duplicate-name", f"there are two expectations `{name}`", hint))
        names.add(name)
        expected.append(
            Expectation(name=name, where=expectation.place(), says=says, holds=holds, otherwise=expectation.else_ or "quarantine")
        )
    row_expectations = [expectation for expectation in expected if expectation.otherwise == "quarantine"]
    if not row_expectations:
        return (), tuple(expected)
    faults = tuple(
        Fault(
            "expect",
            "expectation_failed",
            expectation.message,
            when=ColumnSql(f"NOT {expectation.holds}", expectation.holds.reads),
        )
        for expectation in row_expectations
    )
    messages = tuple(expectation.message for expectation in row_expectations)
    return (Step(name="expect", where=row_expectations[0].where, says=messages, faults=faults, columns=all_columns),), tuple(
        expected
    )


def _of_new_rows(holds: ColumnSql, keyed: Keyed) -> ColumnSql:
    deletes = (keyed.deletes,) if keyed.deletes else ()
    not_sent = (unsent.holds(marked, identifier(name)) for name, marked in keyed.unsent if name in holds.reads)
    return ColumnSql(f"({' OR '.join((*deletes, *not_sent, holds))})", holds.reads.union(*(sql.reads for sql in deletes)))


def _condition(spec: WrittenExpectation, rows: Rows) -> tuple[str, str, ColumnSql]:
    """An expectation's name, its text, and SQL that is true for a row that meets it and false for any other. A null fails."""
    if spec.when is not None:
        return spec.name or spec.when, spec.when, _never_null(rows.unguarded_condition(spec.when, spec.place("when")))
    key = _tests(spec)[0]
    column = rows.column(spec.column or "", spec.place("column"), kafka=True)
    type_ = column.type if column else VOID
    text, says = _test(spec, key, type_, rows)
    if type_ == VOID or text is None:
        return spec.name or says, says, ColumnSql("true", (spec.column or "",))
    return spec.name or says, says, _never_null(rows.unguarded_condition(text, spec.place(key), as_written=False))


def _never_null(checked: Checked) -> ColumnSql:
    return ColumnSql(f"coalesce({guarded(checked, quiet=True).sql}, false)", checked.sql.reads)


def _tests(spec: WrittenExpectation) -> list[str]:
    return [key for key in TESTS if getattr(spec, key) is not None]


def _test(spec: WrittenExpectation, key: str, type_: Type, rows: Rows) -> tuple[str | None, str]:
    """Returns the condition as an expression, or None after a problem, and in words."""
    name = spec.column or ""
    column = identifier(name)
    if key == "not_null":
        return f"{column} is not null", f"{name} is not null"
    if key == "length":
        low, high = spec.length or (0, 0)
        size = "size" if isinstance(type_, Array | Map) else "length"
        if type_ not in (STRING, BINARY, VOID) and size == "length":
            hint = "write a condition, such as `between`"
            rows.problems.append(Problem(spec.place(key), "wrong-type", f"`{name}` is {type_}, which has no length", hint))
            return None, name
        return f"{size}({column}) between {low} and {high}", f"the {size} of {name} is between {low} and {high}"
    if key == "matches":
        try:
            groups(spec.matches or "", 0)
        except ExpressionError as error:
            rows.refuse(error, "\n", spec.place(key))
            return None, f"{name} matches {spec.matches}"
        text = spec.matches or ""
        flags = "(?i)" if text.startswith("(?i)") else ""  # it counts only at the very beginning
        return f"{column} rlike {literal(f'{flags}^({text.removeprefix(flags)})$')}", f"{name} matches {text}"
    values = spec.between or spec.one_of or ()
    literals = [_literal(text, type_, key == "one_of", spec.place(key, index), rows) for index, text in enumerate(values)]
    if key == "between":
        says = f"{name} is between {values[0]} and {values[1]}"
        if type_ == STRING and written_values.are_numbers(values):
            message = f"`{name}` is string, and as texts {values[0]} and {values[1]} are not compared as numbers"
            hint = f"write `when: cast({name} as double) between {values[0]} and {values[1]}` in place of `column` and `between`"
            rows.problems.append(Problem(spec.place(key), "wrong-type", message, hint))
            return None, says
        if None not in literals and written_values.is_after(values[0], values[1], type_):
            message = f"`between` ends at {values[1]}, before its start {values[0]}"
            rows.problems.append(Problem(spec.place(key), "out-of-range", message, "write the smaller value first"))
        return None if None in literals else f"{column} between {literals[0]} and {literals[1]}", says
    return None if None in literals else f"{column} in ({', '.join(map(str, literals))})", f"{name} is one of {', '.join(values)}"


def _literal(text: str, type_: Type, equals: bool, where: Where, rows: Rows) -> str | None:
    """Returns a value as an SQL literal; if it is not of the column's type, reports a problem and returns None."""
    value = written_values.sql_literal(text, type_, equals)
    if value is None and type_ != VOID:
        hint = "write values of the column's type, or a condition: `when: …`"
        rows.problems.append(Problem(where, "wrong-type", f"`{text}` is not of the column's type, {type_}", hint))
    return value
