"""A Kafka topic and the columns of its messages.

The schemas of `avro`, `json_schema`, `protobuf` and `debezium_avro` are in the cluster's registry. Each message begins with the id of
its schema, and is decoded with that schema. The fields of all versions become columns, unless `columns` names the columns.

In JSON, a column of type `string` takes any value, as the message has it. Every other type takes only its own kind of value, and only if no
digit is lost; any other value makes a bad row. A timestamp without an offset is UTC, and digits after the microseconds are cut off. A
missing field is null. If a field appears twice, the last one counts. A message without a value is a bad row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from framework.base.errors import Problem
from framework.language.options import ComponentName, Document, OptionGroup, option
from framework.language.scalars import ColumnName, ColumnType, Duration, FieldPath, KafkaName, Rate, Subject, Time

VALUES = ComponentName("formats", "VALUE")
KEYS = ComponentName("formats", "KEY", besides=("none",))
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
class Column(OptionGroup):
    """A column of the messages."""

    short: ClassVar[str | None] = "type"

    type: ColumnType = option("The type, in Spark's syntax.", example="string", aka=["data_type", "dtype"])
    doc: str | None = option("What the column holds.", default=None, aka=["description", "comment"])
    required: bool = option(
        "Whether a message without a value for the column is a bad row.", default=False, aka=["not_null", "nullable"]
    )
    format: Literal["epoch_millis", "epoch_micros", "epoch_days", "base64"] | None = option(
        "The value's format in JSON: `epoch_millis` and `epoch_micros`, a timestamp as milliseconds or microseconds since 1970;"
        " `epoch_days`, a date as days since 1970; `base64`, a decimal as the bytes that Kafka Connect writes. Default: times are ISO"
        " text, and decimals are numbers.",
        default=None,
    )


@dataclass(frozen=True)
class Key(OptionGroup):
    """A message's key."""

    short: ClassVar[str | None] = "format"

    format: Annotated[str, KEYS] = option(
        "The key's format; `long` is a whole number of 8 bytes.", default="string", example="string", aka=["type"],
    )  # fmt: skip
    as_: ColumnName | None = option(
        "The column for the key; without it the key becomes no column.", default=None, example="userid", aka=["name", "column"]
    )
    columns: dict[ColumnName, Column] = option(
        "With `format: json`, the fields of the key and their types, which become columns. With a format of the registry they may be"
        " left out.",
        default={}, example="{order_id: long}", at_least=1, aka=["schema", "fields"],
    )  # fmt: skip
    subject: Subject | None = option(
        "With a format of the registry, the subject of the key's schema; default: `<kafka_name>-key`.", default=None,
        example="stock_trades-key",
    )  # fmt: skip

    def problems(self) -> Iterable[Problem]:
        if "format" in self.gaps:
            return
        format_ = None if self.format == "none" else KEYS.declared()[self.format]
        columns_from = format_.columns_from if format_ else "format"
        needs, by_schema = columns_from == "spec", columns_from == "registry"
        if self.as_ is not None and (needs or not format_):
            why, instead = ("its fields are columns", "columns") if needs else ("there is no key", "format: string")
            yield Problem(
                self.key_place("as"), "unused-key", f"`as` has no effect with `format: {self.format}`: {why}",
                f"remove it, or write `{instead}`",
            )  # fmt: skip
        if needs and not self.columns:
            yield Problem(
                self.place("format"), "missing-key", f"a key with `format: {self.format}` needs `columns`",
                "add `columns:` with a name and a type per field, such as `order_id: long`",
            )  # fmt: skip
        if columns_from == "format" and self.columns:
            yield Problem(
                self.key_place("columns"), "unused-key", f"`columns` has no effect with `format: {self.format}`",
                "remove it, or write `format: json`; `as: NAME` makes one column of the key",
            )  # fmt: skip
        if not by_schema and self.subject is not None:
            yield Problem(
                self.key_place("subject"), "unused-key", f"`subject` has no effect with `format: {self.format}`",
                "remove it, or write `format: avro`",
            )  # fmt: skip
        if self.as_ is not None and self.columns and by_schema:
            yield Problem(
                self.key_place("as"), "unused-key", "`as` is for a key that is a single value, and `columns` is for a key with fields",
                "keep one of them",
            )  # fmt: skip


@dataclass(frozen=True)
class Generated(OptionGroup):
    """The values with which `sluice generate` fills a column."""

    exactly_one: ClassVar[bool] = True

    one_of: tuple[str, ...] | None = option("One of these values.", default=None, example="[BUY, SELL]", at_least=1)
    between: tuple[int | float, int | float] | None = option(
        "A number in this range, including both ends.", default=None, example="[1, 5000]"
    )
    pattern: str | None = option("Text that matches this pattern.", default=None, example='"User_[1-9]"')
    now: Literal[True] | None = option("The current time.", default=None, example="true")
    last: Duration | None = option("A time in the last so many days.", default=None, at_most="36500d", example="14d")

    def problems(self) -> Iterable[Problem]:
        if self.between is not None and self.between[0] > self.between[1]:
            yield Problem(
                self.place("between"), "out-of-range",
                f"`between` ends at {self.between[1]}, before its start {self.between[0]}",
                "write the smaller number first",
            )  # fmt: skip


@dataclass(frozen=True)
class Outlier(OptionGroup):
    """Messages that differ from the others in some columns."""

    share: float = option("The share of messages that are like this.", example="0.005", at_least=0.0, at_most=1.0)
    columns: dict[FieldPath, Generated] = option(
        "The columns that are filled differently; all others are as in every message.",
        example="{price: {between: [950, 1000]}}",
        at_least=1,
    )


@dataclass(frozen=True)
class Generate(OptionGroup):
    """Generated messages, for demos and load tests."""

    rate: Rate = option("The number of messages per second, minute, hour or day.", example="10/s")
    columns: dict[FieldPath, Generated] = option(
        "How each column is filled.", example="{side: {one_of: [BUY, SELL]}}", at_least=1
    )
    repeats: float = option(
        "The share of messages that are one of the last 1,000 again, unchanged.",
        default=0.0,
        example="0.05",
        at_least=0.0,
        at_most=0.9,
    )
    outliers: tuple[Outlier, ...] = option(
        "Messages that differ from the others, such as unusual prices. A message is one kind of outlier at most.",
        default=(),
        example="[{share: 0.005, columns: {price: {between: [950, 1000]}}}]",
    )

    def problems(self) -> Iterable[Problem]:
        total = sum(Fraction(str(outlier.share)) for outlier in self.outliers if "share" not in outlier.gaps)
        if total > 1:
            message = f"the `share` of all `outliers` together is {float(total):g}, more than 1"
            yield Problem(self.key_place("outliers"), "out-of-range", message, "write smaller shares, such as `0.01`")


@dataclass(frozen=True)
class Topic(Document):
    """A Kafka topic."""

    partly: ClassVar[bool] = True

    value: Annotated[str, VALUES] = option(
        "The message's format; `string` and `bytes` give one column, `value`.", example=_DEFAULT, aka=["format", "type"],
    )  # fmt: skip
    doc: str | None = option("What the topic holds.", default=None, aka=["description", "comment"])
    kafka_name: KafkaName | None = option("The topic's name in Kafka; default: the name here.", default=None, aka=["topic_name"])
    partitions: int = option(
        "The number of partitions, if Sluice creates the topic.", default=1, at_least=1, at_most=10000, example="6"
    )
    key: Key = option("The message's key.", default=Key(), example="{format: string, as: userid}")
    headers: dict[ColumnName, Literal["string"]] = option("Headers that become columns.", default={}, example="{source: string}")
    columns: dict[ColumnName, Column] = option(
        "The fields of a message and their types. With a format of the registry they may be left out: then all fields of the schemas"
        " become columns. If they are given, a run refuses schemas that lack them.",
        default={}, example="{side: string, quantity: int}", at_least=1, aka=["schema", "fields"],
    )  # fmt: skip
    unknown_fields: Literal["ignore", "bad"] = option(
        "What happens if a top-level field of a message is not a column: `ignore` skips the field, `bad` makes the message a bad row.",
        default="ignore",
    )
    event_time: ColumnName | None = option("The column with the time of the event; default: Kafka's timestamp.", default=None)
    start_from: Literal["earliest", "latest"] | Time = option(
        "Where a new table starts to read: `earliest`, the oldest message; `latest`, after the newest message; or the first message"
        " at or after a time.",
        default="earliest",
        example="earliest",
    )
    steady: bool = option(
        "Whether messages always come, so that silence is a fault. In Dagster, a table with `fresh_within` then has a freshness policy by "
        "time and the check `newest_event`.",
        default=False, example="true",
    )  # fmt: skip
    generate: Generate | None = option("Messages that `sluice generate` sends.", default=None)
    subject: Subject | None = option(
        "The subject in the schema registry; default: `<kafka_name>-value`.", default=None, example="stock_trades-value"
    )

    def problems(self) -> Iterable[Problem]:
        if "value" in self.gaps:
            return
        format_ = VALUES.declared()[self.value]
        if format_.columns_from == "spec" and not self.columns and "columns" not in self.gaps:
            yield Problem(
                self.key_place("columns") if self.node.get("columns") else self.place("value"),
                "missing-key", f"`value: {self.value}` needs `columns`",
                "add `columns:` with a name and a type per field, such as `side: string`",
            )  # fmt: skip
        for key in ("unknown_fields", "columns", "subject"):
            if self.node.get(key) and not _takes(format_, key):
                formats = VALUES.declared()
                instead = next(name for name in (_DEFAULT, *formats) if _takes(formats[name], key))
                yield Problem(
                    self.key_place(key), "unused-key", f"`{key}` has no effect with `value: {self.value}`",
                    f"remove it, or write `value: {instead}`",
                )  # fmt: skip


def _takes(format_: Any, key: str) -> bool:
    """Whether the option has an effect with this format of values."""
    if key == "unknown_fields":
        return bool(format_.takes_unknown_fields)
    return bool(format_.columns_from == "registry" or (key == "columns" and format_.columns_from == "spec"))
