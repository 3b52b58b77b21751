"""Tests of a pipeline: what is given, and what is to come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from framework.errors import Where


@dataclass(frozen=True)
class Message:
    """A message of a test, as Kafka would have it."""

    batch: int  # the first is 1
    topic: str  # as Kafka calls it
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class GivenRow:
    """A row of the table that a tested pipeline reads; of a column that is not named there is no value."""

    batch: int  # the first is 1
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A test: messages or rows, and the rows and bad rows that are to come of them, each by the columns that matter."""

    name: str
    where: Where
    given: tuple[Message | GivenRow, ...]
    expect: tuple[Mapping[str, Any], ...] | None  # None: rows are not looked at
    expect_bad: tuple[Mapping[str, Any], ...]

    @property
    def batches(self) -> range:
        return range(1, max(each.batch for each in self.given) + 1)
