"""Staging for write modes: the attempt's branch, rows by their keys, and the state that a pipeline keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from framework.base.types import Type
from framework.core.rows import counts
from framework.core.rows.counts import BatchCounts
from framework.core.rows.frame import Frame
from framework.core.rows.pins import NO_PINS, Pins
from framework.core.rules import protocol
from framework.core.rules.protocol import Position, Range
from framework.core.sources.source import SourceReader
from framework.plan import Keyed, Pipeline
from framework.plan.totals import Totals
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameWriterV2

    from framework.core.context.context import Context
    from framework.core.iceberg.lake import TableStore


_SMALL_BATCH = 20_000  # messages


@dataclass(frozen=True, kw_only=True)
class StagingTarget:
    """The target of an attempt's writes, and the source of its rows. `reached` is the position that its snapshot is for; `table` is the
    table as it was opened."""

    context: Context
    lake: TableStore
    pipeline: Pipeline
    attempt: str
    table: Any
    reached: Position | None  # None where nothing is written
    source: SourceReader
    range_: Range
    pins: Pins = NO_PINS

    @property
    def size(self) -> int:
        """The number of messages."""
        return self.range_.size

    @property
    def spark(self) -> Any:
        return self.context.spark

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        table = self.pipeline.table
        return identifier(table.catalog.name, table.namespace, table.name)

    @property
    def keyed(self) -> Keyed:
        """The keys of a keyed table."""
        rule = self.pipeline.table.rule
        assert isinstance(rule, Keyed)
        return rule

    @property
    def totals(self) -> Totals:
        """The description of the totals that the table holds."""
        rule = self.pipeline.table.rule
        assert isinstance(rule, Totals)
        return rule

    @property
    def replays(self) -> bool:
        """Whether the messages are those of bad rows, whose partitions have been read further."""
        return self.reached is not None and self.reached.replay

    @property
    def summary(self) -> Mapping[str, str]:
        """The properties for the snapshot's summary."""
        if self.reached is None:
            return {}
        joined = {join.source.identifier: self.pins.snapshot(join.source) for join in self.pipeline.joins}
        if self.pipeline.bounds:
            measured = self.pins.measured.get(self.pipeline.bounds[0])
            joined[self.pipeline.table.identifier] = measured.snapshot if measured else None
        waits = self.pipeline.rows_wait
        return {
            protocol.ATTEMPT: self.attempt,
            protocol.POSITION: self.reached.short_text(),
            **({protocol.JOINED: json.dumps(joined)} if joined else {}),
            **({protocol.TIME: str(self.pins.time)} if waits and self.pins.time is not None else {}),
        }

    def with_newest(self, newest_time: int) -> StagingTarget:
        """The target with a position that has the greatest time of rows so far."""
        reached = self.reached
        return self if reached is None else replace(self, reached=replace(reached, newest=max(newest_time, reached.newest)))

    @cached_property
    def column_types(self) -> Mapping[str, Type]:
        """The types of the table's columns, by their names."""
        return {field.name: field.type for field in self.lake.existing(self.table).columns}

    def typed(self, name: str, alias: str = "") -> str:
        """SQL of a column with its type in the table, which may be wider than that of a batch."""
        return f"CAST({f'{alias}.' if alias else ''}{identifier(name)} AS {self.column_types[name].sql})"

    def branch(self, name: str) -> str:
        return f"{self.name}.{identifier(f'branch_{name}')}"

    def published_branch(self, name: str) -> str:
        """A published branch as the attempt sees it, which asks no catalog (`SecretCatalog.java`)."""
        return self.branch(f"{name}@{self.attempt}" if self.attempt else name)

    @property
    def attempt_branch(self) -> str:
        """The attempt's branch in SQL."""
        return self.branch(protocol.BRANCH + self.attempt)

    def rows(self, frame: Frame) -> DataFrame:
        """The rows that land, in one task where they are few: sorting or grouping them then shuffles none."""
        return frame.good.coalesce(1) if self.size <= _SMALL_BATCH and not self.pipeline.explodes else frame.good

    def counted(self, frame: Frame) -> BatchCounts:
        """The counts of the pass over the batch that has just ended."""
        return counts.counted(self.spark, self.pipeline, frame.observed)

    def writer(self, rows: DataFrame) -> DataFrameWriterV2:
        """A writer of rows to the attempt's branch, with the summary."""
        writer = rows.writeTo(self.attempt_branch)
        for key, value in self.summary.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer
