"""A Kafka topic: what its messages hold.

In JSON a column of type `string` takes the text of any value; every other type takes its own kind of value only, and anything else makes
a bad row. A timestamp without a zone is UTC. A field that is missing is null, of two equal fields the last counts, and a message without
a value is a bad row.
"""

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
class Column(Bound):
    """A column of the messages."""

    short: ClassVar[str | None] = "type"

    type: ColumnType = option("The type, as Spark writes it.", example="string", aka=["data_type", "dtype"])
    doc: str | None = option("What it holds.", default=None, aka=["description", "comment"])
    required: bool = option("A message where it is missing or null is a bad row.", default=False, aka=["not_null", "nullable"])
    format: Literal["epoch_millis"] | None = option(
        "`epoch_millis`: a timestamp written as a number of milliseconds since 1970; without it, it is ISO text.", default=None
    )


@dataclass(frozen=True)
class Key(Bound):
    """A message's key."""

    short: ClassVar[str | None] = "format"

    format: Literal["string", "bytes", "long", "json", "none"] = option(
        "How the key is written; `long` is a whole number of 8 bytes.", default="string", example="string",
        later=("avro", "json_schema", "protobuf"), aka=["type"],
    )  # fmt: skip
    as_: ColumnName | None = option(
        "The column that is made of the key; without it there is none.",
        default=None,
        example="userid",
        aka=["name", "column"],
    )
    columns: dict[ColumnName, Column] = option(
        "With `format: json`, the fields of the key and their types; they are columns like those of the message.",
        default={}, example="{order_id: long}", at_least=1, aka=["schema", "fields"],
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        if self.as_ is not None and self.format in ("json", "none"):
            why, instead = (
                ("its fields are columns", "columns") if self.format == "json" else ("there is no key", "format: string")
            )
            yield Problem(
                self.key_place("as"), "unused-key", f"`as` means nothing with `format: {self.format}`: {why}",
                f"remove it, or write `{instead}`",
            )  # fmt: skip
        if self.format == "json" and not self.columns:
            yield Problem(
                self.place("format"), "missing-key", "a key with `format: json` needs `columns`",
                "add `columns:` with a name and a type per field, such as `order_id: long`",
            )  # fmt: skip
        if self.format != "json" and self.columns:
            yield Problem(
                self.key_place("columns"), "unused-key", f"`columns` means nothing with `format: {self.format}`",
                "remove it, or write `format: json`; `as: NAME` makes one column of the key",
            )  # fmt: skip


@dataclass(frozen=True)
class Generated(Bound):
    """How `sluice generate` makes a column's values."""

    exactly_one: ClassVar[bool] = True

    one_of: tuple[str, ...] | None = option("Any of these.", default=None, example="[BUY, SELL]", at_least=1)
    between: tuple[int | float, int | float] | None = option(
        "A number in this range, both ends included.", default=None, example="[1, 5000]"
    )
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
    """Made-up messages, for demos and tests of load."""

    rate: Rate = option("How many messages in how much time.", example="10/s")
    columns: dict[FieldPath, Generated] = option(
        "How each column's values are made.", example="{side: {one_of: [BUY, SELL]}}", at_least=1
    )


@dataclass(frozen=True)
class Topic(Kind):
    """A Kafka topic."""

    partly: ClassVar[bool] = True

    value: Literal["json", "string", "bytes"] = option(
        "How the message is written; `string` and `bytes` make one column, `value`.", example="json",
        later=("avro", "json_schema", "protobuf", "debezium_json", "debezium_avro"), aka=["format", "type"],
    )  # fmt: skip
    doc: str | None = option("What the topic holds.", default=None, aka=["description", "comment"])
    kafka_name: KafkaName | None = option("The topic's name in Kafka; default: the name here.", default=None, aka=["topic_name"])
    partitions: int = option(
        "Partitions of the topic where Sluice creates it.", default=1, at_least=1, at_most=10000, example="6"
    )
    key: Key = option("The message's key.", default=Key(), example="{format: string, as: userid}")
    headers: dict[ColumnName, Literal["string"]] = option("Headers that become columns.", default={}, example="{source: string}")
    columns: dict[ColumnName, Column] = option(
        "The fields of a message and their types.", default={}, example="{side: string, quantity: int}", at_least=1,
        aka=["schema", "fields"],
    )  # fmt: skip
    unknown_fields: Literal["ignore", "bad"] = option(
        "A field of a message, at its top level, that is no column: it is left out, or the message is a bad row.",
        default="ignore",
    )
    event_time: ColumnName | None = option("The column that says when it happened; default: Kafka's timestamp.", default=None)
    start_from: Literal["earliest", "latest"] | Time = option(
        "Where a new table begins to read: at the oldest message, behind the newest, or at the first from a time on.",
        default="earliest",
        example="earliest",
    )
    generate: Generate | None = option("Made-up messages, which `sluice generate` sends.", default=None)
    subject: None = later("The subject in the schema registry.")

    def problems(self) -> Iterable[Problem]:
        if "value" in self.gaps:
            return
        if self.value == "json" and not self.columns and "columns" not in self.gaps:
            yield Problem(
                self.key_place("columns") if self.node.get("columns") else self.place("value"),
                "missing-key", "`value: json` needs `columns`",
                "add `columns:` with a name and a type per field, such as `side: string`",
            )  # fmt: skip
        if self.value != "json" and self.node.get("unknown_fields"):
            yield Problem(
                self.key_place("unknown_fields"), "unused-key", f"`unknown_fields` means nothing with `value: {self.value}`",
                "remove it, or write `value: json`",
            )  # fmt: skip
        if self.value != "json" and self.columns:
            yield Problem(
                self.key_place("columns"), "unused-key", f"`columns` means nothing with `value: {self.value}`",
                "remove it, or write `value: json`",
            )  # fmt: skip
