"""Errors of an expression, each with its place in the text.

Codes: sql-syntax, sql-not-allowed, sql-type, unknown-column, sql-aggregate, sql-window, sql-subquery, sql-lambda,
sql-not-deterministic, sql-comment, sql-several-statements, sql-star, sql-alias, sql-parameter, sql-character, sql-too-long,
sql-too-deep; and of a select: sql-not-a-select, sql-clause, sql-table, sql-no-name, duplicate-column, not-a-condition.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class ExpressionFault:
    """One error; `offset` counts the text's characters from 0."""

    offset: int
    code: str
    message: str
    hint: str = ""


class ExpressionError(ValueError):
    """All errors of one expression, in the order of the text. The attributes are those of the first error."""

    def __init__(self, *faults: ExpressionFault) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = tuple(sorted(faults))
        first_fault = self.faults[0]
        self.offset, self.code, self.message, self.hint = (
            first_fault.offset,
            first_fault.code,
            first_fault.message,
            first_fault.hint,
        )


def refused(offset: int, code: str, message: str, hint: str = "") -> ExpressionError:
    return ExpressionError(ExpressionFault(offset, code, message, hint))
