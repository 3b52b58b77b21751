"""Bounds of a column by groups of rows, measured on what the pipeline's own table holds when a batch begins."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Bounds:
    """The rows of a batch have the low and the high bound of their group in a struct of this `name`, which is null if the group
    had too few values. The bounds are so many `deviations` from the mean, or `quantiles`, of the rows of the last `over` seconds
    or of the newest `rows`."""

    name: str
    column: str
    per: tuple[str, ...]
    _: KW_ONLY
    deviations: float | None
    quantiles: tuple[float, float] | None
    over: int | None
    rows: int | None
    at_least: int  # values
