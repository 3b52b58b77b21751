"""Resolve what a pipeline expects of many rows: of the table as a batch would leave it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import holds_map, is_integral
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_expectation import Expectation as WrittenExpectation
from framework.plan import Column, SetExpectation, Table, TableChanges

Tables = Callable[[str, Where], TableChanges | None]


def plan_set_expectations(
    spec: WrittenPipeline, table: Table, names: Collection[str], tables: Tables, problems: list[Problem]
) -> tuple[SetExpectation, ...]:
    """Returns the expectations without problems. `names` belong to other expectations; `tables` finds another table."""
    columns = {column.name: column for column in table.readable}
    expected: dict[str, SetExpectation] = {}
    for expectation in spec.expect:
        if expectation.of_many is None or not expectation.gaps <= {"name", "else"}:
            continue
        problems_before = len(problems)
        problems.extend(_unknown(expectation, columns, table))
        resolved = None if len(problems) > problems_before else _resolved(expectation, columns, tables, problems)
        if resolved is None:
            continue
        if resolved.name in names or resolved.name in expected:
            message = f"there are two expectations `{resolved.name}`"
            problems.append(Problem(expectation.place(), "duplicate-name", message, "give each a `name`"))
        expected[resolved.name] = resolved
    return tuple(expected.values())


def _unknown(spec: WrittenExpectation, columns: Mapping[str, Column], table: Table) -> Iterator[Problem]:
    places = {name: spec.place("unique", index) for index, name in enumerate(spec.unique or ())}
    if spec.references is not None:
        places = {spec.column or "": spec.place("column")}
    for index, name in enumerate(spec.unique or ()):
        if name in (spec.unique or ())[:index]:
            yield Problem(spec.place("unique", index), "duplicate-name", f"`{name}` is listed twice", "name each column once")
    for name, where in places.items():
        if name not in columns:
            hint = did_you_mean(name, columns, the_names("column", columns))
            yield Problem(where, "unknown-column", f"the table {table.identifier} has no column `{name}`", hint)
        elif holds_map(columns[name].type):
            message = f"`{name}` is {columns[name].type}, whose values cannot be compared"
            yield Problem(where, "wrong-type", message, "take a column with single values")


def _resolved(
    spec: WrittenExpectation, columns: Mapping[str, Column], tables: Tables, problems: list[Problem]
) -> SetExpectation | None:
    otherwise: Literal["warn", "stop"] = "stop" if spec.else_ == "stop" else "warn"
    if spec.rows is not None:
        low, high = spec.rows
        says = f"the table has {low:,} to {high:,} rows"
        return SetExpectation(
            name=spec.name or says, where=spec.place(), says=says, otherwise=otherwise, kind="rows", least=low, most=high
        )
    if spec.unique is not None:
        says = f"{', '.join(spec.unique)} is unique"
        return SetExpectation(
            name=spec.name or says, where=spec.place(), says=says, otherwise=otherwise, kind="unique", columns=spec.unique
        )
    assert spec.references is not None and spec.column is not None
    other_table = tables(spec.references.table, spec.references.place("table"))
    if other_table is None:
        return None
    name = spec.references.column or spec.column
    other_columns = {column.name: column for column in (*other_table.columns, *other_table.kafka)}
    where = spec.references.place("column") if spec.references.column else spec.references.place()
    if name not in other_columns:
        hint = did_you_mean(name, other_columns, the_names("column", other_columns))
        problems.append(Problem(where, "unknown-column", f"{other_table.identifier} has no column `{name}`", hint))
        return None
    own_type, other_type = columns[spec.column].type, other_columns[name].type
    if own_type != other_type and not (is_integral(own_type) and is_integral(other_type)):
        message = f"`{spec.column}` is {own_type} here, and `{name}` is {other_type} in {other_table.identifier}"
        problems.append(Problem(where, "join-types", message, f"`cast: {{{spec.column}: {other_type}}}` in a step"))
        return None
    says = (
        f"{spec.column} is in {other_table.identifier}"
        if name == spec.column
        else f"{spec.column} is a {name} of {other_table.identifier}"
    )
    return SetExpectation(
        name=spec.name or says, where=spec.place(), says=says, otherwise=otherwise, kind="references", columns=(spec.column,),
        of=other_table, of_columns=(name,),
    )  # fmt: skip
