"""Bad rows as a source: their messages are decoded and stepped again, by the current spec.

A replay is a batch like any other, whose offsets do not move. The outcome for each bad row is staged with it: replayed, or still bad
with its current reason. If a step makes a row of each item of a message's list, only the items that were bad land.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from framework.core.iceberg.lake import TableStore
from framework.core.publish import side_rows
from framework.core.rows.bad_rows import sealed
from framework.core.rows.own_columns import ONLY
from framework.core.rules.protocol import Partition, Position, Range, TopicState
from framework.core.sources.source import SourceReader
from framework.plan import BAD_ROW_COLUMNS, LOST_BYTES, OPEN, REPLAYED, Pipeline
from framework.sql.quote import identifier, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MESSAGE = ("topic", "partition", "offset")
_HAS_BYTES = f"NOT (value IS NULL AND message LIKE {literal(f'%{LOST_BYTES}')})"
# Whether a row of the message that is bad now (b) is, or holds, the one that was bad before (s).
_COVERS = (
    " AND ".join(f"b.{name} = s.{name}" for name in _MESSAGE)
    + " AND (coalesce(b.item, '') = '' OR b.item = s.item OR startswith(s.item, concat(b.item, '.')))"
)


@dataclass(frozen=True)
class BadRowSource:
    """The bad rows for which `where` is true, and which no batch after `since` has tried."""

    pipeline: Pipeline
    lake: TableStore
    topics: SourceReader
    _: KW_ONLY
    where: str
    since: int

    def topic_state(self) -> TopicState:
        return self.topics.topic_state()

    def ids(self) -> Mapping[str, str]:
        return self.topics.ids()

    def starts(self, state: TopicState, known_topics: Mapping[str, str]) -> dict[Partition, int]:
        return self.topics.starts(state, known_topics)

    def next(self, position: Position, state: TopicState) -> Range | None:
        if self._bad_rows is None:
            return None
        waiting = self._waiting().count()
        size = min(waiting, self.pipeline.batch_rows)
        return Range(position.ends, position.ends, waiting, topics=state.topics, rows=size) if waiting else None

    def read(self, spark: SparkSession, range_: Range, batch: int) -> DataFrame:
        key, value, headers = sealed(self.pipeline, "open")
        opened_columns = (f"{key} AS key", f"{value} AS value", f"{headers} AS headers")
        return self._chosen(range_).selectExpr(*opened_columns, "topic", "partition", "offset", "timestamp", ONLY)

    def outcomes(self, range_: Range, batch: int, bad: DataFrame) -> DataFrame:
        """The new states of the bad rows of a range, from the bad rows that the batch finds in their messages."""
        from pyspark.sql import functions

        covers = functions.expr(_COVERS)
        chosen_rows = self._chosen(range_).select(*_MESSAGE, functions.col("batch").alias("of"))
        tried_rows = self._open.join(chosen_rows, [*_MESSAGE]).where("batch = of").alias("s")
        bad = bad.alias("b")
        names = [column.name for column in BAD_ROW_COLUMNS]

        def rows(frame: DataFrame, alias: str, **sql: str) -> DataFrame:
            return frame.selectExpr(*(f"{sql.get(name, f'{alias}.{identifier(name)}')} AS {identifier(name)}" for name in names))

        number = str(batch)
        reason_columns = {name: f"b.{name}" for name in ("stage", "code", "message", "schema_id")}
        passed_rows = rows(tried_rows.join(bad, covers, "left_anti"), "s", state=literal(REPLAYED), replayed_in=number)
        open_rows = rows(tried_rows.join(bad, covers), "s", state=literal(OPEN), replayed_in=number, **reason_columns)
        new_rows = rows(bad.join(tried_rows, covers, "left_anti"), "b", state=literal(OPEN), replayed_in=number)
        return passed_rows.unionAll(open_rows).unionAll(new_rows)

    @cached_property
    def _bad_rows(self) -> Any | None:
        """The table of bad rows as it is now."""
        table = self.lake.find(self.pipeline.table.bad_rows)
        if table is not None:
            side_rows.add_columns(self.lake, table, BAD_ROW_COLUMNS)
        return table

    @property
    def _open(self) -> DataFrame:
        assert self._bad_rows is not None
        reader = self.lake.spark.read.option("versionAsOf", self._bad_rows.currentSnapshot().snapshotId())
        rows: DataFrame = reader.table(identifier(self.lake.component.name, *self.pipeline.table.bad_rows.split(".")))
        return rows.where(f"({self.where}) AND {_HAS_BYTES} AND coalesce(replayed_in, 0) <= {self.since}")

    def _waiting(self) -> DataFrame:
        """The messages of the bad rows. A recreated topic can have another message at the same place: one of them at a time."""
        from pyspark.sql import functions

        message_columns = [f"first({name}) AS {name}" for name in ("key", "value", "headers", "timestamp")]
        message_columns.append(f"collect_set(coalesce(item, '')) AS {ONLY}")
        by_batch = self._open.groupBy("batch", *_MESSAGE).agg(*(functions.expr(sql) for sql in message_columns))
        ranked = by_batch.selectExpr("*", "row_number() OVER (PARTITION BY topic, partition, offset ORDER BY batch) AS nth")
        return ranked.where("nth = 1").drop("nth")

    def _chosen(self, range_: Range) -> DataFrame:
        return self._waiting().orderBy(*_MESSAGE).limit(range_.size)
