"""How data, names and a spec's text become part of Spark's SQL: the only place that quotes. One name
is quoted as `framework.types` quotes a field's.

Guarantee: what is quoted here means itself, whatever it holds, under the settings of `framework.sql.meaning`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from framework import types

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


def columns(sql: str) -> set[str]:
    """The names in backquotes, and Sluice's own, that stand in SQL. A name behind a point is a struct's field."""
    found = (match for match in _TOKEN.finditer(sql) if sql[match.start() - 1 : match.start()] != ".")
    return {_column(match.group()) for match in found} - {""}


def _column(token: str) -> str:
    if token.startswith("`"):
        return token[1:-1].replace("``", "`")
    return token if token.startswith("_kafka_") or token == "_event_time" else ""


def substituted(sql: str, names: Mapping[str, str]) -> str:
    """SQL with other SQL in place of some plain names; what is quoted stays as it is."""
    if not any(name in sql for name in names):
        return sql
    return _TOKEN.sub(lambda match: names.get(match.group(), match.group()), sql)
