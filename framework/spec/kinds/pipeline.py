"""A pipeline: from a topic, through steps, into a table.

No message is left out or read twice: each becomes rows of the table, is filtered out, or is a bad row. All steps and expectations can
use what Kafka knows of the message, `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp`; and `_event_time`, which is the topic's
`event_time` or else Kafka's timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from framework.errors import Problem
from framework.spec.kinds.tests import Test
from framework.spec.options import Bound, Files, Kind, Named, WrittenStep, later, option
from framework.spec.scalars import ColumnName, Duration, Expression, Name, Owner, Schedule, Size, TableName

EXPECT_EXAMPLE = """\
columns: {symbol: string, quantity: int}
expect:
  - {column: symbol, not_null: true}
  - {name: sane_quantity, when: quantity > 0, else: warn}
tests:
  - name: a row without a symbol is a bad row
    given:
      - {symbol: ZVZZT, quantity: 10}
      - {symbol: null, quantity: 5}
      - {symbol: ZJZZT, quantity: 0}
    expect:
      - {symbol: ZVZZT, quantity: 10}
      - {symbol: ZJZZT, quantity: 0}
    expect_bad:
      - {stage: expect, error: expectation_failed, message: symbol is not null}
"""

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

Step = Annotated[WrittenStep, Files("framework.steps", "step", later=LANGUAGE_STEPS)]


@dataclass(frozen=True)
class From(Bound):
    """Where the rows come from."""

    exactly_one: ClassVar[bool] = True

    topic: Name | None = option("The topic.", default=None, example="stock_trades")
    topics: tuple[Name, ...] | None = option(
        "Several topics of one shape; the column `_kafka_topic` says which.",
        default=None,
        at_least=1,
        example="[orders_eu, orders_us]",
    )
    table: TableName | None = option("A table of another pipeline, for `write: replace`.", default=None, example="markets.trades")


@dataclass(frozen=True)
class SchemaChanges(Bound):
    """Which changes of columns a run brings into the table."""

    add: Literal["allow", "refuse"] = option("Columns that are new in the spec.", default="allow", example="allow", aka=["new"])
    widen: Literal["allow", "refuse"] = option(
        "Types that hold all of the old values: bigint for int, double for float, a longer decimal.",
        default="allow", example="allow", aka=["promote"],
    )  # fmt: skip
    drop: Literal["keep", "refuse"] = option(
        "Columns that the spec no longer has: they stay and are null in new rows.", default="keep", example="keep", aka=["remove"]
    )
    rename: Literal["allow", "refuse"] = option(
        "Other names for columns, where a schema of the registry says what they were: the column gets the name and keeps its data.",
        default="refuse", example="allow",
    )  # fmt: skip
    narrow: Literal["allow", "refuse"] = option(
        "Types that do not hold all of the old values: the column keeps the type that it has.", default="refuse", example="allow"
    )


WRITES = Named("framework.writes", "MODE")


@dataclass(frozen=True)
class Deletes(Bound):
    """Which rows delete the row of their key."""

    when: Expression = option("A condition on the row.", example="\"op = 'd'\"", aka=["if", "condition"])


@dataclass(frozen=True)
class Into(Bound):
    """The table that the rows go into."""

    partly: ClassVar[bool] = True

    table: TableName = option("The table, with its namespace.", example="markets.trades", aka=["name"])
    catalog: Name | None = option("The catalog; default: the only one.", default=None, example="lake")
    write: Annotated[str, WRITES] = option(
        "How the rows change the table.",
        default="append", example="upsert", later=("accumulate",), aka=["mode"],
    )  # fmt: skip
    keys: tuple[ColumnName, ...] = option(
        "Of an upsert or a history, the columns that name a row; where one of them is null, it is a bad row.",
        default=(), example="[order_id]", aka=["key", "primary_key", "unique_key", "merge_keys"],
    )  # fmt: skip
    order_by: ColumnName | None = option(
        "The column that says which of two rows of a key is newer, the greater one; null is the oldest. Of a history it is a time. "
        "Default: the topic's `event_time`, else Kafka's timestamp. Between equal ones Kafka's timestamp, partition and offset decide.",
        default=None, example="updated_at", aka=["order", "version", "sequence_by"],
    )  # fmt: skip
    deletes: Literal["tombstones", "ignore"] | Deletes | None = option(
        "What deletes the row of a key: `tombstones`, which are messages without a value, and then the keys are columns of the message's "
        "key; or a condition. `ignore` leaves out messages that delete, and counts them. Default: what Debezium says deletes, and any "
        "other message without a value is a bad row.",
        default=None, example="tombstones", aka=["delete", "on_delete"],
    )  # fmt: skip
    remember_deletes_for: Duration = option(
        "How long it is known which keys were deleted, so that an older row that comes late does not come back.",
        default=7 * 86400, at_least="1d", example="7d",
    )  # fmt: skip
    partition_by: tuple[Expression, ...] = option(
        "What its files are split by: columns, or `year`, `month`, `day`, `hour` of one, `bucket(16, c)`, `truncate(4, c)`. A text that is "
        "too long for the name of a folder makes a bad row.",
        default=(),
        example="[day(at)]",
        aka=["partitioned_by", "partitions"],
    )
    sort_by: tuple[Expression, ...] = option(
        "The columns by which rows are sorted in each file.", default=(), example="[symbol, at]", aka=["cluster_by"]
    )
    kafka_columns: bool = option(
        "Whether the table has `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp`; an upsert or a history has them in any case, "
        "since they tell which row is newer.", default=True,
    )  # fmt: skip
    format_version: Literal[2, 3] = option(
        "Iceberg's format version; 2 is for readers that do not know 3.", default=3, example="3"
    )
    schema_changes: SchemaChanges = option(
        "Which changes of columns a run brings into the table.", default=SchemaChanges(), example="{add: refuse}",
        aka=["schema_evolution", "on_schema_change"],
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        if "write" in self.gaps:
            return
        if WRITES.components()[self.write].by_key:
            if not self.keys and "keys" not in self.gaps:
                yield Problem(
                    self.place("write"), "needs-keys", f"`write: {self.write}` needs `keys`, the columns that name a row",
                    "add `keys: [order_id]`, with the columns that are the same in all versions of a row",
                )  # fmt: skip
            return
        for name in ("keys", "order_by", "deletes", "remember_deletes_for"):
            ignored = name == "deletes" and (self.deletes == "ignore" or name in self.gaps)
            if self.node.get(name) is not None and not ignored:
                yield Problem(
                    self.key_place(name), "unused-key", f"`{name}` means nothing with `write: {self.write}`",
                    "write `write: upsert`, which keeps one row per key, or `write: history`, or remove it",
                )  # fmt: skip


@dataclass(frozen=True)
class Batch(Bound):
    """How much is done at once."""

    rows: int | None = option("Rows of the largest batch; default: 1000000.", default=None, at_least=1, example="5000000")


@dataclass(frozen=True)
class Run(Bound):
    """When."""

    exactly_one: ClassVar[bool] = True

    every: Duration | None = option("How often it is asked whether messages wait.", default=None, example="1m")
    cron: Schedule | None = option(
        "When, as cron writes it, in UTC.", default=None, example='"0 6 * * *"', aka=["at", "schedule"]
    )


TESTS = ("not_null", "between", "one_of", "matches")


@dataclass(frozen=True)
class Expectation(Bound):
    """What must hold for the rows: a test of a column, or a condition. Of null nothing holds."""

    name: str | None = option("What it is called; default: what it says.", default=None, example="sane_quantity")
    column: ColumnName | None = option("The column that is tested.", default=None, example="price", aka=["field"])
    not_null: Literal[True] | None = option("It has a value.", default=None, example="true", aka=["required"])
    between: tuple[str, str] | None = option("It is in this range, both ends included.", default=None, example="[0, 1000]")
    one_of: tuple[str, ...] | None = option(
        "It is one of these.", default=None, example="[BUY, SELL]", at_least=1, aka=["in", "values"]
    )
    matches: str | None = option(
        "All of its text fits this regular expression.", default=None, example='"[A-Z]+"', aka=["pattern", "regex"]
    )
    when: Expression | None = option(
        "A condition that is true.", default=None, example="quantity > 0", aka=["condition", "that", "if", "expression"]
    )
    else_: Literal["quarantine", "warn", "stop"] = option(
        "Where it does not hold: the row is a bad row, or the batch is published with a warning, or nothing is published.",
        default="quarantine", aka=["otherwise", "on_fail", "severity"],
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        given = [key for key in TESTS if getattr(self, key) is not None]
        if self.when is not None and (given or self.column is not None):
            extra = (["column"] if self.column is not None else []) + given
            yield Problem(
                self.key_place(extra[0]), "unused-key", f"`{extra[0]}` means nothing beside `when`",
                "write two expectations, or say all of it in `when`",
            )  # fmt: skip
        elif self.when is None and self.column is None:
            yield Problem(
                self.place(), "missing-key", "an expectation needs a `column` and a test of it, or `when`",
                "write `{column: price, not_null: true}` or `{when: price > 0}`",
            )  # fmt: skip
        elif self.when is None and len(given) != 1:
            what = f"has {len(given)} tests: {', '.join(f'`{key}`' for key in given)}" if given else "has no test"
            yield Problem(
                self.place(), "one-test", f"this expectation {what}",
                f"write one of {', '.join(f'`{key}`' for key in TESTS)}, and another expectation for the next",
            )  # fmt: skip


@dataclass(frozen=True)
class Maintain(Bound):
    """How files and snapshots are kept small."""

    compact_to: Size = option("The size of a file.", default=128 << 20, at_least="1MB", at_most="4GB", example="128MB")
    compact_every: Duration = option("How often small files are joined.", default=3600, at_least="1m", example="1h")
    keep_snapshots_for: Duration = option("How long old snapshots can be read.", default=7 * 86400, at_least="1h", example="7d")
    keep_at_least: int = option("Snapshots that stay however old they are.", default=20, at_least=1, example="20")
    orphans_after: Duration = option(
        "How old a file that no snapshot knows must be before it goes.", default=3 * 86400, at_least="1d", example="3d"
    )


@dataclass(frozen=True)
class Pipeline(Kind):
    """From a topic, through steps, into a table."""

    partly: ClassVar[bool] = True

    from_: From = option("Where the rows come from.", example="{topic: stock_trades}", aka=["source", "input", "topic"])
    into: Into = option(
        "The table.", example="{table: markets.trades}", aka=["to", "sink", "target", "output", "table", "destination"]
    )
    doc: str | None = option("What a row is.", default=None, aka=["description", "comment"])
    owner: Owner | None = option("Who answers for it.", default=None, example="team:markets", aka=["owners", "team"])
    tags: dict[str, str] = option("Names and values to find it by.", default={}, example="{tier: gold}", aka=["labels"])
    steps: tuple[Step, ...] = option("What is done to the rows, in order.", default=(), aka=["transforms", "transform"])
    batch: Batch = option("How much is done at once.", default=Batch(), example="{rows: 5000000}")
    run: Literal["on_new_data", "by_hand"] | Run = option(
        "When Dagster runs it, if messages wait: every so often, by a schedule, soon after they came, or only when a person asks.",
        default=Run(60),
        example="{every: 1m}",
        aka=["schedule", "trigger", "cron", "every"],
    )
    bad_rows: Literal["quarantine", "stop", "drop"] = option(
        "What becomes of bad rows: they are kept in a table of their own, or every run stops until a person accepts them, or they "
        "are counted and left out.",
        default="quarantine",
        aka=["on_error", "errors", "dead_letter"],
    )
    fresh_within: Duration | None = option(
        "How old the last batch may be while messages wait, before the table counts as not fresh.",
        default=None,
        at_least="1m",
        example="15m",
        aka=["freshness", "sla"],
    )
    expect: tuple[Expectation, ...] = option(
        "What must hold for the rows.", default=(), example="[{column: price, not_null: true}]", aka=["expectations", "checks"]
    )
    maintain: Maintain = option(
        "How files and snapshots are kept small; this version does not do it yet.", default=Maintain(), aka=["maintenance"]
    )
    warn_after: Duration | None = option(
        "After how long Dagster warns, before `fresh_within`.", default=None, at_least="1m", example="10m"
    )
    also: None = later("Other places for the rows.")
    publish: None = later("Other catalogs that show the table.")
    tests: tuple[Test, ...] = option(
        "Examples of messages and the rows made of them, for `sluice test`.", default=(), aka=["test", "examples"],
        example="[{name: a price is kept, given: [{price: 5.0}], expect: [{price: 5.0}]}]",
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        yield from self._source_problems()
        if self.warn_after is None or "fresh_within" in self.gaps:
            return
        if self.fresh_within is None:
            yield Problem(
                self.key_place("warn_after"), "missing-key", "`warn_after` needs `fresh_within`, before which it warns",
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
        if whole and self.from_.table is None:
            yield Problem(
                self.into.place("write"), "replace-needs-table",
                f"`write: {self.into.write}` computes the whole table from another one, and this pipeline reads a topic",
                "read a table, `from: {table: …}`, or write `write: append`",
            )  # fmt: skip
        if self.from_.table is not None and not whole:
            yield Problem(
                self.from_.place("table"), "not-in-this-version", "reading what a table has gained is not in this version",
                "write `write: replace`, which computes the whole table at each run",
            )  # fmt: skip
        if self.from_.table is not None and self.into.deletes == "ignore":
            yield Problem(
                self.into.key_place("deletes"), "unused-key", "`deletes` means nothing with `from: {table: …}`: a table has no tombstones",
                "remove it",
            )  # fmt: skip
        if self.from_.table is not None and self.batch.rows is not None:
            yield Problem(
                self.key_place("batch"), "unused-key", "`batch` means nothing with `from: {table: …}`: all of it is one batch",
                "remove it",
            )  # fmt: skip
