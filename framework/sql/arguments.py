"""One call of a function: its arguments, and the checks of literals among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.sql import patterns
from framework.sql.faults import ExpressionError, refused
from framework.sql.literals import whole
from framework.sql.pieces import Piece


@dataclass(frozen=True)
class Use:
    """The function's name, its arguments (lambdas too), and its place in the text."""

    name: str
    arguments: tuple[Piece, ...]
    offset: int

    def some(self, minimum: int, maximum: int | None = None) -> tuple[Piece, ...]:
        """Returns the arguments, or raises if there are too few or too many."""
        count = len(self.arguments)
        if count < minimum or (maximum is not None and count > maximum):
            amount = (
                f"{minimum}" if minimum == maximum else f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
            )
            plural = "s"[: amount not in ("1", "at least 1")]
            raise self.fault(
                f"takes {amount} argument{plural}, not {count}", f"write {self.name}({', '.join('abcdefg'[:minimum])})"
            )
        return self.arguments

    def fault(self, problem: str, hint: str, piece: Piece | None = None) -> ExpressionError:
        return refused(piece.offset if piece else self.offset, "sql-type", f"{self.name} {problem}", hint)

    def integer(self, piece: Piece, low: int, high: int) -> int:
        """Returns a literal whole number, which must lie between the bounds."""
        value = whole(piece)
        if value is None or not low <= value <= high:
            raise self.fault(f"takes a literal number from {low} to {high} here", "write the number itself", piece)
        return value

    def word(self, piece: Piece, allowed: Sequence[str]) -> str:
        """Returns a literal text in lower case, which must be one of the allowed ones."""
        value = patterns.text(piece, f"this argument of {self.name}").lower()
        if value not in allowed:
            raise self.fault(f"does not know '{value}'", f"one of {', '.join(allowed)}", piece)
        return value

    def sql(self, *arguments: str) -> str:
        """Returns SQL of the call, with these arguments in place of its own first ones."""
        return f"{self.name}({', '.join((*arguments, *(piece.sql for piece in self.arguments[len(arguments) :])))})"
