"""Rows of a table that are totals of many rows: of each group, or of each group and window of time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from framework.base.types import Struct, Type
from framework.plan.topic import Column

WINDOW_START, WINDOW_END = "window_start", "window_end"
MEASURES = "_measures"
"""The column with the parts of measures that cannot be added up themselves, such as an average."""
ROWS = "_sluice_rows"  # a field of it: how many rows the group has
TIME, ORDER = "_sluice_time", "_sluice_order"  # of a row before it is added up
NTH_ITEM = "nth"  # a field of the order: which item of its message a row is
OPEN_SINCE = "_sluice_open_since"  # the time before which windows are closed


@dataclass(frozen=True)
class Measure:
    """A value of each group, computed by a `function` of `framework.sql.aggregates`."""

    name: str
    text: str  # as the spec has it
    function: str
    _: KW_ONLY
    type: Type
    argument: Type | None  # the type of the expression that it is computed from; None for `count(*)`

    @property
    def row_column(self) -> str:
        """The column of a row that has the value of the argument."""
        return f"_sluice_of_{self.name}"


@dataclass(frozen=True, kw_only=True)
class Window:
    """Windows of time in seconds, which begin at multiples of `every`. With a greater `size`, a row is in several windows."""

    column: str
    every: int
    size: int
    late_after: int | None = None  # a row that is older than the newest row by more than this is too late


@dataclass(frozen=True)
class Groups:
    """The grouping of rows, and the totals of each group."""

    by: tuple[str, ...]
    window: Window | None
    measures: tuple[Measure, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.by, *((WINDOW_START,) if self.window else ()))


@dataclass(frozen=True, kw_only=True)
class Totals(Groups):
    """The description of the totals that the table holds."""

    order: tuple[str, ...]  # the columns that say which of two rows is the first
    nth: bool = False  # whether rows are items of lists, whose position is the last column of the order
    rows: tuple[Column, ...]  # of a row before it is added up
    hidden: Struct | None  # the type of the column `MEASURES`
    before: str = ""  # stands for the earlier steps, if rows of the source can be subtracted
    takes_off: bool = False  # whether deleted rows of the source are subtracted; else their groups are computed again

    versions: ClassVar[bool] = False
    newest_only: ClassVar[bool] = False
    states: ClassVar[tuple[()]] = ()

    def sent(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns that are computed from a message, before rows are added up."""
        return self.rows

    @property
    def late_after(self) -> int | None:
        """Seconds after which a window closes; None: never."""
        return self.window.late_after if self.window else None

    @property
    def words(self) -> str:
        """A description. A table keeps its rows as long as this text stays the same."""
        title = f"totals of each {', '.join(self.keys)}" if self.keys else "totals"
        window_text = (
            f", windows of {self.window.size} s every {self.window.every} s by {self.window.column}" if self.window else ""
        )
        steps_text = f", steps {self.before}" if self.before else ""
        return f"{title}: {', '.join(f'{measure.name} = {measure.text}' for measure in self.measures)}{window_text}{steps_text}"
