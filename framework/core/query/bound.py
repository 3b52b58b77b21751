"""A select of DuckDB's SQL over `input`, the rows of one table, checked before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb

from framework.base.errors import Problem, SluiceError, Where
from framework.base.types import Array, Map, Struct, Type
from framework.core.query.database import CLOSED
from framework.core.query.errors import duckdb_errors
from framework.core.query.statement import single_select, table_names
from framework.plan import Table
from framework.sql.standard import identifier

INPUT = "input"
_NAMES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP", "binary": "BLOB"}


def checked(query: str, whose: str) -> str:
    """The query, if it is one select that reads `input` alone. `whose` query it is, is part of the hint."""
    select = single_select(query)
    for parts in table_names(select):
        if len(parts) > 1 or parts[0].lower() != INPUT:
            name = ".".join(parts)
            hint = f"the query of {whose} reads `{INPUT}`, the rows of its table"
            raise SluiceError("unknown-table", f"there is no table `{name}`", hint)
    return select


def bind(query: str, table: Table, whose: str) -> None:
    """Checks the names and types of the query on an empty table with the columns of the real one."""
    select = checked(query, whose)
    columns = ", ".join(_columns((column.name, column.type) for column in table.columns))
    with duckdb_errors(first_line=1), duckdb.connect(config=CLOSED) as database:
        database.execute(f"CREATE TABLE {INPUT} ({columns})")
        database.execute(f"DESCRIBE {select}")


def problem(query: str, table: Table, whose: str, where: Where) -> Problem | None:
    """The problem of a query at its place in the specs, if it has one."""
    try:
        bind(query, table, whose)
    except SluiceError as error:
        message = " ".join(line.strip() for line in error.message.splitlines())
        return Problem(where, error.code, message, error.hint)
    return None


def _columns(columns: Iterable[tuple[str, Type]]) -> Iterator[str]:
    yield from (f"{identifier(name)} {_type(type_)}" for name, type_ in columns)


def _type(type_: Type) -> str:
    match type_:
        case Array():
            return f"{_type(type_.element)}[]"
        case Map():
            return f"MAP({_type(type_.key)}, {_type(type_.value)})"
        case Struct():
            return f"STRUCT({', '.join(_columns((field.name, field.type) for field in type_.fields))})"
    return _NAMES.get(type_.sql.lower(), type_.sql)
