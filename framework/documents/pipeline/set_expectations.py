"""Resolve what a pipeline expects of many rows: of the table as a batch would leave it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import holds_map, is_integral
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_expectation import Expectation as WrittenExpectation
from framework.plan import Column, SetExpectation, Table, TableSource

Tables = Callable[[str, Where], TableSource | None]


def resolve(
    spec: WrittenPipeline, table: Table, names: Collection[str], tables: Tables, problems: list[Problem]
) -> tuple[SetExpectation, ...]:
    """Those without problems. `names` are those of other expectations; `tables` finds another table."""
    columns = {column.name: column for column in table.readable}
    expected: dict[str, SetExpectation] = {}
    for each in spec.expect:
        if each.of_many is None or not each.gaps <= {"name", "else"}:
            continue
        before = len(problems)
        problems.extend(_unknown(each, columns, table))
        resolved = None if len(problems) > before else _resolved(each, columns, tables, problems)
        if resolved is None:
            continue
        if resolved.name in names or resolved.name in expected:
            message = f"there are two expectations `{resolved.name}`"
            problems.append(Problem(each.place(), "duplicate-name", message, "give each a `name`"))
        expected[resolved.name] = resolved
    return tuple(expected.values())


def _unknown(each: WrittenExpectation, columns: Mapping[str, Column], table: Table) -> Iterator[Problem]:
    places = {name: each.place("unique", at) for at, name in enumerate(each.unique or ())}
    if each.references is not None:
        places = {each.column or "": each.place("column")}
    for at, name in enumerate(each.unique or ()):
        if name in (each.unique or ())[:at]:
            yield Problem(each.place("unique", at), "duplicate-name", f"`{name}` is listed twice", "name each column once")
    for name, where in places.items():
        if name not in columns:
            hint = did_you_mean(name, columns, the_names("column", columns))
            yield Problem(where, "unknown-column", f"the table {table.identifier} has no column `{name}`", hint)
        elif holds_map(columns[name].type):
            message = f"`{name}` is {columns[name].type}, whose values cannot be compared"
            yield Problem(where, "wrong-type", message, "take a column with single values")


def _resolved(
    each: WrittenExpectation, columns: Mapping[str, Column], tables: Tables, problems: list[Problem]
) -> SetExpectation | None:
    otherwise: Literal["warn", "stop"] = "stop" if each.else_ == "stop" else "warn"
    if each.rows is not None:
        least, most = each.rows
        says = f"the table has {least:,} to {most:,} rows"
        return SetExpectation(
            name=each.name or says, where=each.place(), says=says, otherwise=otherwise, kind="rows", least=least, most=most
        )
    if each.unique is not None:
        says = f"{', '.join(each.unique)} is unique"
        return SetExpectation(
            name=each.name or says, where=each.place(), says=says, otherwise=otherwise, kind="unique", columns=each.unique
        )
    assert each.references is not None and each.column is not None
    of = tables(each.references.table, each.references.place("table"))
    if of is None:
        return None
    name = each.references.column or each.column
    there = {column.name: column for column in (*of.columns, *of.kafka)}
    where = each.references.place("column") if each.references.column else each.references.place()
    if name not in there:
        hint = did_you_mean(name, there, the_names("column", there))
        problems.append(Problem(where, "unknown-column", f"{of.identifier} has no column `{name}`", hint))
        return None
    own, other = columns[each.column].type, there[name].type
    if own != other and not (is_integral(own) and is_integral(other)):
        message = f"`{each.column}` is {own} here, and `{name}` is {other} in {of.identifier}"
        problems.append(Problem(where, "join-types", message, f"`cast: {{{each.column}: {other}}}` in a step"))
        return None
    says = f"{each.column} is in {of.identifier}" if name == each.column else f"{each.column} is a {name} of {of.identifier}"
    return SetExpectation(
        name=each.name or says, where=each.place(), says=says, otherwise=otherwise, kind="references", columns=(each.column,), of=of,
        of_columns=(name,),
    )  # fmt: skip
