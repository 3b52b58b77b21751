"""A table as a source: all of it, or what its commits changed.

The position is the sequence number of the last commit that was read. Compactions are no news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import number
from framework.core.iceberg.metadata import Metadata
from framework.core.rows.pins import Pins
from framework.core.rules import forgotten
from framework.core.rules.protocol import Partition, Position, Range, TopicState
from framework.core.rules.refusals import source_lost
from framework.core.sources import changes, commits
from framework.core.sources.changes import COMMIT, NOTHING, ROW
from framework.core.sources.commits import Snapshot
from framework.plan import FROM_COLUMNS, OLD, Catalog, Lookup, Pipeline, TableChanges
from framework.sql.quote import identifier, present_or_null

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from framework.core.iceberg.lake import TableStore

_AS_NOW = {True: (f"false AS {OLD}", "false AS _sluice_before"), False: ()}


def _key(table: Metadata) -> Partition:
    """The key of a joined table in a position. A table that was created again has another key."""
    return f"joined {table.uuid}/0"


@dataclass(frozen=True)
class TableReader:
    """A table's current rows as a source. All of them are one range."""

    pipeline: Pipeline
    source: TableChanges
    pins: Pins

    def topic_state(self) -> TopicState:
        table, main = self._current()
        ends = {self.source.partition: number(main)}
        if self.source.reads == "all":  # else only new rows of the table are looked up in joined tables
            ends |= dict(map(self._joined, self.pipeline.joins))
        return TopicState(f"catalog {self.source.catalog.name}", {self.source.identifier: table.uuid}, {}, ends)

    def ids(self) -> Mapping[str, str]:
        return {self.source.identifier: self._current()[0].uuid}

    def starts(self, state: TopicState, known_topics: Mapping[str, str]) -> dict[Partition, int]:
        return {}

    def next(self, position: Position, state: TopicState) -> Range | None:
        is_same = (position.topics, position.spec) == (state.topics, self.pipeline.spec)
        is_read = is_same and position.ends.keys() == state.ends.keys() and not self._have_news(position)
        return None if is_read else Range.of_all(state.ends, self.rows())

    def _have_news(self, position: Position) -> bool:
        joined_tables = [self._looked_up(join)[0] for join in self.pipeline.joins]
        tables = {
            self.source.partition: self._current()[0],
            **{_key(joined_table): joined_table for joined_table in joined_tables},
        }
        return any(commits.news(table, position.ends[key]) != 0 for key, table in tables.items())

    def _joined(self, join: Lookup) -> tuple[Partition, int]:
        """The key of a joined table, and the number of its commit that a batch reads."""
        table, main = self._looked_up(join)
        return _key(table), number(table.snapshots.get(self.pins.snapshot(join.source) or -1, main))

    def _looked_up(self, join: Lookup) -> tuple[Metadata, Snapshot]:
        return commits.current(self.pipeline, join.source, "in which {} looks rows up")

    def lag(self, range_: Range | None) -> int:
        """The number of rows that wait."""
        return range_.waiting if range_ else 0

    def at_most(self, state: TopicState) -> int:
        return self.rows()

    def rows(self) -> int:
        """The number of rows of the table."""
        return metadata.rows(metadata.summary(self._current()[1]))

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        table, _ = self._current()
        snapshot = commits.read_at(table, self.source, range_.ends[self.source.partition])
        name = identifier(self.source.catalog.name, *self.source.identifier.split("."))
        rows = spark.read.option("versionAsOf", snapshot["snapshot-id"]).table(name)
        return rows.selectExpr(*present_or_null((*self.source.columns, *self.source.kafka), rows.columns))

    def _current(self) -> tuple[Metadata, Snapshot]:
        return commits.current(self.pipeline, self.source)


@dataclass(frozen=True)
class ChangesReader(TableReader):
    """The rows that the commits of a table added, changed and deleted."""

    lake: Callable[[Catalog], TableStore]

    def next(self, position: Position, state: TopicState) -> Range | None:
        partition = self.source.partition
        since = position.ends.get(partition)
        if since == state.ends[partition]:
            return None
        table, main = self._current()
        if since is None:
            return Range.of_all({partition: number(main)}, metadata.rows(metadata.summary(main)))
        self._snapshot_of(table, since)
        newer_snapshots = list(commits.snapshots_after(table, since))
        news = [snapshot for snapshot in newer_snapshots if metadata.summary(snapshot).get("operation") != commits.COMPACTION]
        is_line = (
            bool(newer_snapshots)
            and newer_snapshots[-1].get("parent-snapshot-id") == self._snapshot_of(table, since)["snapshot-id"]
        )
        if is_line and not news:
            return None
        until = news[-1] if is_line and self.source.reads == "commits" else main
        rows = sum(map(commits.changed, news[-1:] if until is not main else news))
        return Range({partition: since}, {partition: number(until)}, sum(map(commits.changed, news)), rows=rows)

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        return self._read(range_, batch)

    def whole(self, ends: Mapping[Partition, int], batch: int) -> DataFrame:
        """All rows of the table at these ends. What was read for a batch stays readable."""
        return self._read(Range({}, ends, 0), batch, keeps_others=True)

    def _read(self, range_: Range, batch: int, keeps_others: bool = False) -> DataFrame:
        table, _ = self._current()
        partition, source = self.source.partition, self.source
        since = self._snapshot_of(table, range_.starts[partition])["snapshot-id"] if partition in range_.starts else NOTHING
        until = self._snapshot_of(table, range_.ends[partition])
        columns = (*source.columns, *source.kafka)
        lake = self.lake(source.catalog)
        differences = changes.between(
            lake, lake.load(source.identifier), columns, since, until["snapshot-id"], source.by_value, keeps_others
        )
        if not source.rows_change and since != NOTHING and not differences.only_adds(self._forgotten(table)):
            raise source_lost(self.pipeline, "source-undone", "rows that were read are not there any more, or are others")
        order = dict(self._order(table, until, batch))
        names = [identifier(column.name) for column in columns]
        rows = differences.now().selectExpr(
            *names, *(f"{sql} AS {name}" for name, sql in order.items()), *_AS_NOW[source.old != "none"]
        )
        if source.old == "none" or since == NOTHING:
            return rows
        order |= {"_from_commit": "CAST(0 AS BIGINT)"} if "_from_commit" in order else {}  # older than all current rows
        # A row that is only deleted needs nothing but its keys: no other column is read.
        old_columns = (
            columns if source.old == "all" else tuple(column for column in columns if column.name in self.pipeline.table.keys)
        )
        old_parts = {"false": differences.deleted(old_columns), "true": differences.before() if source.old == "all" else None}
        for is_before, old_rows in old_parts.items():
            if old_rows is not None:
                values = present_or_null(columns, [column.name for column in old_columns])
                order_columns = (f"{sql} AS {name}" for name, sql in order.items())
                rows = rows.unionByName(
                    old_rows.selectExpr(*values, *order_columns, f"true AS {OLD}", f"{is_before} AS _sluice_before")
                )
        return rows

    def _forgotten(self, table: Metadata) -> str | None:
        """SQL of whether a row may be gone because its key was forgotten; None if no key was forgotten."""
        keys = forgotten.read(table.properties)
        return keys.condition([column.name for column in self.source.columns]) if keys else None

    def _order(self, table: Metadata, until: Snapshot, batch: int) -> Iterator[tuple[str, str]]:
        """SQL of the columns that put rows in order."""
        values = (
            f"timestamp_micros({int(table.became_main(until).timestamp() * 1_000_000)})",
            f"CAST({batch} AS BIGINT)",
            f"coalesce({COMMIT}, {number(until)})",
            ROW,
        )
        for column, value in zip(FROM_COLUMNS, values, strict=True):
            if column in self.pipeline.kafka_columns:
                yield column.name, value

    def _snapshot_of(self, table: Metadata, sequence: int) -> Snapshot:
        snapshot = commits.of_number(table, sequence)
        if snapshot is None:
            raise source_lost(self.pipeline, "source-expired", f"its commit {sequence}, up to which it was read, has expired")
        return snapshot
