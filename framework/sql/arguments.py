"""Arguments of functions: how many, of which types, and which must be literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.sql import patterns
from framework.sql.faults import ExpressionError, refused
from framework.sql.literals import whole
from framework.sql.pieces import Piece, as_timestamp
from framework.types import BINARY, BOOLEAN, DATE, INTEGRALS, STRING, TIMESTAMP, VOID, Array, Type, is_numeric

_TAKEN: dict[str, tuple[Type, ...]] = {
    "string": (STRING,),
    "binary": (BINARY,),
    "bytes": (STRING, BINARY),
    "boolean": (BOOLEAN,),
    "int": INTEGRALS[:3],
    "bigint": INTEGRALS,
    "date": (DATE, TIMESTAMP),
    "timestamp": (TIMESTAMP, DATE),
    "day": (DATE,),
    "moment": (TIMESTAMP,),
}
_HELP = {
    "string": "cast(x as string)",
    "binary": "cast(x as binary)",
    "bytes": "cast(x as string)",
    "int": "cast(x as int)",
    "bigint": "cast(x as bigint)",
    "date": "to_date(x)",
    "timestamp": "to_timestamp(x)",
    "day": "cast(x as date)",
    "moment": "cast(x as timestamp)",
    "boolean": "x <> 0",
}


@dataclass(frozen=True)
class Use:
    """One call: the function's name, its safe arguments, and its place in the text."""

    name: str
    arguments: tuple[Piece, ...]
    offset: int

    def take(self, *kinds: str) -> tuple[Piece, ...]:
        """The arguments, checked against their kinds; kinds with `?` can be missing at the end."""
        least = sum(not kind.endswith("?") for kind in kinds)
        given = len(self.arguments)
        if not least <= given <= len(kinds):
            signature = ", ".join(kind if not kind.endswith("?") else f"[{kind[:-1]}]" for kind in kinds)
            raise self.fault(f"takes {_number(least, len(kinds))}, not {given}", f"write {self.name}({signature})")
        return tuple(self.fit(piece, kind.rstrip("?")) for piece, kind in zip(self.arguments, kinds, strict=False))

    def some(self, least: int) -> tuple[Piece, ...]:
        """Any number of arguments of any type, but at least `least`."""
        if len(self.arguments) < least:
            hint = f"write {self.name}({', '.join('abc'[:least])})"
            raise self.fault(f"takes at least {least} argument{'s'[: least != 1]}", hint)
        return self.arguments

    def fault(self, why: str, hint: str, at: Piece | None = None) -> ExpressionError:
        return refused(at.offset if at else self.offset, "sql-type", f"{self.name} {why}", hint)

    def fit(self, piece: Piece, kind: str) -> Piece:
        """The argument as that kind; `any` takes all, `number` any number, `double` too, as Spark casts it."""
        type_name = "NULL" if piece.type == VOID else str(piece.type)
        if kind == "any":
            return piece
        if kind in ("double", "number"):
            if not is_numeric(piece.type):
                raise self.fault(f"takes a number here, not {type_name}", "cast(x as double)", piece)
            return piece
        if kind == "array":
            if not isinstance(piece.type, Array):
                raise self.fault(f"takes an array here, not {type_name}", "name an array, or split(text, ',')", piece)
            return piece
        if piece.type not in _TAKEN[kind]:
            name = {"bytes": "string or binary", "day": "date", "moment": "timestamp"}.get(kind, kind)
            raise self.fault(f"takes a {name} here, not {type_name}", _HELP[kind], piece)
        return as_timestamp(piece) if kind == "timestamp" else piece

    def integer(self, piece: Piece, low: int, high: int) -> int:
        """A literal whole number between bounds."""
        value = whole(piece)
        if value is None or not low <= value <= high:
            raise self.fault(f"takes a literal number from {low} to {high} here", "write the number itself", piece)
        return value

    def word(self, piece: Piece, allowed: Sequence[str]) -> str:
        """One of the allowed texts, as a literal; case does not matter."""
        value = patterns.text(piece, f"this argument of {self.name}").lower()
        if value not in allowed:
            raise self.fault(f"does not know '{value}'", f"one of {', '.join(allowed)}", piece)
        return value

    def sql(self, *arguments: str | Piece) -> str:
        return f"{self.name}({', '.join(each if isinstance(each, str) else each.sql for each in arguments)})"


def _number(least: int, most: int) -> str:
    amount = f"{least}" if least == most else f"{least} to {most}"
    return f"{amount} argument{'s'[: most != 1]}"
