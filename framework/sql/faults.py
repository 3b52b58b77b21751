"""What can be wrong with an expression, with the place in its text.

Codes: sql-syntax, sql-not-allowed, sql-type, unknown-column, sql-aggregate, sql-window, sql-subquery, sql-lambda,
sql-not-deterministic, sql-comment, sql-several-statements, sql-star, sql-alias, sql-parameter, sql-character, sql-too-long,
sql-too-deep.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Fault:
    """One thing wrong; `offset` counts the text's characters from 0."""

    offset: int
    code: str
    message: str
    hint: str = ""


class ExpressionError(ValueError):
    """All that is wrong with one expression, in the order of the text; the first one can be asked directly."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = tuple(sorted(faults))

    @property
    def offset(self) -> int:
        return self.faults[0].offset

    @property
    def code(self) -> str:
        return self.faults[0].code

    @property
    def message(self) -> str:
        return self.faults[0].message

    @property
    def hint(self) -> str:
        return self.faults[0].hint


def refused(offset: int, code: str, message: str, hint: str = "") -> ExpressionError:
    return ExpressionError(Fault(offset, code, message, hint))


def closest(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for a name that does not exist."""
    spelling = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), spelling, 1, 0.6)
    return f"did you mean `{spelling[close[0]]}`?" if close else otherwise
