"""How rows are written to a table, as the plan carries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Write:
    """A write mode. Two are equal if they have the same name."""

    # Writes a Frame's good rows to the branch of a StagingTarget, and returns the numbers as BatchCounts.
    stage: Callable[[Any, Any], Any] = field(compare=False, repr=False)
    _: KW_ONLY
    name: str = ""
    keeps_rows: bool = field(default=False, compare=False)  # whether each row that lands stays in the table as it is
    adds: bool = field(default=False, compare=False)  # whether each row that lands is added, and nothing else happens
    by_key: bool = field(default=False, compare=False)  # whether `keys` identify a row
    versions: bool = field(default=False, compare=False)  # with `by_key`: whether a key can have several rows
    groups: bool = field(default=False, compare=False)  # whether a row is a total of many, which new rows change
    whole: bool = field(default=False, compare=False)  # each run computes all rows from another table
    # The numbers of changed rows: names in `Changed`, and their names in Iceberg's summary of a MERGE.
    changes: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def rows_change(self) -> bool:
        """Whether rows of the table are also changed and deleted."""
        return self.by_key or self.groups or self.whole
