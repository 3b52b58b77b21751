"""Quoting of data, names and a spec's text in Spark's SQL. No other module does this; `standard` quotes for other systems. A name is
quoted as `framework.base.types` quotes a field's name.

*Guarantee* A quoted text means itself, whatever characters it has, under the settings of `framework.sql.settings`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

from framework.base import types
from framework.plan.column_sql import ColumnSql

if TYPE_CHECKING:
    from framework.plan import Column

# `$` too: even if a session substituted variables, a literal would have none.
_ESCAPED = re.compile(r"[\\'$\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
# A literal, an identifier in backquotes, or a plain name, in the order in which a lexer tries them.
_TOKEN = re.compile(r"[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|[A-Za-z_]\w*", re.DOTALL)


def literal(text: str) -> str:
    """Returns a text as a literal."""
    return "'" + _ESCAPED.sub(lambda match: _escape(match.group()), text) + "'"


def literal_of(value: str | int | bool | date) -> str:
    """Returns a text, a whole number, a truth value or a date as a literal."""
    if isinstance(value, str):
        return literal(value)
    return f"DATE'{value.isoformat()}'" if isinstance(value, date) else str(value)


def _escape(character: str) -> str:
    return f"\\{character}" if character in "\\'" else f"\\u{ord(character):04x}"


def identifier(*names: str) -> str:
    """Returns a name, or a path of names, in backquotes."""
    return ".".join(map(types.identifier, names))


def present_or_null(columns: Iterable[Column], existing_names: Collection[str]) -> Iterator[str]:
    """Yields SQL of the columns under their names; null for a missing one, such as one that the table does not have yet."""
    for column in columns:
        name = identifier(column.name)
        yield name if column.name in existing_names else f"CAST(NULL AS {column.type.sql}) AS {name}"


def column_path(name: str, *fields: str) -> ColumnSql:
    """Returns a column, or a field of the struct that it holds."""
    return ColumnSql(identifier(name, *fields), (name,))


def substituted(sql: str, names: Mapping[str, str]) -> str:
    """Returns SQL in which some plain names are replaced by other SQL; quoted parts stay unchanged."""
    if not any(name in sql for name in names):
        return sql
    return _TOKEN.sub(lambda match: names.get(match.group(), match.group()), sql)
