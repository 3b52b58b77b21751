"""Tests of a pipeline: the given messages or rows, and the expected rows and bad rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from framework.base.errors import Where


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message of a test, with the fields of a Kafka message."""

    batch: int  # the first is 1
    topic: str  # its name in Kafka
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None = None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class SpecTestRow:
    """A row of the table that a tested pipeline reads. A column that `values` lacks is null."""

    batch: int  # the first is 1
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SpecTest:
    """A test: messages or rows, and the expected rows and bad rows, each with the columns to compare."""

    name: str
    where: Where
    given: tuple[Message | SpecTestRow, ...]
    expect: tuple[Mapping[str, Any], ...] | None  # None: rows are not compared
    expect_bad: tuple[Mapping[str, Any], ...]
    tables: Mapping[str, tuple[Mapping[str, Any], ...]] = field(
        default_factory=dict
    )  # rows of the tables that steps and selects read

    @property
    def batches(self) -> range:
        return range(1, max((entry.batch for entry in self.given), default=1) + 1)
