"""The landing of a pipeline's rows, for a step that depends on later parts: later steps, the write mode and the table."""

from __future__ import annotations

from dataclasses import dataclass

from framework.model import Column, Step
from framework.plan.modes import Mode
from framework.spec import kinds


@dataclass(frozen=True, kw_only=True)
class Landing:
    """`later` are the steps behind the one that asks."""

    later: tuple[Step, ...]
    into: kinds.Into
    mode: Mode
    columns: tuple[Column, ...]  # of the table
    event_time: str | None  # the table's column with a row's time
    from_table: bool  # whether rows come from a table
    bad_rows: str  # what becomes of bad rows

    def has(self, name: str) -> bool:
        """Whether it is a column of the table."""
        return any(column.name == name for column in self.columns)

    def changing(self, name: str) -> Step | None:
        """The later step that computes a column again."""
        return next((each for each in self.later if name in dict(each.assign) or (each.each and each.each.into == name)), None)
