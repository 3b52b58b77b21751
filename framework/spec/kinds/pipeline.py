"""A pipeline: from a topic, through steps, into a table.

Every message is processed exactly once: it becomes rows of the table, is filtered out, or is a bad row. All steps and expectations can
use Kafka's columns `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp`. They can also use `_event_time`, which is the topic's
`event_time` or, without one, Kafka's timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from framework.errors import Problem
from framework.spec.kinds.expectation import Expectation
from framework.spec.kinds.tests import Test
from framework.spec.options import Bound, Files, Kind, Named, OneOf, WrittenStep, option
from framework.spec.scalars import ColumnName, Duration, Expression, Name, Owner, Schedule, Size, TableName

EXAMPLE = """\
pipeline: flagged_stock_trades
doc: One row per trade, suspicious ones flagged.
owner: team:markets
tags: {tier: gold}
from: {topic: stock_trades}
steps:
  - flag:
      into: anomaly_flag
      rules:
        - {when: price < 0, label: NEGATIVE_PRICE}
        - {when: "quantity > ${var:LARGE_TRADE}", label: LARGE_TRADE}
      otherwise: NORMAL
into:
  table: markets.flagged_stock_trades
  partition_by: [day(at)]
expect:
  - {column: symbol, not_null: true}
fresh_within: 15m
tests:
  - name: a negative price is flagged
    given:
      - {side: BUY, quantity: 10, symbol: ZVZZT, price: -1.0, at: 2026-01-05T10:00:00Z}
      - {message: {raw: not json}}
    expect: [{symbol: ZVZZT, anomaly_flag: NEGATIVE_PRICE}]
    expect_bad: [{error: undecodable}]
"""

LANGUAGE_STEPS = (
    "select", "drop", "rename", "cast", "derive", "filter", "flag", "dedup", "mask", "flatten", "explode", "debezium",
    "join", "aggregate", "sql",
)  # fmt: skip

Also = Annotated[Bound, OneOf("framework.followers", but=("catalog",))]
Step = Annotated[WrittenStep, Files("framework.steps", "step", later=LANGUAGE_STEPS)]


@dataclass(frozen=True)
class From(Bound):
    """The source of the rows."""

    exactly_one: ClassVar[bool] = True

    topic: Name | None = option("The topic.", default=None, example="stock_trades")
    topics: tuple[Name, ...] | None = option(
        "Several topics with the same columns; the column `_kafka_topic` holds the topic of each row.",
        default=None,
        at_least=1,
        example="[orders_eu, orders_us]",
    )
    table: TableName | None = option(
        "A table of another pipeline: what its commits add, change and delete; all of it with `write: replace`.",
        default=None, example="markets.trades",
    )  # fmt: skip
    tables: tuple[TableName, ...] | None = option(
        "Tables of other pipelines, as a whole: one step `sql` is a select over them, with joins, groups and windows, and "
        "`write: replace` keeps what it gives.",
        default=None, at_least=1, example="[shop.orders, shop.customers]",
    )  # fmt: skip


@dataclass(frozen=True)
class SchemaChanges(Bound):
    """Which schema changes a run applies to the table."""

    add: Literal["allow", "refuse"] = option("Columns that are new in the spec.", default="allow", example="allow", aka=["new"])
    widen: Literal["allow", "refuse"] = option(
        "Wider types, which hold all old values: bigint for int, double for float, a longer decimal.",
        default="allow", example="allow", aka=["promote"],
    )  # fmt: skip
    drop: Literal["keep", "refuse"] = option(
        "Columns that are no longer in the spec: they stay in the table and are null in new rows.",
        default="keep",
        example="keep",
        aka=["remove"],
    )
    rename: Literal["allow", "refuse"] = option(
        "New names for columns, if a schema in the registry has the old name: the column is renamed and keeps its data.",
        default="refuse", example="allow",
    )  # fmt: skip
    narrow: Literal["allow", "refuse"] = option(
        "Narrower types, which do not hold all old values: the column keeps its current type.", default="refuse", example="allow"
    )


WRITES = Named("framework.writes", "MODE")


@dataclass(frozen=True)
class Deletes(Bound):
    """A condition for rows that delete the row with their key."""

    when: Expression = option("True for a row that deletes.", example="\"op = 'd'\"", aka=["if", "condition"])


@dataclass(frozen=True)
class Into(Bound):
    """The table that the rows are written to."""

    partly: ClassVar[bool] = True

    table: TableName = option("The table, with its namespace.", example="markets.trades", aka=["name"])
    catalog: Name | None = option(
        "The catalog; default: the only one in the specs that no `publish` names.", default=None, example="lake"
    )
    write: Annotated[str, WRITES] = option(
        "How rows are written to the table.",
        default="append", example="upsert", aka=["mode"],
    )  # fmt: skip
    keys: tuple[ColumnName, ...] = option(
        "For `upsert` and `history`, the columns that identify a row; a row with a null in one of them is a bad row.",
        default=(), example="[order_id]", aka=["key", "primary_key", "unique_key", "merge_keys"],
    )  # fmt: skip
    order_by: ColumnName | None = option(
        "The column that orders the rows of a key: the greatest value is the newest, and null is the oldest. For `history` it must be "
        "a time. Default: the topic's `event_time`, else Kafka's timestamp. Equal values are ordered by Kafka's timestamp, partition "
        "and offset.",
        default=None, example="updated_at", aka=["order", "version", "sequence_by"],
    )  # fmt: skip
    deletes: Literal["tombstones", "ignore"] | Deletes | None = option(
        "Which messages delete the row with their key. `tombstones`: messages without a value; `keys` must then be columns of the "
        "message's key. `{when: …}`: rows that meet a condition. `ignore`: no message deletes; messages that would are skipped and "
        "counted. Default: Debezium's deletes, and any other message without a value is a bad row.",
        default=None, example="tombstones", aka=["delete", "on_delete"],
    )  # fmt: skip
    remember_deletes_for: Duration = option(
        "How long a deleted key is remembered, so that an older row that arrives late does not bring the key back.",
        default=7 * 86400, at_least="1d", example="7d",
    )  # fmt: skip
    late_after: Duration | None = option(
        "For `accumulate`, when a window closes: a row that is so much older than the newest one of earlier batches is a bad row. Default: "
        "never.", default=None, at_least="1s", example="1d", aka=["lateness", "watermark", "allowed_lateness"],
    )  # fmt: skip
    partition_by: tuple[Expression, ...] = option(
        "How the files are partitioned: by columns, by `year`, `month`, `day` or `hour` of a column, by `bucket(16, c)` or "
        "`truncate(4, c)`. A text that is too long for a folder's name makes a bad row.",
        default=(),
        example="[day(at)]",
        aka=["partitioned_by", "partitions"],
    )
    sort_by: tuple[Expression, ...] = option(
        "The columns that sort the rows in each file.", default=(), example="[symbol, at]", aka=["cluster_by"]
    )
    kafka_columns: bool = option(
        "Whether the table has the columns `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp`. With `upsert` and `history` it "
        "always has them, since they decide which row is newer.", default=True,
    )  # fmt: skip
    adopt: bool = option(
        "Whether the first run takes over an existing Iceberg table of the same columns, whose rows stay. For `write: append`.",
        default=False, example="true", aka=["take_over", "existing"],
    )  # fmt: skip
    format_version: Literal[2, 3] = option(
        "Iceberg's format version; 2 is for readers that do not support 3.", default=3, example="3"
    )
    schema_changes: SchemaChanges = option(
        "Which schema changes a run applies to the table.", default=SchemaChanges(), example="{add: refuse}",
        aka=["schema_evolution", "on_schema_change"],
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        if "write" in self.gaps:
            return
        write = WRITES.components()[self.write]
        if self.late_after is not None and not write.groups:
            message = f"`late_after` has no effect with `write: {self.write}`"
            yield Problem(self.key_place("late_after"), "unused-key", message, "remove it: only totals have windows that close")
        if write.by_key:
            if not self.keys and "keys" not in self.gaps:
                yield Problem(
                    self.place("write"), "needs-keys", f"`write: {self.write}` needs `keys`, the columns that identify a row",
                    "add `keys: [order_id]`, with the columns that are the same in all versions of a row",
                )  # fmt: skip
            return
        for name in ("keys", "order_by", "deletes", "remember_deletes_for"):
            ignored = name == "deletes" and (self.deletes == "ignore" or name in self.gaps)
            if self.node.get(name) is not None and not ignored:
                yield Problem(
                    self.key_place(name), "unused-key", f"`{name}` has no effect with `write: {self.write}`",
                    "write `write: upsert`, which keeps one row per key, or `write: history`, or remove it",
                )  # fmt: skip


@dataclass(frozen=True)
class Batch(Bound):
    """The size of a batch, and of what waits before one begins early."""

    rows: int | None = option("The most rows in a batch; default: 1000000.", default=None, at_least=1, example="5000000")
    after: Size | None = option(
        "Begin a batch before its time once messages of about this size wait. Whichever is first: this or the time of `run`.",
        default=None,
        example="250MB",
    )


@dataclass(frozen=True)
class Run(Bound):
    """When Dagster runs the pipeline."""

    exactly_one: ClassVar[bool] = True

    every: Duration | None = option("How often Dagster checks for waiting messages.", default=None, example="1m")
    cron: Schedule | None = option("A cron schedule, in UTC.", default=None, example='"0 6 * * *"', aka=["at", "schedule"])


@dataclass(frozen=True)
class Publish(Bound):
    """Another catalog that lists the table."""

    catalog: Name = option("The other catalog, a `catalog` of the specs.", example="open_catalog")
    as_: TableName | None = option(
        "The table's name there; default: the same.", default=None, example="markets.flagged", aka=["name", "table"]
    )


@dataclass(frozen=True)
class Thin(Bound):
    """How old snapshots are thinned out, before they are too old to be kept."""

    all_for: Duration = option("How long each snapshot is kept.", default=3600, at_least="10m", example="1h")
    then_every: Duration = option(
        "After that, one snapshot of each such interval is kept.", default=60, at_least="1s", example="1m"
    )
    for_: Duration = option("For how long these are kept.", default=86400, at_least="0s", example="1d")
    then_every_hour: bool = option("Whether, after that, one snapshot of each hour is kept; otherwise all of them.", default=True)


@dataclass(frozen=True)
class Maintain(Bound):
    """Compaction of files, and expiry of snapshots."""

    compact_to: Size = option("The target size of a file.", default=128 << 20, at_least="1MB", at_most="4GB", example="128MB")
    compact_every: Duration = option("How often small files are compacted.", default=3600, at_least="1m", example="1h")
    keep_snapshots_for: Duration = option("How long old snapshots are kept.", default=7 * 86400, at_least="1h", example="7d")
    keep_at_least: int = option("How many snapshots are kept, however old.", default=20, at_least=1, example="20")
    thin: Thin = option("How old snapshots are thinned out.", default=Thin(), example="{all_for: 1h, then_every: 1m, for: 1d}")
    orphans_after: Duration = option(
        "The age from which `sluice maintain` deletes a file that no commit names.",
        default=3 * 86400,
        at_least="1d",
        example="3d",
    )


@dataclass(frozen=True)
class Pipeline(Kind):
    """A pipeline from a topic, through steps, into a table."""

    partly: ClassVar[bool] = True

    from_: From = option("The source of the rows.", example="{topic: stock_trades}", aka=["source", "input", "topic"])
    into: Into = option(
        "The table that the rows are written to.",
        example="{table: markets.trades}",
        aka=["to", "sink", "target", "output", "table", "destination"],
    )
    doc: str | None = option("What one row stands for.", default=None, aka=["description", "comment"])
    owner: Owner | None = option("Who is responsible.", default=None, example="team:markets", aka=["owners", "team"])
    tags: dict[str, str] = option("Names and values to search by.", default={}, example="{tier: gold}", aka=["labels"])
    steps: tuple[Step, ...] = option("Steps that change the rows, in order.", default=(), aka=["transforms", "transform"])
    batch: Batch = option(
        "The size of a batch, and of what waits before one begins early.", default=Batch(), example="{rows: 5000000}"
    )
    run: Literal["on_new_data", "by_hand"] | Run = option(
        "When Dagster runs the pipeline, if messages are waiting: at an interval, by a schedule, soon after messages arrive "
        "(`on_new_data`), or only when a person starts it (`by_hand`).",
        default=Run(60),
        example="{every: 1m}",
        aka=["schedule", "trigger", "cron", "every"],
    )
    bad_rows: Literal["quarantine", "stop", "drop"] = option(
        "What happens to bad rows: `quarantine` writes them to a table of their own, `stop` stops every run until a person accepts "
        "them, `drop` counts and drops them.",
        default="quarantine",
        aka=["on_error", "errors", "dead_letter"],
    )
    fresh_within: Duration | None = option(
        "How old the last batch may be while messages are waiting. An older table is not fresh.",
        default=None,
        at_least="1m",
        example="15m",
        aka=["freshness", "sla"],
    )
    expect: tuple[Expectation, ...] = option(
        "Tests and conditions for the rows.",
        default=(),
        example="[{column: price, not_null: true}]",
        aka=["expectations", "checks"],
    )
    maintain: Maintain = option(
        "Compaction of files, and expiry of snapshots, by `sluice maintain`.", default=Maintain(), aka=["maintenance"]
    )
    warn_after: Duration | None = option(
        "The age of the last batch at which Dagster warns; shorter than `fresh_within`.",
        default=None,
        at_least="1m",
        example="10m",
    )
    also: tuple[Also, ...] = option(
        "Where else the table's rows are shown, behind each commit.",
        default=(),
        example="[{topic: flagged_trades, key: userid, where: \"anomaly_flag <> 'NORMAL'\"}]",
        aka=["and", "onward", "sinks"],
    )
    publish: tuple[Publish, ...] | None = option(
        "Other catalogs that list the same table, too; default: those of `publish` of its catalog. `[]`: none.",
        default=None, example="[{catalog: open_catalog, as: markets.flagged}]",
    )  # fmt: skip
    tests: tuple[Test, ...] = option(
        "Messages and the rows that they become, for `sluice test`.", default=(), aka=["test", "examples"],
        example="[{name: a price is kept, given: [{price: 5.0}], expect: [{price: 5.0}]}]",
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        yield from self._source_problems()
        if self.warn_after is None or "fresh_within" in self.gaps:
            return
        if self.fresh_within is None:
            yield Problem(
                self.key_place("warn_after"), "missing-key", "`warn_after` needs `fresh_within`, which must be longer",
                "add `fresh_within: 15m`",
            )  # fmt: skip
        elif self.warn_after >= self.fresh_within:
            yield Problem(
                self.place("warn_after"), "out-of-range", "`warn_after` must be shorter than `fresh_within`",
                "warn first, fail later: `warn_after: 10m`, `fresh_within: 15m`",
            )  # fmt: skip

    def _source_problems(self) -> Iterable[Problem]:
        if not {"from", "into"}.isdisjoint(self.gaps) or self.from_.gaps or "write" in self.into.gaps:
            return
        whole = WRITES.components()[self.into.write].whole
        if self.from_.tables is not None and not whole:
            yield Problem(
                self.into.place("write"), "needs-replace",
                f"`tables` are read as a whole at each run, and `write: {self.into.write}` takes what is new",
                "write `write: replace`; or read what one table gets, by `from: {table: …}`",
            )  # fmt: skip
        if whole and self.from_.table is None and self.from_.tables is None:
            yield Problem(
                self.into.place("write"), "replace-needs-table",
                f"`write: {self.into.write}` computes the whole table from another table, and this pipeline reads a topic",
                "read a table, `from: {table: …}`, or write `write: append`",
            )  # fmt: skip
        if self.from_.table is not None and whole and self.into.deletes == "ignore":
            yield Problem(
                self.into.key_place("deletes"), "unused-key", "`deletes` has no effect with `write: replace`: all rows are computed again",
                "remove it",
            )  # fmt: skip
        if self.from_.table is not None and self.batch.rows is not None:
            yield Problem(
                self.key_place("batch"), "unused-key", "`batch` has no effect with `from: {table: …}`: a batch takes whole commits",
                "remove it",
            )  # fmt: skip
