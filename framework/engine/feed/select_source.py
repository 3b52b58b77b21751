"""A whole select over tables as a source: all of its rows, or those of the groups in which rows of its one table have changed.

Guarantee: all rows of a batch come from the same commits of the tables, whose numbers are its position.
Cost: by groups, of the table the files that differ, and those that can have a row of such a group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from framework.engine.feed import changes, commits
from framework.engine.iceberg import metadata
from framework.engine.rules.protocol import Partition, Position, Range, TopicState
from framework.errors import BatchError
from framework.model import Catalog, Column, Pipeline, SelectSource, TableSource
from framework.sql.quote import identifier, substituted
from framework.types import DATE, INTEGRALS, STRING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from framework.engine.iceberg.lake import Lake

_MOST_GROUPS = 500_000  # that have changed; of more all are computed
_FEW = 1_000  # values of a column by which files are left out
_TABLES = "tables"  # in a position, in the place of a topic


@dataclass(frozen=True)
class Select:
    pipeline: Pipeline
    lake: Callable[[Catalog], Lake]
    _changed: dict[int, DataFrame | None] = field(default_factory=dict, compare=False, repr=False)  # by the batch

    @property
    def source(self) -> SelectSource:
        assert isinstance(self.pipeline.source, SelectSource)
        return self.pipeline.source

    def topic_state(self) -> TopicState:
        now = {table.partition: commits.now(self.pipeline, table) for table in self.source.tables}
        ids = " ".join(table.uuid for table, _ in now.values())
        ends = {name: commits.number(main) for name, (_, main) in now.items()}
        return TopicState(f"catalog {self.source.catalog.name}", {_TABLES: ids}, {}, ends)

    def ids(self) -> Mapping[str, str]:
        return self.topic_state().topics

    def starts(self, state: TopicState, known_topics: Mapping[str, str]) -> dict[Partition, int]:
        return {}

    def next(self, position: Position, state: TopicState) -> Range | None:
        same = (position.topics, position.spec) == (state.topics, self.pipeline.spec)
        if not same or position.ends.keys() != state.ends.keys():
            return Range({}, state.ends, 0)
        news = [commits.news(commits.now(self.pipeline, each)[0], position.ends[each.partition]) for each in self.source.tables]
        rows = sum(each or 0 for each in news)
        if None in news or (rows and not self.source.apart):
            return Range({}, state.ends, 0)
        return Range(position.ends, state.ends, rows, rows=rows) if rows else None

    def lag(self, range_: Range | None) -> int:
        """How many rows wait."""
        if range_ is None:
            return 0
        return range_.waiting if range_.starts else self.rows()

    def rows(self) -> int:
        """The number of rows of the tables."""
        return sum(metadata.rows(metadata.summary(commits.now(self.pipeline, each)[1])) for each in self.source.tables)

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        groups = self.changed(range_) if range_.starts else None
        frames = [self._table(spark, each, range_.ends[each.partition]) for each in self.source.tables]
        if groups is not None:
            frames = [self._of(frames[0], groups)]
        with _views(frames) as views:
            return spark.sql(substituted(self.source.sql, dict(zip(self.source.names, views, strict=True))))

    def changed(self, range_: Range) -> DataFrame | None:
        """The groups, by their columns in the table, in which rows were added, changed or deleted; None where they are many."""
        here = self.source.tables[0].partition
        if range_.ends[here] not in self._changed:
            self._changed[range_.ends[here]] = self._read_changed(range_.starts[here], range_.ends[here])
        return self._changed[range_.ends[here]]

    def _read_changed(self, start: int, end: int) -> DataFrame | None:
        (source,) = self.source.tables
        table, _ = commits.now(self.pipeline, source)
        since, until = (commits.of_number(table, each) for each in (start, end))
        if since is None or until is None:
            raise _lost(source)
        columns = tuple(_column(source, name) for name, _ in self.source.apart)
        differing = changes.between(
            self.lake(source.catalog), source.identifier, columns, since["snapshot-id"], until["snapshot-id"], source.by_value
        )
        names = [identifier(column.name) for column in columns]
        groups = differing.rows().select(*names).distinct().limit(_MOST_GROUPS + 1).localCheckpoint()
        return groups if groups.count() <= _MOST_GROUPS else None

    def _of(self, rows: DataFrame, groups: DataFrame) -> DataFrame:
        """The rows of these groups."""
        from pyspark.sql import functions

        names = [name for name, _ in self.source.apart]
        for name in names:
            if _column(self.source.tables[0], name).type not in (DATE, STRING, *INTEGRALS):
                continue
            values = [row[0] for row in groups.select(identifier(name)).distinct().limit(_FEW + 1).collect()]
            if len(values) <= _FEW:  # files that have none of them are left out
                column = functions.col(identifier(name))
                listed = column.isin([value for value in values if value is not None])
                rows = rows.where(listed | column.isNull() if None in values else listed)
        own = groups.select(*(functions.col(identifier(name)).alias(f"_sluice_group{at}") for at, name in enumerate(names)))
        same = " AND ".join(f"{identifier(name)} <=> _sluice_group{at}" for at, name in enumerate(names))
        return rows.join(functions.broadcast(own), functions.expr(same), "left_semi")

    def _table(self, spark: SparkSession, source: TableSource, sequence: int) -> DataFrame:
        """A table as it was after a commit. A column that the spec has and the table does not have yet is null."""
        table, _ = commits.now(self.pipeline, source)
        snapshot = commits.of_number(table, sequence)
        if snapshot is None:
            raise _lost(source)
        name = identifier(source.catalog.name, *source.identifier.split("."))
        rows = spark.read.option("versionAsOf", snapshot["snapshot-id"]).table(name)
        return rows.selectExpr(
            *(
                identifier(each.name)
                if each.name in rows.columns
                else f"CAST(NULL AS {each.type.sql}) AS {identifier(each.name)}"
                for each in (*source.columns, *source.kafka)
            )
        )


def _column(source: TableSource, name: str) -> Column:
    return next(each for each in (*source.columns, *source.kafka) if each.name == name)


def _lost(source: TableSource) -> BatchError:
    return BatchError("source-changed", f"{source.identifier} lost a snapshot while it was read", "run again")


@contextmanager
def _views(frames: list[DataFrame]) -> Iterator[list[str]]:
    """Names of the frames in SQL, of which no other thread has one."""
    from py4j.protocol import Py4JError

    names = [f"sluice_{uuid.uuid4().hex}" for _ in frames]
    for name, frame in zip(names, frames, strict=True):
        frame.createOrReplaceTempView(name)
    try:
        yield names
    finally:
        for name, frame in zip(names, frames, strict=True):
            with suppress(Py4JError, ConnectionError):  # if Spark has ended, the original error is raised
                frame.sparkSession.catalog.dropTempView(name)
