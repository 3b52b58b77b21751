"""A topic's columns and how its messages are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from framework import types
from framework.errors import MOST_PROBLEMS, Problem, Where
from framework.formats import bytes as bytes_format
from framework.formats import json, string
from framework.plan import generated
from framework.plan.model import Cluster, Column, Decoding, Fault, Generated, Generator, Topic
from framework.plan.rows import name_problems, quoted
from framework.spec import kinds
from framework.sql.faults import closest
from framework.types import Type


def resolve(said: kinds.Topic, cluster: Cluster, problems: list[Problem]) -> Topic | None:
    before = len(problems)
    fields = _fields(said, problems)
    value_columns, decoding = _value(said, fields)
    columns = (*value_columns, *_key_columns(said), *(Column(name, types.STRING) for name in said.headers))
    problems += _column_problems(said)
    if said.event_time is not None:
        problems += _event_time_problems(said, columns)
    generator = _generator(said, fields, problems) if said.generate else None
    if len(problems) > before:
        return None
    return Topic(
        said.name, said.place(), said.doc or "", cluster, said.kafka_name or said.name, said.partitions, said.value, columns,
        said.key.as_, said.key.format, tuple(said.headers), _with_key(said, decoding), said.event_time, said.start_from, generator,
    )  # fmt: skip


def differences(topics: tuple[Topic, ...], places: Mapping[str, Where]) -> Iterator[Problem]:
    """Topics of one pipeline have one shape, since one message of each makes the same rows."""
    for topic in topics[1:]:
        first = topics[0]
        same = {
            "value": first.value == topic.value,
            "columns": [(each.name, each.type) for each in first.columns] == [(each.name, each.type) for each in topic.columns],
            "key": (first.key_format, first.key_column) == (topic.key_format, topic.key_column),
            "headers": first.headers == topic.headers,
            "event_time": first.event_time == topic.event_time,
            "unknown_fields or required": first.decoding == topic.decoding,
        }
        wrong = next((what for what, alike in same.items() if not alike), None)
        if wrong:
            yield Problem(
                places[topic.name], "topics-differ", f"`{topic.name}` and `{first.name}` differ in their {wrong}",
                f"make them alike ({first.where}, {topic.where}), or write two pipelines",
            )  # fmt: skip


def _fields(said: kinds.Topic, problems: list[Problem]) -> list[json.Field]:
    fields = []
    for name, column in said.columns.items():
        if len(problems) > MOST_PROBLEMS:
            break
        try:
            type_ = types.parse(column.type)
        except types.TypeTextError as error:
            problems.append(Problem(column.place("type"), "bad-type", error.message, error.hint))
            continue
        if column.format and type_ != types.TIMESTAMP:
            hint = "write `type: timestamp`, or remove `format`"
            problems.append(Problem(column.place("format"), "unused-key", f"`format` means nothing for {type_}", hint))
        fields.append(json.Field(name, type_, column.required, column.format))
    return fields


def _value(said: kinds.Topic, fields: list[json.Field]) -> tuple[tuple[Column, ...], Decoding]:
    if said.value == "json":
        docs = {name: column.doc or "" for name, column in said.columns.items()}
        return tuple(Column(field.name, field.type, docs[field.name]) for field in fields), json.decoding(
            fields, said.unknown_fields
        )
    module = string if said.value == "string" else bytes_format
    return module.COLUMNS, module.decoding()


def _key_columns(said: kinds.Topic) -> tuple[Column, ...]:
    if said.key.as_ is None:
        return ()
    return (Column(said.key.as_, types.BINARY if said.key.format == "bytes" else types.STRING, "The message's key"),)


def _with_key(said: kinds.Topic, decoding: Decoding) -> Decoding:
    """The decoding with the key's and the headers' columns, where they are asked for."""
    columns = list(decoding.columns)
    faults = list(decoding.faults)
    if said.key.as_ is not None:
        columns.append((said.key.as_, "_sluice_key" if said.key.format == "bytes" else "CAST(_sluice_key AS STRING)"))
        if said.key.format == "string":
            invalid = "NOT coalesce(is_valid_utf8(CAST(_sluice_key AS STRING)), true)"
            faults.append(Fault("key", "undecodable_key", "the key is not UTF-8 text", invalid))
    for name in said.headers:
        # Of equal header names the last counts, as in Kafka's own clients.
        same = f"h -> h.key = {quoted(name)}"
        value = f"element_at(filter(_sluice_headers, {same}), -1).value"
        columns.append((name, f"CASE WHEN exists(_sluice_headers, {same}) THEN CAST({value} AS STRING) END"))
        invalid = f"NOT coalesce(is_valid_utf8({columns[-1][1]}), true)"
        faults.append(Fault("headers", "undecodable_header", f"the header `{name}` is not UTF-8 text", invalid))
    return replace(decoding, columns=tuple(columns), faults=tuple(faults))


def _column_problems(said: kinds.Topic) -> Iterator[Problem]:
    spelt: dict[str, str] = {}
    seen: set[str] = set()
    for name, where in _places(said):
        yield from name_problems(name, where, [spelt.setdefault(name.lower(), name)])
        if name in seen:
            yield Problem(where, "duplicate-column", f"there are two columns `{name}`", "name one of them otherwise")
        seen.add(name)


def _places(said: kinds.Topic) -> Iterator[tuple[str, Where]]:
    """Every column and where it is named, even if its type is wrong."""
    if said.value != "json":
        yield "value", said.place("value")
    yield from _keys(said, "columns")
    if said.key.as_ is not None:
        yield said.key.as_, said.place("key", "as")
    yield from _keys(said, "headers")


def _keys(said: kinds.Topic, option: str) -> Iterator[tuple[str, Where]]:
    node = said.node.get(option)
    return ((key.text, key.where) for key, _ in (node.entries if node else ()))


def _event_time_problems(said: kinds.Topic, columns: tuple[Column, ...]) -> Iterable[Problem]:
    where = said.place("event_time")
    found = next((column for column in columns if column.name == said.event_time), None)
    if found is None and said.event_time in said.columns:
        return  # its type is wrong, which has been said
    if found is None:
        hint = closest(said.event_time or "", [column.name for column in columns], "name one of the topic's columns")
        yield Problem(where, "unknown-column", f"there is no column `{said.event_time}`", hint)
    elif found.type not in (types.TIMESTAMP, types.VOID):
        yield Problem(
            where, "not-a-time", f"`{found.name}` is {found.type}, not timestamp", "an event time is a timestamp column"
        )


def _generator(said: kinds.Topic, fields: list[json.Field], problems: list[Problem]) -> Generator | None:
    generate = said.generate
    assert generate is not None
    known = dict(_generated(said, fields))
    made = []
    for name, way in generate.columns.items():
        if len(problems) > MOST_PROBLEMS or (name not in known and name.partition(".")[0] in said.columns.keys() - known.keys()):
            continue  # of a column whose type is wrong, that has been said
        if name not in known:
            hint = closest(name, known, "name one of the topic's columns")
            where = said.key_place("generate", "columns", name)
            problems.append(Problem(where, "unknown-column", f"there is no column `{name}`", hint))
            continue
        made.append((name, known[name], Generated(way.one_of, way.between, way.pattern)))
        try:
            generated.check(*made[-1])
        except generated.Unsuited as error:
            problems.append(Problem(way.place(), error.code, error.message, error.hint))
    return Generator(generate.rate, said.key.as_, tuple(made))


def _generated(said: kinds.Topic, fields: list[json.Field]) -> Iterator[tuple[str, Type]]:
    """What `generate` can name, with the types that the messages have."""
    for field in fields:
        yield from _paths(field.name, types.BIGINT if field.format else field.type)
    texts = [] if said.value == "json" else ["value"]
    texts += [said.key.as_] if said.key.as_ is not None else []
    for name in (*texts, *said.headers):
        yield name, types.STRING


def _paths(name: str, type_: Type) -> Iterator[tuple[str, Type]]:
    yield name, type_
    if isinstance(type_, types.Struct):
        for field in type_.fields:
            yield from _paths(f"{name}.{field.name}", field.type)
