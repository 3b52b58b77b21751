"""A Kafka topic: what its messages hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from framework.errors import Problem
from framework.spec.options import Bound, Kind, later, option
from framework.spec.scalars import ColumnName, ColumnType, FieldPath, KafkaName, Rate, Time

EXAMPLE = """\
topic: stock_trades
doc: Trades as they happen.
kafka_name: sample_data_stock_trades
partitions: 6
key: {format: string, as: userid}
value: json
columns:
  side: string
  quantity: int
  symbol: string
  price: {type: double, doc: USD, required: true}
  at: {type: timestamp, format: epoch_millis}
event_time: at
generate:
  rate: 10/s
  columns:
    side: {one_of: [BUY, SELL]}
    quantity: {between: [1, 5000]}
    symbol: {pattern: "Z[A-Z]{4}"}
    price: {between: [-10, 1000]}
    userid: {pattern: "User_[1-9]"}
    at: {now: true}
"""


@dataclass(frozen=True)
class Key(Bound):
    """A message's key."""

    short: ClassVar[str | None] = "format"

    format: Literal["string", "bytes", "none"] = option(
        "How the key is written.", default="string", example="string",
        later=("long", "json", "avro", "json_schema", "protobuf"), aka=["type"],
    )  # fmt: skip
    as_: ColumnName | None = option(
        "The column that is made of the key; without it there is none.",
        default=None,
        example="userid",
        aka=["name", "column"],
    )

    def problems(self) -> Iterable[Problem]:
        if self.format == "none" and self.as_ is not None:
            yield Problem(
                self.key_place("as"), "unused-key", "`as` means nothing with `format: none`: there is no key",
                "remove it, or write `format: string`",
            )  # fmt: skip


@dataclass(frozen=True)
class Column(Bound):
    """A column of the messages."""

    short: ClassVar[str | None] = "type"

    type: ColumnType = option("The type, as Spark writes it.", example="string")
    doc: str | None = option("What it holds.", default=None, aka=["description", "comment"])
    required: bool = option("A message without it is a bad row.", default=False, aka=["not_null", "nullable"])
    format: Literal["epoch_millis"] | None = option("How a timestamp is written, if not as ISO text.", default=None)


@dataclass(frozen=True)
class Generated(Bound):
    """How `sluice generate` makes a column's values."""

    exactly_one: ClassVar[bool] = True

    one_of: tuple[str, ...] | None = option("Any of these.", default=None, example="[BUY, SELL]", at_least=1)
    between: tuple[int | float, int | float] | None = option("A number in this range.", default=None, example="[1, 5000]")
    pattern: str | None = option("Text that fits this pattern.", default=None, example='"User_[1-9]"')
    now: Literal[True] | None = option("The time at which it is made.", default=None, example="true")

    def problems(self) -> Iterable[Problem]:
        if self.between is not None and self.between[0] > self.between[1]:
            yield Problem(
                self.place("between"), "out-of-range",
                f"`between` ends at {self.between[1]}, before its start {self.between[0]}",
                "write the smaller number first",
            )  # fmt: skip


@dataclass(frozen=True)
class Generate(Bound):
    """Demo and load data."""

    rate: Rate = option("Messages per time.", example="10/s")
    columns: dict[FieldPath, Generated] = option(
        "How each column's values are made.", example="{side: {one_of: [BUY, SELL]}}", at_least=1
    )


@dataclass(frozen=True)
class Topic(Kind):
    """A Kafka topic."""

    value: Literal["json", "string", "bytes"] = option(
        "How the message is written.", example="json",
        later=("avro", "json_schema", "protobuf", "debezium_json", "debezium_avro"), aka=["format", "type"],
    )  # fmt: skip
    doc: str | None = option("What the topic holds.", default=None, aka=["description", "comment"])
    kafka_name: KafkaName | None = option("The topic's name in Kafka; default: the name here.", default=None, aka=["topic_name"])
    partitions: int = option("Partitions of a topic that Sluice creates.", default=1, at_least=1, at_most=10000, example="6")
    key: Key = option("The message's key.", default=Key(), example="{format: string, as: userid}")
    headers: dict[ColumnName, Literal["string"]] = option("Headers that become columns.", default={}, example="{source: string}")
    columns: dict[ColumnName, Column] = option(
        "The fields of a message and their types.", default={}, example="{side: string, quantity: int}", at_least=1,
        aka=["schema", "fields"],
    )  # fmt: skip
    unknown_fields: Literal["ignore", "bad"] = option("What to do with a field that is no column.", default="ignore")
    event_time: ColumnName | None = option("The column that says when; default: Kafka's timestamp.", default=None)
    start_from: Literal["earliest", "latest"] | Time = option(
        "Where a table begins that has no position yet.", default="earliest", example="earliest"
    )
    generate: Generate | None = option("Demo and load data, by `sluice generate`.", default=None)
    subject: None = later("The subject in the schema registry.")

    def problems(self) -> Iterable[Problem]:
        if self.value == "json" and not self.columns:
            yield Problem(
                self.place("value"), "missing-key", "`value: json` needs `columns`",
                "add `columns:` with a name and a type per field, such as `side: string`",
            )  # fmt: skip
        if self.value != "json" and self.columns:
            yield Problem(
                self.key_place("columns"), "unused-key", f"`columns` means nothing with `value: {self.value}`",
                "remove it, or write `value: json`",
            )  # fmt: skip
