"""SQL of an attempt: a struct of an expression's value and, where it throws for a row, of the reason with the values of its columns.

The function is `Attempt.java`. Where there is an error, the value is null; where there is none, the error is.
"""

from __future__ import annotations

from framework.plan.column_sql import ColumnSql
from framework.sql.quote import identifier

FUNCTION, QUIET = "_sluice_attempt", "_sluice_quiet_attempt"
MOST_SHOWN = 8
"""The most columns whose values an error names: each is code that Spark compiles."""


def attempt(sql: ColumnSql, quiet: bool = False) -> ColumnSql:
    """Returns an attempt at the expression. With `quiet`, the reason has no values of the row."""
    if quiet:
        return ColumnSql(f"{QUIET}({sql})", sql.reads)
    columns = [identifier(name) for name in sorted(sql.reads)[:MOST_SHOWN]]
    return ColumnSql(f"{FUNCTION}({', '.join((sql, *columns))})", sql.reads)
