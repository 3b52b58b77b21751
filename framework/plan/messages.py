"""What a test gives, made into messages as Kafka would have them: columns are written to where the topic reads them from."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone

from framework.errors import Problem, Where
from framework.plan.model import Column, Message, Pipeline
from framework.plan.values import Wrong, json_object, json_text
from framework.spec import kinds
from framework.spec.node import Node
from framework.sql.faults import closest
from framework.types import VOID

START = datetime(2026, 1, 1, tzinfo=timezone.utc)  # Kafka's timestamp of a test's first message that says none
_RAW = 'to see what becomes of a wrong value, write the text itself: `message: {raw: "…"}`'


@dataclass(frozen=True)
class _Value:
    """What a map of columns becomes."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Messages:
    """The messages of one test of a pipeline, in order."""

    pipeline: Pipeline
    topic: kinds.Topic
    problems: list[Problem]
    test: kinds.Test
    offsets: Counter[tuple[str, int]] = field(default_factory=Counter)

    def message(self, batch: int, at: int, given: kinds.GivenMessage | Mapping[str, Node]) -> Message:
        """The message at this place of what is given."""
        moment = START + timedelta(seconds=self.offsets.total())
        if isinstance(given, kinds.GivenMessage):
            made = self.whole(given.message, moment)
        else:
            made = self.of_columns(given, at, moment)
        place = (made.topic, made.partition)
        self.offsets[place] += 1
        return replace(made, batch=batch, offset=self.offsets[place] - 1)

    def of_columns(self, given: Mapping[str, Node], at: int, moment: datetime) -> Message:
        places = {name: self.test.key_place("given", at, name) for name in given}
        made = self.value(given, places)
        return Message(0, self.pipeline.topic.kafka_name, 0, 0, moment, made.key, made.value, made.headers)

    def whole(self, said: kinds.Message, moment: datetime) -> Message:
        made = self.whole_value(said)
        key = made.key
        if said.key is not None:
            key = self.key(said, said.key, taken=made.key is not None)
        headers = tuple((name, self.text(node, f"the header `{name}`")) for name, node in said.headers.items())
        twice = [name for name, _ in made.headers if name in said.headers]
        for name in twice:
            message = f"`{name}` is a header's column, and the header is given as well"
            self.refuse(said.key_place("headers", name), "duplicate-key", message, "keep one of them")
        if said.at is not None and said.at.microsecond % 1000:
            self.refuse(said.place("at"), "out-of-range", "Kafka's timestamps are whole milliseconds", "leave the rest out")
        topic = kafka_name(self.pipeline, said, self.problems)
        return Message(0, topic, said.partition, 0, said.at or moment, key, made.value, (*headers, *made.headers))

    def whole_value(self, said: kinds.Message) -> _Value:
        node = said.value
        if node is None:
            return _Value(None, (said.raw or "").encode(), ())
        if node.is_null:
            return _Value(None, None, ())
        if node.kind == "map":
            return self.value({key.text: value for key, value in node.entries}, {key.text: key.where for key, _ in node.entries})
        if node.kind == "scalar" and self.topic.value != "json":
            return _Value(None, node.text.encode(), ())
        hint = 'write the columns, `value: {…}`, or the text itself, `raw: "…"`'
        self.refuse(node.where, "wrong-type", "a value is a map of columns", hint)
        return _Value(None, None, ())

    def value(self, given: Mapping[str, Node], places: Mapping[str, Where]) -> _Value:
        """Each column is written to where its topic reads it from."""
        key: bytes | None = None
        headers: list[tuple[str, bytes | None]] = []
        fields: list[tuple[str, str]] = []
        parts: list[tuple[str, str]] = []  # of the key
        text: bytes | None = None
        columns = {column.name: column for column in self.pipeline.topic.columns}
        for name, node in given.items():
            if name not in columns:
                hint = closest(name, columns, f"the topic has {', '.join(f'`{each}`' for each in columns)}")
                self.refuse(places[name], "unknown-column", f"the topic `{self.topic.name}` has no column `{name}`", hint)
            elif name == self.topic.key.as_:
                key = self.long(node, f"`{name}`") if self.topic.key.format == "long" else self.text(node, f"`{name}`")
            elif name in self.topic.key.columns:
                parts.append((name, self.json(node, columns[name])))
            elif name in self.topic.headers:
                headers.append((name, self.text(node, f"`{name}`")))
            elif self.topic.value == "json":
                fields.append((name, self.json(node, columns[name])))
            else:
                text = self.text(node, f"`{name}`")
        value = json_object(fields).encode() if self.topic.value == "json" else text
        return _Value(json_object(parts).encode() if parts else key, value, tuple(headers))

    def json(self, node: Node, column: Column) -> str:
        if column.type == VOID:  # what is wrong with it has been said
            return "null"
        try:
            said = self.topic.columns.get(column.name) or self.topic.key.columns[column.name]
            return json_text(node, column.type, said.format)
        except Wrong as wrong:
            self.refuse(wrong.where, wrong.code, f"`{column.name}`: {wrong.message}", wrong.hint or _RAW)
            return "null"

    def key(self, said: kinds.Message, node: Node, taken: bool) -> bytes | None:
        where = said.key_place("key")
        if self.topic.key.format == "none":
            hint = "remove it, or give the topic a `key`"
            self.refuse(where, "unused-key", f"the topic `{self.topic.name}` has `key: none`", hint)
        if taken:
            made = self.topic.key.as_ or ", ".join(self.topic.key.columns)
            self.refuse(where, "duplicate-key", f"`{made}` is made of the key, and is given as well", "keep one of them")
        return self.long(node, "`key`") if self.topic.key.format == "long" else self.text(node, "`key`")

    def long(self, node: Node, what: str) -> bytes | None:
        if node.is_null:
            return None
        if node.kind != "scalar" or not re.fullmatch(r"-?\d{1,19}", node.text) or not -(1 << 63) <= int(node.text) < 1 << 63:
            self.refuse(node.where, "wrong-type", f"{what} is a number of 8 bytes", "write a whole number, such as 42")
            return None
        return struct.pack(">q", int(node.text))

    def text(self, node: Node, what: str) -> bytes | None:
        if node.kind != "scalar":
            self.refuse(node.where, "wrong-type", f"{what} is a text, not a {node.kind}", "write a text")
        return None if node.is_null else node.text.encode()

    def refuse(self, where: Where, code: str, message: str, hint: str) -> None:
        self.problems.append(Problem(where, code, message, hint))


def kafka_name(pipeline: Pipeline, said: kinds.Message | kinds.BadRow, problems: list[Problem]) -> str:
    """The topic that is meant, as Kafka calls it."""
    topics = {topic.name: topic.kafka_name for topic in pipeline.topics}
    if said.topic is not None and said.topic not in topics:
        hint = closest(said.topic, topics, f"it reads {', '.join(f'`{name}`' for name in topics) or 'a table'}")
        message = f"the pipeline `{pipeline.name}` reads no topic `{said.topic}`"
        problems.append(Problem(said.place("topic"), "unknown-topic", message, hint))
    return topics.get(said.topic or "", pipeline.sources[0])
