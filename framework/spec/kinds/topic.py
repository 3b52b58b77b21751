"""A Kafka topic: what its messages hold.

The schemas of `avro`, `json_schema`, `protobuf` and `debezium_avro` are in the cluster's registry. Each message is read by the schema
whose id it begins with, and all fields of all versions are columns, unless `columns` says which.

In JSON a column of type `string` takes the text of any value; every other type takes its own kind of value only, and anything else makes
a bad row. A timestamp without a zone is UTC; digits behind its microseconds are cut. A field that is missing is null, of two equal
fields the last counts, and a message without a value is a bad row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from framework import components
from framework.errors import Problem
from framework.spec.options import Bound, Kind, Named, option
from framework.spec.scalars import ColumnName, ColumnType, FieldPath, KafkaName, Rate, Subject, Time

FORMATS = "framework.formats"
VALUES = Named(FORMATS, "VALUE")
KEYS = Named(FORMATS, "KEY", besides=("none",))
_DEFAULT = "json"

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
    format: Literal["epoch_millis", "epoch_micros", "epoch_days", "base64"] | None = option(
        "How JSON has it: `epoch_millis` and `epoch_micros`, a timestamp as a number of milliseconds or microseconds since 1970;"
        " `epoch_days`, a date as a number of days since 1970; `base64`, a decimal as Kafka Connect writes its bytes. Without it, times"
        " are ISO text and decimals are numbers.",
        default=None,
    )


@dataclass(frozen=True)
class Key(Bound):
    """A message's key."""

    short: ClassVar[str | None] = "format"

    format: Annotated[str, KEYS] = option(
        "How the key is written; `long` is a whole number of 8 bytes.", default="string", example="string", aka=["type"],
    )  # fmt: skip
    as_: ColumnName | None = option(
        "The column that is made of the key; without it there is none.",
        default=None,
        example="userid",
        aka=["name", "column"],
    )
    columns: dict[ColumnName, Column] = option(
        "With `format: json`, the fields of the key and their types; they are columns like those of the message. With a format of"
        " the registry they may be left out.",
        default={}, example="{order_id: long}", at_least=1, aka=["schema", "fields"],
    )  # fmt: skip
    subject: Subject | None = option(
        "With a format of the registry, the subject of the key's schema; default: `<kafka_name>-key`.", default=None,
        example="stock_trades-key",
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        if "format" in self.gaps:
            return
        format_ = None if self.format == "none" else components.load(FORMATS, self.format).KEY
        columns_from = format_.columns_from if format_ else "format"
        needs, by_schema = columns_from == "spec", columns_from == "registry"
        if self.as_ is not None and (needs or not format_):
            why, instead = ("its fields are columns", "columns") if needs else ("there is no key", "format: string")
            yield Problem(
                self.key_place("as"), "unused-key", f"`as` means nothing with `format: {self.format}`: {why}",
                f"remove it, or write `{instead}`",
            )  # fmt: skip
        if needs and not self.columns:
            yield Problem(
                self.place("format"), "missing-key", f"a key with `format: {self.format}` needs `columns`",
                "add `columns:` with a name and a type per field, such as `order_id: long`",
            )  # fmt: skip
        if columns_from == "format" and self.columns:
            yield Problem(
                self.key_place("columns"), "unused-key", f"`columns` means nothing with `format: {self.format}`",
                "remove it, or write `format: json`; `as: NAME` makes one column of the key",
            )  # fmt: skip
        if not by_schema and self.subject is not None:
            yield Problem(
                self.key_place("subject"), "unused-key", f"`subject` means nothing with `format: {self.format}`",
                "remove it, or write `format: avro`",
            )  # fmt: skip
        if self.as_ is not None and self.columns and by_schema:
            yield Problem(
                self.key_place("as"), "unused-key", "`as` names the one column of a key that is a single value, and `columns` has those"
                " of a key with fields", "keep one of them",
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

    value: Annotated[str, VALUES] = option(
        "How the message is written; `string` and `bytes` make one column, `value`.", example=_DEFAULT, aka=["format", "type"],
    )  # fmt: skip
    doc: str | None = option("What the topic holds.", default=None, aka=["description", "comment"])
    kafka_name: KafkaName | None = option("The topic's name in Kafka; default: the name here.", default=None, aka=["topic_name"])
    partitions: int = option(
        "Partitions of the topic where Sluice creates it.", default=1, at_least=1, at_most=10000, example="6"
    )
    key: Key = option("The message's key.", default=Key(), example="{format: string, as: userid}")
    headers: dict[ColumnName, Literal["string"]] = option("Headers that become columns.", default={}, example="{source: string}")
    columns: dict[ColumnName, Column] = option(
        "The fields of a message and their types. With a format of the registry they may be left out: then all fields that its"
        " schemas have are columns; otherwise these, and a run refuses schemas that do not have them.",
        default={}, example="{side: string, quantity: int}", at_least=1, aka=["schema", "fields"],
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
    subject: Subject | None = option(
        "The subject in the schema registry; default: `<kafka_name>-value`.", default=None, example="stock_trades-value"
    )

    def problems(self) -> Iterable[Problem]:
        if "value" in self.gaps:
            return
        format_ = components.load(FORMATS, self.value).VALUE
        if format_.columns_from == "spec" and not self.columns and "columns" not in self.gaps:
            yield Problem(
                self.key_place("columns") if self.node.get("columns") else self.place("value"),
                "missing-key", f"`value: {self.value}` needs `columns`",
                "add `columns:` with a name and a type per field, such as `side: string`",
            )  # fmt: skip
        for key in ("unknown_fields", "columns", "subject"):
            if self.node.get(key) and not _takes(format_, key):
                formats = VALUES.components()
                instead = next(name for name in (_DEFAULT, *formats) if _takes(formats[name], key))
                yield Problem(
                    self.key_place(key), "unused-key", f"`{key}` means nothing with `value: {self.value}`",
                    f"remove it, or write `value: {instead}`",
                )  # fmt: skip


def _takes(format_: Any, key: str) -> bool:
    """Whether the option means something with this format of values."""
    if key == "unknown_fields":
        return bool(format_.takes_unknown_fields)
    return bool(format_.columns_from == "registry" or (key == "columns" and format_.columns_from == "spec"))
