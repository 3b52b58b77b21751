"""The landing of a pipeline's rows, for a step that depends on later parts: later steps, the write mode and the table."""

from __future__ import annotations

from dataclasses import dataclass

from framework.base.errors import Problem, Where
from framework.documents.pipeline.row_time import RowTime, holders, holders_after
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.plan import Column, Step
from framework.plan.write import Write


@dataclass(frozen=True, kw_only=True)
class Landing:
    """`earlier` and `later` are the steps before and after the one that asks."""

    earlier: tuple[Step, ...]
    later: tuple[Step, ...]
    into: WrittenInto
    mode: Write
    columns: tuple[Column, ...]  # of the table
    time: RowTime | None  # None for whole selects, whose rows have no time of their own
    orders_by_event_time: bool  # whether the table stores the topic's event time to put rows in order
    from_table: bool  # whether rows come from a table
    bad_rows: str  # what becomes of bad rows

    def has(self, name: str) -> bool:
        """Whether the table has a column of this name."""
        return any(column.name == name for column in self.columns)

    def changing(self, name: str) -> Step | None:
        """Return the later step that gives the column other values."""
        for step in self.later:
            if self.has(name) and name not in holders((name,), step):
                return step
        return None

    def names_of(self, name: str) -> frozenset[str]:
        """Return the columns that hold the column's values after the last step."""
        return holders_after(name, self.later)

    def holds_time(self, name: str) -> bool:
        """Whether the column holds a row's time before the step that asks."""
        return self.time is not None and name in holders_after(self.time.source_column, self.earlier)

    def time_problem(self, step: str, where: Where, missing: str, changed: str) -> Problem | None:
        """Return the problem of a `step` that compares times with those of the table's rows, if the table does not keep them. Its code
        is `missing` or `changed`."""
        if self.mode.groups or (self.time is not None and self.time.column is not None):
            return None
        if self.time is None or self.time.lost_by is None:
            message = f"{step} compares times, and the table keeps none: neither the topic's `event_time` nor Kafka's timestamp"
            return Problem(where, missing, message, "keep the column of `event_time`, or remove `kafka_columns: false`")
        column, changer = self.time.last_column, self.time.lost_by
        if changer.masks:
            how, hint = "masks it", f"leave `{column}` out of `mask`"
        elif any(output_column.name == column for output_column in changer.columns):
            how, hint = (
                "gives it other values",
                f"let `{changer.name}` write into another column, and keep `{column}` in the table",
            )
        else:
            how, hint = "removes it", f"keep `{column}` in the table"
        message = f"{step} compares the time of a row, `{column}`, with those in the table, and `{changer.name}` {how}"
        return Problem(where, changed, message, hint)
