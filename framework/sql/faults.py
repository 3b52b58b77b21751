"""What can be wrong with an expression, with the place in its text.

Codes: sql-syntax, sql-not-allowed, sql-type, unknown-column, sql-aggregate, sql-window, sql-subquery, sql-lambda,
sql-not-deterministic, sql-comment, sql-several-statements, sql-star, sql-alias, sql-parameter, sql-character, sql-too-long,
sql-too-deep; and of a select: sql-not-a-select, sql-clause, sql-table, sql-no-name, duplicate-column, not-a-condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from framework import spelling


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


MOST_LISTED = 20


def closest(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for a name that does not exist."""
    meant = spelling.closest(name, known)
    return f"did you mean `{meant}`?" if meant else otherwise


def listed(names: Iterable[str]) -> str:
    """The names for a hint, but never all of very many."""
    found = list(names)
    more = f" and {len(found) - MOST_LISTED:,} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more
