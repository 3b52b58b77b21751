"""SQL over a row's columns, with the names of the columns that it reads. The names come from the parser's tree."""

from __future__ import annotations

from collections.abc import Iterable


class ColumnSql(str):
    """The SQL as text, and the names of the columns in it. String operations on it give a plain `str`."""

    reads: frozenset[str]

    def __new__(cls, sql: str, reads: Iterable[str]) -> ColumnSql:
        expression = super().__new__(cls, sql)
        expression.reads = frozenset(reads)
        return expression


def columns_read(sql: str, columns: Iterable[str]) -> frozenset[str]:
    """The columns among `columns` that the SQL reads. A plain `str` does not name its columns, so it counts as reading all."""
    return frozenset(columns) & sql.reads if isinstance(sql, ColumnSql) else frozenset(columns)
