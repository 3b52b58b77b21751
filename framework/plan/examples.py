"""A pipeline's tests: what is written becomes messages as Kafka would have them, and typed rows that are to come of them."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from framework.errors import MOST_PROBLEMS, Problem, Where
from framework.plan.model import Column, Example, Message, Pipeline
from framework.plan.values import Wrong, json_object, json_text, read
from framework.spec import kinds
from framework.spec.node import Node
from framework.sql.faults import closest

START = datetime(2026, 1, 1, tzinfo=timezone.utc)  # Kafka's timestamp of a test's first message that says none
_RAW = 'to see what becomes of a wrong value, write the text itself: `message: {raw: "…"}`'


def resolve(
    pipeline: Pipeline, said: kinds.Pipeline, topics: Iterable[kinds.Topic], problems: list[Problem]
) -> tuple[Example, ...]:
    """The tests that have no problems."""
    if pipeline.source and said.tests:
        hint = "test the pipeline that writes that table"
        where = said.key_place("tests")
        problems.append(Problem(where, "not-in-this-version", "tests of a pipeline that reads a table come later", hint))
    if pipeline.source or not said.tests:
        return ()
    # All topics of one pipeline have one shape.
    reader = _Reader(pipeline, next(topic for topic in topics if topic.name == pipeline.topic.name), problems)
    seen: dict[str, kinds.Test] = {}
    found = []
    for test in said.tests:
        if len(problems) > MOST_PROBLEMS:
            break
        first = seen.setdefault(test.name, test)
        if first is not test:
            hint = f"the first is at {first.place()}: name one of them otherwise"
            problems.append(Problem(test.place("name"), "duplicate-name", f"there are two tests `{test.name}`", hint))
        before = len(problems)
        example = reader.example(test)
        if len(problems) == before:
            found.append(example)
    return tuple(found)


@dataclass(frozen=True)
class _Value:
    """What a map of columns becomes."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class _Reader:
    pipeline: Pipeline
    topic: kinds.Topic
    problems: list[Problem]

    def example(self, test: kinds.Test) -> Example:
        expect = None
        if test.expect is not None:
            expect = tuple(self.row(row, test, at) for at, row in enumerate(test.expect))
        bad = tuple(self.bad_row(row) for row in test.expect_bad or ())
        return Example(test.name, test.place(), tuple(self.messages(test)), expect, bad)

    def messages(self, test: kinds.Test) -> Iterator[Message]:
        batch, number, last = 1, 0, ""
        offsets: Counter[tuple[str, int]] = Counter()
        for at, given in enumerate(test.given):
            if isinstance(given, str):
                if last in ("", given) or at + 1 == len(test.given):
                    hint = "write messages before and behind it, or remove it"
                    self.refuse(test.place("given", at), "empty-batch", "a batch without messages", hint)
                batch, last = batch + 1, given
                continue
            moment = START + timedelta(seconds=number)
            if isinstance(given, kinds.GivenMessage):
                message = self.whole(given.message, moment)
            else:
                message = self.of_columns(given, test, at, moment)
            place = (message.topic, message.partition)
            yield replace(message, batch=batch, offset=offsets[place])
            offsets[place] += 1
            number, last = number + 1, "message"

    def of_columns(self, given: Mapping[str, Node], test: kinds.Test, at: int, moment: datetime) -> Message:
        places = {name: test.key_place("given", at, name) for name in given}
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
        return Message(
            0, self.kafka_name(said), said.partition, 0, said.at or moment, key, made.value, (*headers, *made.headers)
        )  # fmt: skip

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

    def kafka_name(self, said: kinds.Message | kinds.BadRow) -> str:
        topics = {topic.name: topic.kafka_name for topic in self.pipeline.topics}
        if said.topic is not None and said.topic not in topics:
            hint = closest(said.topic, topics, f"it reads {', '.join(f'`{name}`' for name in topics)}")
            message = f"the pipeline `{self.pipeline.name}` reads no topic `{said.topic}`"
            self.refuse(said.place("topic"), "unknown-topic", message, hint)
        return topics.get(said.topic or "", self.pipeline.topic.kafka_name)

    def row(self, said: Mapping[str, Node], test: kinds.Test, at: int) -> Mapping[str, Any]:
        columns = {column.name: column for column in self.pipeline.table.columns}
        found = {}
        for name, node in said.items():
            if name not in columns:
                hint = closest(name, columns, f"the table has {', '.join(f'`{each}`' for each in columns)}")
                message = f"the table `{self.pipeline.table.identifier}` has no column `{name}`"
                self.refuse(test.key_place("expect", at, name), "unknown-column", message, hint)
                continue
            try:
                found[name] = read(node, columns[name].type)
            except Wrong as wrong:
                hint = wrong.hint or "such a row can never come: write values as the column has them"
                self.refuse(wrong.where, wrong.code, f"`{name}`: {wrong.message}", hint)
        return found

    def bad_row(self, said: kinds.BadRow) -> Mapping[str, Any]:
        faults = self.pipeline.faults
        known = {"error": {fault.code for fault in faults}, "stage": {fault.stage for fault in faults}}
        for option, names in known.items():
            name = getattr(said, option)
            if name is not None and name not in names:
                hint = closest(name, names, f"there is {', '.join(f'`{each}`' for each in sorted(names))}")
                noun = "error" if option == "error" else "stage"
                self.refuse(
                    said.place(option), f"unknown-{noun}", f"no row of this pipeline can fail with the {noun} `{name}`", hint
                )
        found = {
            "code": said.error, "stage": said.stage, "message": said.message, "item": said.item,
            "topic": self.kafka_name(said) if said.topic else None, "partition": said.partition, "offset": said.offset,
            "key": None if said.key is None else said.key.encode(), "value": None if said.value is None else said.value.encode(),
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}

    def refuse(self, where: Where, code: str, message: str, hint: str) -> None:
        self.problems.append(Problem(where, code, message, hint))
