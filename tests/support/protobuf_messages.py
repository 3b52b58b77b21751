"""Schemas and messages of Protobuf, and their rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.types import Array, Map, Struct, Type
from framework.messages.formats.protobuf import read, shapes
from framework.messages.formats.protobuf.compiler import to_write
from framework.messages.schemas.versions import merge
from framework.plan.schema import Schema, Version

if TYPE_CHECKING:
    from tests.support.decoders import Decoders, Row

IMPORTS = "".join(
    f'import "{name}.proto";'
    for name in (
        *(f"google/protobuf/{name}" for name in ("timestamp", "duration", "wrappers", "struct", "any", "empty", "field_mask")),
        *("confluent/meta", "confluent/type/decimal", "google/type/date", "google/type/timeofday"),
    )
)


def proto(body: str, syntax: str = 'syntax = "proto3";', **references: Schema) -> Schema:
    return Schema(
        "PROTOBUF", f"{syntax} {IMPORTS} {body}", tuple((f"{name}.proto", schema) for name, schema in references.items())
    )


def one(fields: str, types: str = "") -> Schema:
    return proto(f"message M {{ {fields} }} {types}")


@lru_cache
def written(schema: Schema) -> Any:
    """The class of the first message type."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(to_write(schema))


Rows = list[dict[str, Any] | None]
_RUNNING: dict[str, Decoders] = {}


@pytest.fixture(autouse=True)
def running(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("spark"):
        _RUNNING["jvm"] = request.getfixturevalue("decoders")


def description(*schemas: Schema) -> tuple[dict[str, Any], dict[str, Type]]:
    """Returns the decoder's description for these schemas, and the columns. Ids and versions count from 1."""
    merged = merge([(Version(number, schema, number), shapes(schema)) for number, schema in enumerate(schemas, 1)])
    reading = read("value", merged)
    described = {"format": reading.format, "columns": reading.columns, "writers": reading.writers}
    return described, {shape.name: shape.type for shape in merged.shapes}


def using(*schemas: Schema) -> Callable[[Sequence[bytes | None]], Rows]:
    """Returns a decoder of messages of these schemas. A message without a schema becomes None."""
    described, types_ = description(*schemas)
    return lambda messages: [_flagged(row, types_) for row in _RUNNING["jvm"].rows(described, types_, messages)]


def _flagged(row: Row, types_: Mapping[str, Type]) -> dict[str, Any] | None:
    """Returns the row's values with a flag; a wrong message has only nulls, one without a schema is None."""
    if row.values is not None:
        return {**{name: with_maps(value, types_[name]) for name, value in row.values.items()}, "_sluice_wrong": False}
    if row.code in ("null_value", "unknown_schema") or "does not begin with the id of a schema" in str(row.why):
        return None
    assert row.code == "undecodable"
    return {**dict.fromkeys(types_), "_sluice_wrong": True}


def with_maps(value: Any, type_: Type) -> Any:
    """Returns a value of a column, with maps as dicts."""
    if value is None:
        return None
    match type_:
        case Array():
            return [with_maps(item, type_.element) for item in value]
        case Map():
            entries = {key: with_maps(item, type_.value) for key, item in value}
            assert len(entries) == len(value), "a key is there twice"
            return entries
        case Struct():
            return {field.name: with_maps(value[field.name], field.type) for field in type_.fields}
    return value


def framed(message: Any, id: int = 1) -> bytes:
    body = message if isinstance(message, bytes) else message.SerializeToString()
    return b"\0" + id.to_bytes(4, "big") + b"\0" + body


def rows(decode: Callable[[Sequence[bytes | None]], Rows], *messages: bytes | None) -> list[Any]:
    decoded = decode(messages)
    assert len(decoded) == len(messages)
    return list(decoded)


def is_wrong(schema: Schema, message: Any) -> bool:
    """Returns whether a message is wrong. Then it has no values; the right messages around it stay right."""
    before, decoded, after = rows(using(schema), framed(b""), framed(message), framed(b""))
    assert before == after
    if decoded["_sluice_wrong"]:
        assert set(decoded.values()) == {True, None}
    return bool(decoded["_sluice_wrong"])


def sized(data: bytes) -> bytes:
    """Returns data behind its length, as Protobuf writes it."""
    length, prefix = len(data), b""
    while length > 127:
        prefix += bytes([length & 127 | 128])
        length >>= 7
    return prefix + bytes([length]) + data


def changed(chance: random.Random, whole: bytes) -> bytes:
    body = bytearray(whole)
    for _ in range(chance.randint(1, 3)):
        start, length = chance.randrange(len(body)), chance.randint(0, 4)
        kind = chance.randrange(4)
        if kind == 0:
            body[start] ^= 1 << chance.randrange(8)
        elif kind == 1:
            body[start] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            body[start : start + length] = chance.randbytes(chance.randint(0, 4))
        else:
            body[start:start] = body[chance.randrange(len(body)) :][:length]
    return bytes(body)
