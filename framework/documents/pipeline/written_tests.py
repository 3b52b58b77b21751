"""The tests of a pipeline: messages, and the expected rows and bad rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from framework.base.errors import Problem
from framework.language.node import YamlNode
from framework.language.options import OptionGroup, option
from framework.language.scalars import ColumnName, Name, TableName, Time


@dataclass(frozen=True)
class Message(OptionGroup):
    """A message with Kafka's fields."""

    key: YamlNode | None = option("The key: text, or a map if keys have fields; default: none.", default=None, example="User_1")
    at: Time | None = option(
        "Kafka's timestamp; default: 2026-01-01T00:00:00Z, plus one second for each message before it.", default=None,
        example="2026-01-05T10:00:00Z", aka=["timestamp", "time"],
    )  # fmt: skip
    partition: int = option("The partition.", default=0, at_least=0, at_most=9999, example="2")
    value: YamlNode | None = option(
        "The columns, in the topic's format; `null`: a message without a value.", default=None, example="{price: 5.0}"
    )
    raw: str | None = option("The value as raw text.", default=None, example='"not json"', aka=["text", "bytes"])
    headers: dict[str, YamlNode] = option("The headers, as names and texts.", default={}, example="{source: web}")
    topic: Name | None = option("The topic; default: the pipeline's first.", default=None, example="stock_trades")

    def problems(self) -> Iterable[Problem]:
        if self.value is not None and self.raw is not None:
            yield Problem(self.key_place("raw"), "unused-key", "`raw` has no effect with `value`", "keep one of them")
        elif self.value is None and self.raw is None:
            yield Problem(
                self.place(), "missing-key", "this message has no `value`",
                "write `value: {…}`, `raw: \"…\"`, or `value: null` for a message without a value",
            )  # fmt: skip


@dataclass(frozen=True)
class GivenMessage(OptionGroup):
    """A whole message, not only its columns."""

    only_key: ClassVar[str | None] = "message"

    message: Message = option("The message.", example='{raw: "not json"}')


@dataclass(frozen=True)
class BadRow(OptionGroup):
    """An expected bad row."""

    error: str | None = option("The error code.", default=None, example="undecodable", aka=["code"])
    stage: str | None = option("The part that failed: value, key, headers, or a step.", default=None, example="value")
    message: str | None = option("The error message.", default=None, example="the message has no value")
    item: str | None = option("The number of the row, if the step `explode` made several.", default=None, example='"1"')
    topic: Name | None = option("The topic.", default=None, example="stock_trades")
    partition: int | None = option("The partition.", default=None, at_least=0, example="0")
    offset: int | None = option("The offset: the first message of a partition has 0.", default=None, at_least=0, example="0")
    key: str | None = option("The key as text.", default=None, example="User_1")
    value: str | None = option("The value as text.", default=None, example="not json", aka=["raw"])


@dataclass(frozen=True)
class Test(OptionGroup):
    """Messages, and the rows and bad rows that they must become."""

    partly: ClassVar[bool] = True
    in_example: ClassVar[tuple[str, ...]] = ("given",)

    name: str = option("What the test shows.", example="a negative price is flagged", aka=["title", "test", "doc"])
    given: tuple[Literal["new_batch"] | GivenMessage | dict[ColumnName, YamlNode], ...] = option(
        "The messages in order, each as its columns or as a whole `message`; `new_batch` starts another batch; if the pipeline reads "
        "a table, the table's rows.",
        default=(), at_least=1,
        example="[{price: -1.0}]", aka=["input", "messages", "when"],
    )  # fmt: skip
    tables: dict[TableName, tuple[dict[ColumnName, YamlNode], ...]] = option(
        "Rows of the tables in which `join` looks rows up, or over which a whole select goes, by the tables' names; they are there "
        "before the first batch.",
        default={}, example="{shop.customers: [{customer_id: 1, country: DE}]}",
    )  # fmt: skip
    expect: tuple[dict[ColumnName, YamlNode], ...] | None = option(
        "The rows of the table afterwards, in any order, each with the columns to compare.", default=None,
        example="[{anomaly_flag: NEGATIVE_PRICE}]", aka=["output", "rows", "then", "expected"],
    )  # fmt: skip
    expect_bad: tuple[BadRow, ...] | None = option(
        "The bad rows afterwards; default: none.", default=None, example="[{error: undecodable}]", aka=["bad_rows", "bad"]
    )

    def problems(self) -> Iterable[Problem]:
        if self.expect is None and self.expect_bad is None and not self.gaps:
            yield Problem(
                self.place(), "missing-key", "a test needs `expect` or `expect_bad`", "write `expect: []` if no row is expected"
            )
