"""Tables, and how rows are written to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from framework.base.errors import Where
from framework.plan.catalog import Catalog
from framework.plan.rule import ALL_ROWS, AllRows, Keyed, Rule, State
from framework.plan.side_table import BAD_ROW_COLUMNS, SideTable
from framework.plan.topic import Column
from framework.plan.totals import MEASURES, Totals
from framework.plan.write import Write


@dataclass(frozen=True)
class PartitionField:
    """A column and its partition transform: identity, year, month, day, hour, bucket or truncate."""

    transform: str
    column: str
    width: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.width}, ' if self.width else ''}{self.column})"


@dataclass(frozen=True, kw_only=True)
class SchemaChanges:
    """The schema changes, from the spec or the registry, that a run applies to its table. A column never gets a narrower type."""

    add: Literal["allow", "refuse"] = "allow"
    widen: Literal["allow", "refuse"] = "allow"
    drop: Literal["keep", "refuse"] = "keep"
    rename: Literal["allow", "refuse"] = "refuse"
    narrow: Literal["allow", "refuse"] = "refuse"


@dataclass(frozen=True, kw_only=True)
class Table:
    catalog: Catalog
    namespace: str
    name: str
    columns: tuple[Column, ...]
    write: Write
    partition_by: tuple[PartitionField, ...]
    sort_by: tuple[str, ...]
    format_version: int
    doc: str = ""
    masked: tuple[tuple[str, ...], ...] = ()  # paths of columns and fields of which there are no statistics
    rule: Rule = ALL_ROWS
    step_states: tuple[State, ...] = ()  # of steps that remember rows
    adopt: bool = field(default=False, repr=False)  # whether a table that already exists is taken over
    schema_changes: SchemaChanges = field(default=SchemaChanges(), repr=False)  # does not decide which rows are written
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)  # of the options of `into`

    @property
    def write_name(self) -> str:
        return self.write.name

    @property
    def identifier(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def keyed(self) -> Keyed | None:
        return self.rule if isinstance(self.rule, Keyed) else None

    @property
    def totals(self) -> Totals | None:
        return self.rule if isinstance(self.rule, Totals) else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row, if any do."""
        return self.rule.keys

    @property
    def rows_change(self) -> bool:
        """Whether a batch changes rows that the table already has."""
        return not isinstance(self.rule, AllRows)

    @property
    def readable(self) -> tuple[Column, ...]:
        """The columns that are for readers."""
        return tuple(column for column in self.columns if column.name != MEASURES)

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns that are computed from a message."""
        return self.rule.sent(self.columns)

    @property
    def states(self) -> tuple[State, ...]:
        return (*self.rule.states, *self.step_states)

    @property
    def words(self) -> str:
        """A description of keys and states. A table keeps its rows as long as this text stays the same. Empty without keys and states."""
        return "; ".join(text for text in (self.rule.words, *(state.says for state in self.step_states)) if text)

    @property
    def side_tables(self) -> tuple[SideTable, ...]:
        return (self.bad_rows_table,)

    @property
    def bad_rows_table(self) -> SideTable:
        return SideTable(self.bad_rows, BAD_ROW_COLUMNS)

    @property
    def bad_rows(self) -> str:
        return f"{self.identifier}__bad_rows"

    @property
    def second(self) -> Table:
        """The table that a rebuild fills next to this one."""
        return replace(self, name=f"{self.name}__rebuild")
