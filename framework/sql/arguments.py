"""One call of a function: its arguments, and what is asked of literals among them."""

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

    def some(self, least: int, most: int | None = None) -> tuple[Piece, ...]:
        """The arguments, if there are so many."""
        given = len(self.arguments)
        if given < least or (most is not None and given > most):
            amount = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            plural = "s"[: amount not in ("1", "at least 1")]
            raise self.fault(
                f"takes {amount} argument{plural}, not {given}", f"write {self.name}({', '.join('abcdefg'[:least])})"
            )
        return self.arguments

    def fault(self, why: str, hint: str, at: Piece | None = None) -> ExpressionError:
        return refused(at.offset if at else self.offset, "sql-type", f"{self.name} {why}", hint)

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

    def sql(self, *arguments: str) -> str:
        """The call, with these arguments in place of its own first ones."""
        return f"{self.name}({', '.join((*arguments, *(each.sql for each in self.arguments[len(arguments) :])))})"
