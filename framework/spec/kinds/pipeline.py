"""A pipeline: from a topic, through steps, into a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from framework.errors import Problem
from framework.spec.options import Bound, Files, Kind, WrittenStep, later, option
from framework.spec.scalars import Duration, Expression, Name, Owner, TableName

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
    topics: None = later("Several topics.")
    table: None = later("A table of another pipeline.")


@dataclass(frozen=True)
class Into(Bound):
    """The table."""

    table: TableName = option("The table, with its namespace.", example="markets.trades", aka=["name"])
    catalog: Name | None = option("The catalog; default: the only one.", default=None, example="lake")
    write: Literal["append"] = option(
        "How rows get into the table.", default="append", example="append",
        later=("upsert", "history", "accumulate", "replace"), aka=["mode"],
    )  # fmt: skip
    partition_by: tuple[Expression, ...] = option(
        "How the table is partitioned.", default=(), example="[day(at)]", aka=["partitioned_by", "partitions"]
    )
    sort_by: tuple[Expression, ...] = option(
        "How rows are sorted in a file.", default=(), example="[symbol, at]", aka=["order_by", "cluster_by"]
    )
    kafka_columns: bool = option("Keep _kafka_partition, _kafka_offset and _kafka_timestamp.", default=True)
    format_version: Literal[2, 3] = option("Iceberg's format version.", default=3, example="3")
    schema_changes: None = later("Which changes of columns are allowed.")
    keys: None = later("The columns that name a row.")
    order_by: None = later("The column that says which row is newer.")
    deletes: None = later("Which messages delete a row.")


@dataclass(frozen=True)
class Batch(Bound):
    """How much is done at once."""

    rows: int | None = option("Rows of the largest batch.", default=None, at_least=1, example="5000000")


@dataclass(frozen=True)
class Every(Bound):
    """How often."""

    exactly_one: ClassVar[bool] = True

    every: Duration | None = option("How often.", default=None, example="1m")
    cron: None = later("When, as cron writes it.")


@dataclass(frozen=True)
class Pipeline(Kind):
    """From a topic, through steps, into a table."""

    from_: From = option("Where the rows come from.", example="{topic: stock_trades}", aka=["source", "input", "topic"])
    into: Into = option(
        "The table.", example="{table: markets.trades}", aka=["to", "sink", "target", "output", "table", "destination"]
    )
    doc: str | None = option("What a row is.", default=None, aka=["description", "comment"])
    owner: Owner | None = option("Who answers for it.", default=None, example="team:markets", aka=["owners", "team"])
    tags: dict[str, str] = option("Anything to find it by.", default={}, example="{tier: gold}", aka=["labels"])
    steps: tuple[Step, ...] = option("What is done to the rows, in order.", default=(), aka=["transforms", "transform"])
    batch: Batch = option("How much is done at once.", default=Batch(), example="{rows: 5000000}")
    run: Literal["by_hand"] | Every = option(
        "When it runs.",
        default=Every(60),
        example="{every: 1m}",
        later=("on_new_data",),
        aka=["schedule", "trigger", "cron", "every"],
    )
    bad_rows: Literal["quarantine", "stop", "drop"] = option(
        "What happens to messages that cannot be read.", default="quarantine", aka=["on_error", "errors", "dead_letter"]
    )
    fresh_within: Duration | None = option(
        "How old the newest row may be.", default=None, at_least="1m", example="15m", aka=["freshness", "sla"]
    )
    warn_after: Duration | None = option("When to warn before `fresh_within` fails.", default=None, at_least="1m", example="10m")
    expect: None = later("What must hold for the rows.")
    also: None = later("Other places for the rows.")
    publish: None = later("Other catalogs that show the table.")
    maintain: None = later("How files and snapshots are kept small.")
    tests: None = later("Examples of messages and the rows made of them.")

    def problems(self) -> Iterable[Problem]:
        if self.warn_after is None:
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
