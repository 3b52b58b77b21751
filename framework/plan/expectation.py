"""Expectations: of single rows, and of many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from framework.base.errors import Where
from framework.plan.column_sql import ColumnSql
from framework.plan.source import TableChanges


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A condition on rows: `holds` is SQL that is true for a row that meets the condition."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: str
    holds: ColumnSql
    otherwise: Literal["quarantine", "warn", "stop"]

    @property
    def message(self) -> str:
        return self.says if self.name == self.says else f"{self.name}: {self.says}"


@dataclass(frozen=True, kw_only=True)
class SetExpectation:
    """A condition on many rows, checked on the table as a batch would leave it: the `columns` of each row of the batch are unique
    there, or the table `of` has them, too, or the table has a certain number of rows."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: str
    otherwise: Literal["warn", "stop"]
    kind: Literal["unique", "references", "rows"]
    columns: tuple[str, ...] = ()
    of: TableChanges | None = None  # the other table
    of_columns: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
