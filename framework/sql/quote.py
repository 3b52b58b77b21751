"""How data, names and a spec's text become part of Spark's SQL: the only place that quotes. One name
is quoted as `framework.types` quotes a field's.

Guarantee: what is quoted here means itself, whatever it holds, under the settings of `framework.sql.meaning`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from framework import types
from framework.model.column_sql import ColumnSql

# `$` too: should a session ever substitute variables, a literal still has none.
_ESCAPED = re.compile(r"[\\'$\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
# A literal, an identifier in backquotes, or a plain name, in the order in which a reader of SQL meets them.
_TOKEN = re.compile(r"[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|[A-Za-z_]\w*", re.DOTALL)


def literal(text: str) -> str:
    """A text as a literal."""
    return "'" + _ESCAPED.sub(lambda match: _escape(match.group()), text) + "'"


def _escape(character: str) -> str:
    return f"\\{character}" if character in "\\'" else f"\\u{ord(character):04x}"


def identifier(*names: str) -> str:
    """A name, or a path of names, in backquotes."""
    return ".".join(map(types.identifier, names))


def column_path(name: str, *fields: str) -> ColumnSql:
    """A column, or a field of the struct that it holds."""
    return ColumnSql(identifier(name, *fields), (name,))


def substituted(sql: str, names: Mapping[str, str]) -> str:
    """SQL with other SQL in place of some plain names; what is quoted stays as it is."""
    if not any(name in sql for name in names):
        return sql
    return _TOKEN.sub(lambda match: names.get(match.group(), match.group()), sql)
