"""Rules by which rows that come become rows of a table: each stays, or the newest of each key, or totals of groups."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, TypeAlias

from framework.plan.column_sql import ColumnSql
from framework.plan.topic import Column
from framework.plan.totals import Totals

IS_CURRENT = "is_current"
VERSION = {
    "valid_from": "Since when the row was so",
    "valid_to": "Until when it was so: then another version of its key came, or its end; null of a current one",
    IS_CURRENT: "Whether it is the newest version of its key, and not deleted",
}  # columns of a table that keeps all versions


@dataclass(frozen=True)
class State:
    """Rows that a pipeline remembers from batch to batch, with these columns of its table, on branches that no reader sees."""

    name: str  # letters
    columns: tuple[str, ...]
    says: str  # a description; a table keeps its state as long as this text stays the same
    _: KW_ONLY
    keep_for: int | None = None  # seconds; None: for ever
    outlives_rebuild: bool = False  # whether a rebuild adds to the state instead of starting with an empty one


@dataclass(frozen=True)
class AllRows:
    """Each row that comes is a row of the table."""

    keys: ClassVar[tuple[str, ...]] = ()
    order: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[str] = ""
    states: ClassVar[tuple[State, ...]] = ()
    versions: ClassVar[bool] = False
    newest_only: ClassVar[bool] = False

    def sent(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns of the table that are computed from a message."""
        return columns


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """Rows with keys. The table keeps the newest row of each key, or with `versions` all rows. Of two rows with the same key the
    newer one has the greater `order`, compared column by column; null is the oldest. With `partition`, Kafka's time in it is first made
    to rise (`framework/core/staging/rising.py`), so that a later offset of a partition is newer even if Kafka's clock stepped back."""

    keys: tuple[str, ...]
    order: tuple[str, ...]
    versions: bool
    deletes: ColumnSql | None  # true for a row that deletes the rows of its key
    ends: str | None  # SQL over a message, true for one that deletes the rows of its key whatever the steps do
    truncates: str | None  # SQL over a message that deletes the rows of all keys
    remember: int  # seconds that a deleted key is remembered
    says: str  # the rule for deletes, in words
    stands_in: bool  # whether Kafka's timestamp replaces the `order` of a message that deletes
    unsent: tuple[tuple[str, str], ...] = ()  # columns, and SQL over `?` that is true for an unchanged value that was not sent
    partition: tuple[str, ...] = ()  # columns that name a message's partition, where its offset decides before Kafka's time

    @property
    def newest_only(self) -> bool:
        """Whether the table has one row of each key, so that a message that is read twice changes nothing."""
        return not self.versions

    @property
    def words(self) -> str:
        """A description of the keys. A table keeps its rows as long as this text stays the same."""
        keys, order = ", ".join(self.keys), self.order[0]
        return f"all versions of each {keys}, by {order}" if self.versions else f"one row per {keys}, the newest by {order}"

    @property
    def states(self) -> tuple[State, ...]:
        return (self.deletes_state,)

    @property
    def deletes_state(self) -> State:
        """The deleted keys and the order of each delete, so that an older row that arrives late does not bring its key back."""
        columns = tuple(dict.fromkeys((*self.keys, *self.order)))
        return State("deletes", columns, self.words, keep_for=self.remember, outlives_rebuild=True)

    def sent(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns of the table that are computed from a message."""
        return tuple(column for column in columns if not self.versions or column.name not in VERSION)


Rule: TypeAlias = AllRows | Keyed | Totals
ALL_ROWS = AllRows()
