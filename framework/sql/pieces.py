"""A part of an expression made safe: its SQL that never throws, its type, and when the original would have thrown.

`error` follows the order in which Spark evaluates: an operator whose first argument is null never evaluates the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from framework.sql.faults import refused
from framework.sql.quote import identifier
from framework.types import DATE, TIMESTAMP, Type

LARGEST = 60_000
"""Characters of safe SQL: forms that name their argument twice double with every level."""

NULL = "null"
"""Marks a form that is null, for arguments that are not null, exactly where the original throws."""


@dataclass(frozen=True)
class Piece:
    """`constant` is the value of a literal (a negative number with its sign), None for everything else and for NULL."""

    sql: str
    type: Type
    error: str | None
    _: KW_ONLY
    offset: int
    constant: str | None = None


def any_of(*conditions: str | None) -> str | None:
    """Join with OR the conditions that can be true."""
    can = [condition for condition in conditions if condition is not None]
    if len(can) < 2:
        return can[0] if can else None
    return f"({' OR '.join(can)})"


def all_of(*conditions: str | None) -> str | None:
    """Join with AND. A condition that cannot be true makes the result None; an empty one has no effect."""
    if any(condition is None for condition in conditions):
        return None
    needed = [condition for condition in conditions if condition]
    assert needed, "at least one condition is not empty"
    return needed[0] if len(needed) == 1 else f"({' AND '.join(needed)})"


def present(piece: Piece) -> str:
    return "" if piece.constant is not None else f"({piece.sql} IS NOT NULL)"


def within_limit(piece: Piece) -> Piece:
    size = len(piece.sql) + len(piece.error or "")
    if size > LARGEST:
        raise refused(
            piece.offset,
            "sql-too-long",
            "the expression is too large once every operation in it is made safe",
            "cut it into several steps",
        )
    return piece


def strict(
    offset: int,
    sql: str,
    type: Type,
    arguments: Sequence[Piece],
    fails: str | None = None,
    backwards: bool = False,
    eager: bool = False,
) -> Piece:
    """An operator that is null when an argument is. `fails` is NULL, or a condition that holds for arguments that are not null.
    Arguments are evaluated in their order, or `backwards`, up to the first null one; all of them if `eager`."""
    # Before the errors, which are many times as long for many arguments.
    within_limit(Piece(sql, type, None, offset=offset))
    order = list(reversed(arguments)) if backwards else list(arguments)
    errors: list[str | None] = []
    before: list[str] = []
    for argument in order:
        errors.append(argument.error if eager else all_of(*before, argument.error))
        before.append(present(argument))
    if fails is not None:
        errors.append(all_of(*before, f"({sql} IS NULL)" if fails == NULL else fails))
    return within_limit(Piece(sql, type, any_of(*errors), offset=offset))


def as_timestamp(piece: Piece) -> Piece:
    """A date cast to a timestamp. Spark's own cast, even try_cast, throws for dates some 290,000 years away."""
    if piece.type != DATE:
        return piece
    if piece.constant is not None:
        return replace(piece, sql=f"cast({piece.sql} AS TIMESTAMP)", type=TIMESTAMP)
    fits = f"({piece.sql} >= date'-290308-12-22' AND {piece.sql} <= date'+294247-01-10')"
    return strict(piece.offset, f"cast(CASE WHEN {fits} THEN {piece.sql} END AS TIMESTAMP)", TIMESTAMP, (piece,), f"(NOT {fits})")


def column(name: str, type: Type, offset: int) -> Piece:
    return Piece(identifier(name), type, None, offset=offset)
