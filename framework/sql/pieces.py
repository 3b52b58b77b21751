"""A part of an expression: its SQL, its type, and whether it can fail for a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

from framework.base.types import Type
from framework.sql.faults import refused
from framework.sql.quote import identifier

LARGEST = 60_000
"""Characters of SQL: guards of memory name their argument twice, and double with every level."""


@dataclass(frozen=True)
class Piece:
    """A part of an expression. `constant` is the value of a literal (a negative number with its sign), None for everything else and for
    NULL. `arrow` is the front of a lambda's SQL, with its parameters."""

    sql: str
    type: Type
    fails: bool = False
    _: KW_ONLY
    offset: int
    constant: str | None = None
    arrow: str = ""

    def __post_init__(self) -> None:
        if len(self.sql) > LARGEST:  # checked before a larger expression repeats it
            raise refused(self.offset, "sql-too-long", "the expression is too large", "cut it into several steps")


def composed(offset: int, sql: str, type: Type, parts: Iterable[Piece], fails: bool = True) -> Piece:
    """Returns a piece made of others; it can fail if they can."""
    return Piece(sql, type, fails or any(part.fails for part in parts), offset=offset)


def guard(fits: str, value: str, message: str) -> str:
    """Returns SQL of a value, or an error of the row where `fits` is false. `Cause.java` leaves the guard out of the error's words."""
    return f"CASE WHEN ({fits}) IS NOT FALSE THEN {value} ELSE raise_error('{message}') END"


def column(name: str, type: Type, offset: int) -> Piece:
    return Piece(identifier(name), type, offset=offset)
