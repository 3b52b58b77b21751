"""SQL over a row's columns, as the plan carries it: with the columns that it reads, as the parser's tree has them."""

from __future__ import annotations

from collections.abc import Iterable


class ColumnSql(str):
    """The SQL as text, and the names of the columns in it. A text that is put together of it is a plain text again."""

    reads: frozenset[str]

    def __new__(cls, sql: str, reads: Iterable[str]) -> ColumnSql:
        expression = super().__new__(cls, sql)
        expression.reads = frozenset(reads)
        return expression


def columns_read(sql: str, columns: Iterable[str]) -> frozenset[str]:
    """Those of the columns that SQL reads: all of them if it is a plain text, which does not say."""
    return frozenset(columns) & sql.reads if isinstance(sql, ColumnSql) else frozenset(columns)
