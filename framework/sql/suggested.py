"""SQL that a hint suggests, made from the author's own."""

from __future__ import annotations

import re
from typing import Protocol

from framework.base.types import Type
from framework.sql.reserved import WORDS

_LONGEST = 80  # characters of the author's SQL that a hint repeats
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|`([A-Za-z_][A-Za-z0-9_]*(?:[.][A-Za-z_][A-Za-z0-9_]*)*)`", re.DOTALL)


class HasSql(Protocol):
    """A part of an expression, or a whole one, that is checked."""

    @property
    def sql(self) -> str: ...


def code(sql: str) -> str:
    """Returns SQL in backquotes, or unchanged where it has backquotes itself."""
    return sql if "`" in sql else f"`{sql}`"


def written(piece: HasSql) -> str:
    """Returns SQL of a value as its author can write it, or `x` where that is too long."""
    sql = _QUOTED.sub(
        lambda match: match[1] if match[1] and WORDS.isdisjoint(match[1].lower().split(".")) else match[0], piece.sql
    )
    return sql if len(sql) <= _LONGEST else "x"


def cast(piece: HasSql, type: Type | str, function: str = "cast") -> str:
    """Returns SQL of a value that is cast."""
    sql = written(piece)
    return f"{function}({without_parentheses(sql)} as {type})"


def cast_hint(piece: HasSql, type: Type | str) -> str:
    return f"write {code(cast(piece, type))}"


def without_parentheses(sql: str) -> str:
    """Returns SQL without the parentheses around all of it."""
    depth = 0
    for index, character in enumerate(sql):
        depth += (character == "(") - (character == ")")
        if depth == 0 and index < len(sql) - 1:
            return sql
    return sql[1:-1] if sql.startswith("(") else sql
