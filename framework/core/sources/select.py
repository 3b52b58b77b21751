"""A whole select over tables as a source: all of its rows, or those of the groups in which rows of its one table have changed.

Guarantee: all rows of a batch come from the same commits of the tables, whose numbers are its position.
Cost: by groups, of the table the files that differ, and those that can have a row of such a group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import number
from framework.core.iceberg.metadata import Metadata
from framework.core.rules.protocol import TABLES, Partition, Position, Range, TopicState
from framework.core.sources import changes, commits
from framework.plan import Catalog, Column, Pipeline, SelectSource, TableChanges
from framework.sql.quote import identifier, literal_of, present_or_null, substituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from framework.core.iceberg.lake import TableStore

_MOST_GROUPS = 100_000  # that have changed; if more have, all groups are computed
_FEW_VALUES = 1_000  # of a column, by which files are left out
_EXISTING = 0  # of a file in a manifest, which a commit only carries on


@dataclass
class SelectReader:
    pipeline: Pipeline
    source: SelectSource
    lake: Callable[[Catalog], TableStore]
    _changed: dict[int, ChangedGroups | None] = field(default_factory=dict, compare=False, repr=False)  # by the batch

    def topic_state(self) -> TopicState:
        states = {table.partition: commits.current(self.pipeline, table) for table in self.source.tables}
        ids = " ".join(table.uuid for table, _ in states.values())
        ends = {name: number(main) for name, (_, main) in states.items()}
        return TopicState(f"catalog {self.source.catalog.name}", {TABLES: ids}, {}, ends)

    def ids(self) -> Mapping[str, str]:
        return self.topic_state().topics

    def starts(self, state: TopicState, known_topics: Mapping[str, str]) -> dict[Partition, int]:
        return {}

    def next(self, position: Position, state: TopicState) -> Range | None:
        is_same = (position.topics, position.spec) == (state.topics, self.pipeline.spec)
        if not is_same or position.ends.keys() != state.ends.keys():
            return Range.of_all(state.ends, self.rows())
        news = [
            commits.news(commits.current(self.pipeline, table)[0], position.ends[table.partition]) for table in self.source.tables
        ]
        rows = sum(count or 0 for count in news)
        if None in news or (rows and not self.source.apart):
            return Range.of_all(state.ends, self.rows())
        return Range(position.ends, state.ends, rows, rows=rows) if rows else None

    def lag(self, range_: Range | None) -> int:
        """The number of rows that wait."""
        return range_.waiting if range_ else 0

    def at_most(self, state: TopicState) -> int:
        return self.rows()

    def rows(self) -> int:
        """The number of rows of the tables."""
        return sum(metadata.rows(metadata.summary(commits.current(self.pipeline, table)[1])) for table in self.source.tables)

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        groups = self.changed(range_) if range_.starts else None
        tables_sql = [self._table(table, range_.ends[table.partition]) for table in self.source.tables]
        with groups.view(spark) if groups else nullcontext("") as view:
            if groups:
                tables_sql = [groups.rows_sql(tables_sql[0], view)]
            return spark.sql(substituted(self.source.sql, dict(zip(self.source.names, tables_sql, strict=True))))

    def changed(self, range_: Range) -> ChangedGroups | None:
        """The groups in which rows were added, changed or deleted; None if there are too many."""
        partition = self.source.tables[0].partition
        if range_.ends[partition] not in self._changed:
            start, end = range_.starts[partition], range_.ends[partition]
            partitions = self._partitions(start) if self.source.by_partition else None
            self._changed[end] = partitions or self._compared(start, end)
        return self._changed[range_.ends[partition]]

    def _partitions(self, start: int) -> ChangedGroups | None:
        """The partitions whose files were added, deleted or marked; None if the table also had another partitioning."""
        import pyarrow

        (source,), ((column, name),) = self.source.tables, self.source.apart
        table, _ = commits.current(self.pipeline, source)
        own_table = metadata.read(self.pipeline.table.catalog, self.pipeline.table.identifier)
        index = _partition_of(table, column)
        if own_table is None or index is None or _partition_of(own_table, name) is None or commits.news(table, start) is None:
            return None
        values = {
            tuple(entry["data_file"]["partition"].values())[index]
            for snapshot in commits.snapshots_after(table, start)
            for manifest in metadata.records(table.files, snapshot["manifest-list"])
            if manifest["added_snapshot_id"] == snapshot["snapshot-id"]
            for entry in metadata.records(table.files, manifest["manifest_path"])
            if entry["status"] != _EXISTING
        }
        return ChangedGroups(self.source.apart, pyarrow.table({column: list(values)}), partitions=True) if values else None

    def _compared(self, start: int, end: int) -> ChangedGroups | None:
        """The groups of rows that differ between two commits; None if there are too many."""
        (source,) = self.source.tables
        table, _ = commits.current(self.pipeline, source)
        since, until = (commits.read_at(table, source, sequence) for sequence in (start, end))
        lake, all_columns = self.lake(source.catalog), (*source.columns, *source.kafka)
        columns = tuple(_column(source, name) for name, _ in self.source.apart)
        names = [identifier(column.name) for column in columns]
        compare = partial(
            changes.between, lake, lake.load(source.identifier), since=since["snapshot-id"], until=until["snapshot-id"]
        )
        differences = compare(columns=columns, by_value=source.by_value)
        if differences.by_value:  # rows without ids are compared by their values, so all of these are read
            differences = compare(columns=all_columns, by_value=True)
        groups = differences.rows().select(*names).distinct().limit(_MOST_GROUPS + 1).toArrow()
        return ChangedGroups(self.source.apart, groups) if len(groups) <= _MOST_GROUPS else None

    def _table(self, source: TableChanges, sequence: int) -> str:
        """SQL of a table's rows after a commit. A column that the spec has and the table does not have yet is null."""
        table, _ = commits.current(self.pipeline, source)
        snapshot = commits.read_at(table, source, sequence)
        existing_columns = table.columns_of(snapshot)
        columns = present_or_null((*source.columns, *source.kafka), existing_columns)
        name = identifier(source.catalog.name, *source.identifier.split("."))
        return f"(SELECT {', '.join(columns)} FROM {name} VERSION AS OF {snapshot['snapshot-id']})"


@dataclass(frozen=True)
class ChangedGroups:
    """Values of some columns of a table, each of which has another name in the result."""

    names: tuple[tuple[str, str], ...]
    values: Any  # a table of Arrow, by the columns' names in the table
    partitions: bool = False  # whether a value of the only column is a partition of the result

    def rows_sql(self, table: str, view: str) -> str:
        """SQL of the table's rows in these groups, which the view has."""
        # Files that have none of the values are left out.
        conditions = [f"({sql})" for name, _ in self.names if (sql := self.listed(name, name)) is not None]
        matching_rows = f"SELECT * FROM {table} r WHERE {' AND '.join(conditions) or 'true'}"
        if self.partitions:
            return f"({matching_rows})"
        equality = " AND ".join(f"r.{identifier(name)} <=> g.{identifier(as_)}" for name, as_ in self.names)
        return f"(SELECT /*+ BROADCAST(g) */ r.* FROM ({matching_rows}) r LEFT SEMI JOIN {view} g ON {equality})"

    @contextmanager
    def view(self, spark: SparkSession) -> Iterator[str]:
        """Creates a view of the groups while it is used, with a name that no other thread has. Partitions need no view."""
        from py4j.protocol import Py4JError

        name = f"sluice_{uuid.uuid4().hex}"
        if not self.partitions:
            self.frame(spark).createOrReplaceTempView(name)
        try:
            yield name
        finally:
            with suppress(Py4JError, ConnectionError):  # if Spark has ended, the original error is raised
                spark.catalog.dropTempView(name)

    def listed(self, column: str, name: str) -> str | None:
        """SQL of whether the column `name` has one of the values of `column`; None for many values, or if Python changes them."""
        import pyarrow

        type_ = self.values.schema.field(column).type
        distinct = self.values[column].unique()
        plain = pyarrow.types.is_integer(type_) or pyarrow.types.is_string(type_) or pyarrow.types.is_date(type_)
        if not self.partitions and (len(distinct) > _FEW_VALUES or not plain):
            return None
        values = distinct.to_pylist()
        texts = ", ".join(literal_of(value) for value in values if value is not None)
        conditions = [f"{identifier(name)} IN ({texts})"] if texts else []
        conditions += [f"{identifier(name)} IS NULL"] if None in values else []
        return " OR ".join(conditions) or "false"  # rows were added and deleted again: nothing differs

    def frame(self, spark: SparkSession) -> DataFrame:
        """The groups by the columns' names in the result."""
        return spark.createDataFrame(self.values.rename_columns([as_ for _, as_ in self.names]))


def _column(source: TableChanges, name: str) -> Column:
    return next(column for column in (*source.columns, *source.kafka) if column.name == name)


def _partition_of(table: Metadata, column: str) -> int | None:
    """The index of a column's value among a partition's; None if files are not, or were not always, partitioned by the column."""
    if len(table.document["partition-specs"]) > 1:
        return None
    ids = {entry["name"]: entry["id"] for entry in table.schema["fields"]}
    fields = [(entry["source-id"], entry["transform"]) for entry in table.partitions["fields"]]
    wanted_field = (ids.get(column), "identity")
    return fields.index(wanted_field) if wanted_field in fields else None
