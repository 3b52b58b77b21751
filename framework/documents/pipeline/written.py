"""A pipeline: from a topic, through steps, into a table.

Every message is processed exactly once: it becomes rows of the table, is filtered out, or is a bad row. All steps and expectations can
use Kafka's columns `_kafka_partition`, `_kafka_offset` and `_kafka_timestamp`. They can also use `_event_time`, which is the topic's
`event_time` or, without one, Kafka's timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from framework.base.errors import Problem
from framework.documents.pipeline.written_expectation import Expectation
from framework.documents.pipeline.written_into import WRITES, Into
from framework.documents.pipeline.written_maintain import Maintain
from framework.documents.pipeline.written_tests import Test
from framework.language import timezones
from framework.language.options import ComponentOptions, Document, OptionGroup, StepDocument, StepName, option
from framework.language.scalars import Duration, Name, Owner, Schedule, Size, TableName

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

NOT_YET = ("debezium",)  # steps that are refused by name

Also = Annotated[OptionGroup, ComponentOptions("followers", but=("catalog",))]
Step = Annotated[StepDocument, StepName("steps", "step", later=NOT_YET)]


@dataclass(frozen=True)
class From(OptionGroup):
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
class Batch(OptionGroup):
    """The size of a batch, and of what waits before one begins early."""

    rows: int | None = option("The most rows in a batch; default: 1000000.", default=None, at_least=1, example="5000000")
    after: Size | None = option(
        "Begin a batch before its time once messages of about this size wait. Whichever is first: this or the time of `run`.",
        default=None,
        example="250MB",
    )


@dataclass(frozen=True)
class Run(OptionGroup):
    """When Dagster runs the pipeline."""

    exactly_one: ClassVar[bool] = True
    besides: ClassVar[tuple[str, ...]] = ("timezone",)

    every: Duration | None = option("How often Dagster checks for waiting messages.", default=None, example="1m")
    cron: Schedule | None = option("A cron schedule.", default=None, example='"0 6 * * *"', aka=["at", "schedule"])
    timezone: str = option("The time zone of `cron`.", default="UTC", example="Europe/Berlin", aka=timezones.ALSO_CALLED)

    def problems(self) -> Iterable[Problem]:
        if self.cron is None and self.node.get("timezone") is not None and "cron" not in self.gaps:
            message = "`timezone` has no effect without `cron`"
            yield Problem(
                self.key_place("timezone"), "unused-key", message, 'remove it, or write `cron: "0 6 * * *"` in place of `every`'
            )
        yield from timezones.problems(self, self.timezone)


@dataclass(frozen=True)
class Publish(OptionGroup):
    """Another catalog that lists the table."""

    catalog: Name = option("The other catalog, a `catalog` of the specs.", example="open_catalog")
    as_: TableName | None = option(
        "The table's name there; default: the same.", default=None, example="markets.flagged", aka=["name", "table"]
    )


@dataclass(frozen=True)
class Pipeline(Document):
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
        "Tests and conditions for the rows. Those of single rows are about the rows after all steps but `aggregate`.",
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
        whole = WRITES.declared()[self.into.write].whole
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
        if (self.from_.table is not None or self.from_.tables is not None) and whole and self.into.deletes == "ignore":
            yield Problem(
                self.into.key_place("deletes"), "unused-key", "`deletes` has no effect with `write: replace`: all rows are computed again",
                "remove it",
            )  # fmt: skip
        if self.batch.rows is not None and (self.from_.table is not None or self.from_.tables is not None):
            source_text = (
                "{tables: […]}`: they are read whole"
                if self.from_.tables is not None
                else "{table: …}`: a batch takes whole commits"
            )
            yield Problem(self.key_place("batch"), "unused-key", f"`batch` has no effect with `from: {source_text}", "remove it")
