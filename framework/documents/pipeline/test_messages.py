"""Turn a test's rows into Kafka messages: each column is written to the part from which the topic reads it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import VOID, Type
from framework.documents.pipeline.test_values import BadValue, json_text, plain_json
from framework.documents.pipeline.written_tests import (
    BadRow as WrittenBadRow,
    GivenMessage as WrittenGivenMessage,
    Message as WrittenMessage,
    Test as WrittenTest,
)
from framework.documents.topic.written import Topic as WrittenTopic
from framework.language.node import YamlNode
from framework.messages.encoding import json_values
from framework.messages.encoding.schema_writer import Writer
from framework.messages.formats import DeclaredColumns, Format, OneColumn, RegisteredSchema, by_schema, find, writer
from framework.messages.schemas.versions import Unsupported
from framework.plan import Column, Message, MessagePart, Pipeline

START = datetime(2026, 1, 1, tzinfo=timezone.utc)  # Kafka's timestamp of a test's first message, by default
_RAW = 'to see what becomes of a wrong value, write the text itself: `message: {raw: "…"}`'

_NAMED = re.compile(
    r'`([^`.]+)[`.]|parse (\w+) field|field named "(\w+)"'
)  # the field that does not fit, as each format names it


@dataclass(frozen=True)
class _Value:
    """The parts of a message that a map of columns becomes."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(kw_only=True)
class TestMessages:
    """The messages of one test of a pipeline, in order."""

    pipeline: Pipeline
    topic: WrittenTopic
    problems: list[Problem]
    test: WrittenTest
    offsets: Counter[tuple[str, int]] = field(default_factory=Counter)

    def message(self, batch: int, index: int, item: WrittenGivenMessage | Mapping[str, YamlNode]) -> Message:
        """Returns the message of the item with this index under `given`."""
        moment = START + timedelta(seconds=self.offsets.total())
        if isinstance(item, WrittenGivenMessage):
            message = self.whole(item.message, moment)
        else:
            message = self.of_columns(item, index, moment)
        place = (message.topic, message.partition)
        self.offsets[place] += 1
        return replace(message, batch=batch, offset=self.offsets[place] - 1)

    def of_columns(self, nodes: Mapping[str, YamlNode], index: int, moment: datetime) -> Message:
        places = {name: self.test.key_place("given", index, name) for name in nodes}
        value = self.value(nodes, places)
        return Message(
            batch=0,
            topic=self.pipeline.topic.kafka_name,
            partition=0,
            offset=0,
            timestamp=moment,
            key=value.key,
            value=value.value,
            headers=value.headers,
        )

    def whole(self, written: WrittenMessage, moment: datetime) -> Message:
        value = self.whole_value(written)
        key = value.key
        if written.key is not None:
            key = self.key(written, written.key, has_key=value.key is not None)
        headers = tuple((name, self.text(node, f"the header `{name}`")) for name, node in written.headers.items())
        doubled_names = [name for name, _ in value.headers if name in written.headers]
        for name in doubled_names:
            message = f"`{name}` is a header's column, and the header is given as well"
            self.refuse(written.key_place("headers", name), "duplicate-key", message, "keep one of them")
        if written.at is not None and written.at.microsecond % 1000:
            self.refuse(written.place("at"), "out-of-range", "Kafka's timestamps are whole milliseconds", "leave the rest out")
        topic = kafka_name(self.pipeline, written, self.problems)
        return Message(
            batch=0,
            topic=topic,
            partition=written.partition,
            offset=0,
            timestamp=written.at or moment,
            key=key,
            value=value.value,
            headers=(*headers, *value.headers),
        )

    def whole_value(self, written: WrittenMessage) -> _Value:
        node = written.value
        if node is None:
            return _Value(None, (written.raw or "").encode(), ())
        if node.is_null:
            return _Value(None, None, ())
        if node.kind == "map":
            return self.value({key.text: value for key, value in node.entries}, {key.text: key.where for key, _ in node.entries})
        if node.kind == "scalar" and isinstance(self.format("value"), OneColumn):
            return _Value(None, self.single("value", node, ""), ())
        hint = 'write the columns, `value: {…}`, or the text itself, `raw: "…"`'
        self.refuse(node.where, "wrong-type", "a value is a map of columns", hint)
        return _Value(None, None, ())

    def value(self, nodes: Mapping[str, YamlNode], places: Mapping[str, Where]) -> _Value:
        """Writes each column to the part of a message from which the topic reads it."""
        key: bytes | None = None
        headers: list[tuple[str, bytes | None]] = []
        fields: dict[str, YamlNode] = {}
        parts: dict[str, YamlNode] = {}  # of the key
        topic = self.pipeline.topic
        column_types = {**{column.name: column.type for column in topic.columns}, **self.other_fields()}
        for name, node in nodes.items():
            if name not in column_types and not topic.changes:
                hint = did_you_mean(
                    name, column_types, f"the topic has {', '.join(f'`{known_name}`' for known_name in column_types)}"
                )
                self.refuse(places[name], "unknown-column", f"the topic `{self.topic.name}` has no column `{name}`", hint)
            elif name in topic.key_columns and isinstance(self.format("key"), OneColumn):
                key = self.single("key", node, f"`{name}`")
            elif name in topic.key_columns:
                parts[name] = node
            elif name in self.topic.headers:
                headers.append((name, self.text(node, f"`{name}`")))
            else:
                fields[name] = node
        if parts:
            key = self.fields("key", parts, column_types, places)
        return _Value(key, self.fields("value", fields, column_types, places), tuple(headers))

    def other_fields(self) -> Mapping[str, Type]:
        """Fields of the newest schemas that the spec's columns leave out; messages may need some of them."""
        types: dict[str, Type] = {}
        for part, contract in (("value", self.topic.columns), ("key", self.topic.key.columns)):
            writer = self.writer(part) if contract and not self.pipeline.topic.changes else None
            types |= (
                {writer.column(shape.name): shape.type for shape in by_schema(writer.schema).shapes(writer.schema)}
                if writer
                else {}
            )
        return types

    def writer(self, part: str) -> Writer | None:
        """Returns the writer of keys or values with schemas in a registry; None for other formats, and if there is a problem."""
        for registered in self.pipeline.topic.registered:
            if registered.of == part and registered.write_version:
                try:
                    return writer(registered.write_version.id, registered.write_version.schema, registered.names)
                except Unsupported:
                    return None
        return None

    def format(self, part: MessagePart) -> Format | None:
        return find(part, self.topic.value if part == "value" else self.topic.key.format)

    def fields(
        self, part: MessagePart, nodes: Mapping[str, YamlNode], column_types: Mapping[str, Type], places: Mapping[str, Where]
    ) -> bytes | None:
        format_, topic = self.format(part), self.pipeline.topic
        if isinstance(format_, OneColumn):
            texts = [self.single(part, node, f"`{name}`") for name, node in nodes.items()]
            return texts[-1] if texts else None
        problems_before = len(self.problems)
        whole = part == "value" and topic.changes is not None
        values = self.plain(nodes) if whole else self.typed(part, nodes, column_types)
        if isinstance(format_, DeclaredColumns):
            try:
                return format_.encode(topic.columns_of(part), values)
            except ValueError as error:
                where = next(iter(places.values()), self.test.place())
                self.refuse(where, "wrong-type", f"the {part} does not fit `{topic.name}`: {error}", _RAW)
                return None
        if not whole and (len(self.problems) > problems_before or not column_types):
            return None
        return self.by_schema(part, lambda writer: writer.whole(values) if whole else writer.columns(values), places)

    def plain(self, nodes: Mapping[str, YamlNode]) -> dict[str, Any]:
        """Reads values without types, by the way they are written."""
        values: dict[str, Any] = {}
        for name, node in nodes.items():
            try:
                values[name] = json_values.loads(plain_json(node))
            except ValueError:  # Python reads no number of thousands of digits
                self.refuse(node.where, "wrong-type", f"`{name}` has a number that is too long", _RAW)
        return values

    def typed(self, part: MessagePart, nodes: Mapping[str, YamlNode], column_types: Mapping[str, Type]) -> dict[str, Any]:
        options = self.topic.columns if part == "value" else self.topic.key.columns
        formats = (
            {name: option.format for name, option in options.items()} if isinstance(self.format(part), DeclaredColumns) else {}
        )
        return {
            name: json_values.loads(self.json(node, Column(name, column_types[name]), formats.get(name)))
            for name, node in nodes.items()
        }

    def by_schema(self, part: MessagePart, write: Callable[[Writer], bytes], places: Mapping[str, Where]) -> bytes | None:
        writer = self.writer(part)
        if writer is None or any(problem.where in places.values() for problem in self.problems):  # it was reported
            return None
        try:
            return write(writer)
        except ValueError as error:
            registered = next(candidate for candidate in self.pipeline.topic.registered if candidate.of == part)
            schema_name = (
                f"{registered.write_version} of `{registered.subject}`" if registered.numbers else "the schema made of `columns`"
            )
            mention = _NAMED.search(str(error))
            where = places.get(writer.column(next(filter(None, mention.groups())))) if mention else None
            where = where or next(iter(places.values()), self.test.place())
            hint = _RAW if part == "value" else "write the key as its schema has it"
            self.refuse(where, "wrong-type", f"the {part} does not fit {schema_name}: {error}", hint)
            return None

    def json(self, node: YamlNode, column: Column, format_: str | None) -> str:
        if column.type == VOID:  # its problem was reported
            return "null"
        try:
            return json_text(node, column.type, format_)
        except BadValue as wrong:
            self.refuse(wrong.where, wrong.code, f"`{column.name}`: {wrong.message}", wrong.hint or _RAW)
            return "null"

    def key(self, written: WrittenMessage, node: YamlNode, has_key: bool) -> bytes | None:
        where = written.key_place("key")
        if self.topic.key.format == "none":
            hint = "remove it, or give the topic a `key`"
            self.refuse(where, "unused-key", f"the topic `{self.topic.name}` has `key: none`", hint)
        if has_key:
            columns = self.topic.key.as_ or ", ".join(self.topic.key.columns)
            self.refuse(where, "duplicate-key", f"`{columns}` is made of the key, and is given as well", "keep one of them")
        if isinstance(self.format("key"), RegisteredSchema) and not node.is_null:
            return self.key_by_schema(node)
        if isinstance(self.format("key"), DeclaredColumns) and node.kind == "map":
            types = {column.name: column.type for column in self.pipeline.topic.columns_of("key")}
            return self.fields(
                "key", {key.text: value for key, value in node.entries}, types, {key.text: key.where for key, _ in node.entries}
            )
        return self.single("key", node, "`key`")

    def key_by_schema(self, node: YamlNode) -> bytes | None:
        writer = self.writer("key")
        entries: Iterable[tuple[YamlNode, YamlNode]] = node.entries if node.kind == "map" else ()
        if writer is None:
            return None
        if writer.single != (node.kind == "scalar"):
            form = "one value" if writer.single else "a map of its fields"
            self.refuse(node.where, "wrong-type", f"by its schema the key is {form}", "write it so, or leave it out")
            return None
        places = {key.text: key.where for key, _ in entries} or {"": node.where}
        if writer.single:
            types = {column.name: column.type for column in self.pipeline.topic.columns}
            (name,) = self.pipeline.topic.key_columns
            value = json_values.loads(self.json(node, Column(name, types[name]), None))
            return self.by_schema("key", lambda writer: writer.columns({name: value}), places)
        fields = self.plain({key.text: value for key, value in entries})
        return self.by_schema("key", lambda writer: writer.whole(fields), places)

    def single(self, part: MessagePart, node: YamlNode, label: str) -> bytes | None:
        """Encodes a key or value that is one scalar; in other formats it is the text itself."""
        format_ = self.format(part)
        if not isinstance(format_, OneColumn):
            return self.text(node, label)
        if node.is_null:
            return None
        noun, hint = format_.asks
        if node.kind != "scalar":
            self.refuse(node.where, "wrong-type", f"{label} is {noun}, not a {node.kind}", hint)
            return None
        try:
            return format_.encode(node.text)
        except ValueError:
            self.refuse(node.where, "wrong-type", f"{label} is {noun}", hint)
            return None

    def text(self, node: YamlNode, label: str) -> bytes | None:
        if node.kind != "scalar":
            self.refuse(node.where, "wrong-type", f"{label} is a text, not a {node.kind}", "write a text")
        return None if node.is_null else node.text.encode()

    def refuse(self, where: Where, code: str, message: str, hint: str) -> None:
        self.problems.append(Problem(where, code, message, hint))


def kafka_name(pipeline: Pipeline, written: WrittenMessage | WrittenBadRow, problems: list[Problem]) -> str:
    """Returns Kafka's name for the topic of a message or of a bad row."""
    topics = {topic.name: topic.kafka_name for topic in pipeline.topics}
    if written.topic is not None and written.topic not in topics:
        otherwise = the_names("topic", topics) if topics else "remove it: this pipeline reads a table"
        hint = did_you_mean(written.topic, topics, otherwise)
        message = f"the pipeline `{pipeline.name}` reads no topic `{written.topic}`"
        problems.append(Problem(written.place("topic"), "unknown-topic", message, hint))
    return topics.get(written.topic or "", pipeline.sources[0])
