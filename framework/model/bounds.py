"""Bounds of a column by groups of rows, measured on what the pipeline's own table holds when a batch begins."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field


@dataclass(frozen=True)
class Bounds:
    """`low` and `high` are SQL of aggregates over the values `x`. The rows of a batch have both in a struct of this `name`; it is null
    where a group had too few values."""

    name: str
    column: str
    per: tuple[str, ...]
    _: KW_ONLY
    low: str
    high: str
    at_least: int  # values
    over: int | None  # seconds before the newest row
    rows: int | None  # the newest ones of each group
    snapshot: int | None = field(
        default=None, compare=False, repr=False
    )  # of the table when a batch begins; None: it has no rows
    newest: int | None = field(default=None, compare=False, repr=False)  # its newest time then, in microseconds
