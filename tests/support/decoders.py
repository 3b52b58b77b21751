"""Decodes messages by the jar in a bare JVM, without a Spark job: a million in a few seconds."""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from framework.base import type_text, types
from framework.base.types import Array, Map, Struct, Type
from framework.machine.java.java import java
from framework.machine.jvm import build
from framework.messages.encoding import decoder
from framework.messages.encoding.fields import WrittenType

_EPOCH = datetime(1970, 1, 1)
_OPENED = ("lang", "nio", "util", "lang.invoke")
MEMORY = "512m"


@dataclass(frozen=True)
class Row:
    """A decoded message: `values` are its columns, or None for a bad message."""

    values: dict[str, Any] | None
    code: str | None
    why: str | None


@dataclass(frozen=True)
class Decoders:
    jvm: Any

    def rows(self, description: Mapping[str, Any], types_: Mapping[str, Type], messages: Iterable[bytes | None]) -> list[Row]:
        """The decoded messages. `types_` are the types of all columns, in their order."""
        rows = []
        for line in self.lines(description, messages):
            *values, code, why = line
            row = {name: value(json_value, type_) for json_value, (name, type_) in zip(values, types_.items(), strict=True)}
            assert code is None or not any(json_value is not None for json_value in values), "a bad message has values"
            rows.append(Row(row if code is None else None, code, why))
        return rows

    def lines(self, description: Mapping[str, Any], messages: Iterable[bytes | None]) -> list[list[Any]]:
        """The rows as the JVM writes them."""
        frames = b"".join(
            struct.pack(">i", -1) if message is None else struct.pack(">i", len(message)) + message for message in messages
        )
        text = self.jvm.sluice.AsText.rows(decoder.text(description), frames)
        # A column's text can have line breaks of other scripts, so `splitlines` is no help.
        return [json.loads(line, strict=False) for line in text.split("\n")[:-1]]


@contextmanager
def running(folder: Path) -> Iterator[Decoders]:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    from framework.machine.java import ivy

    options = [f"-Xmx{MEMORY}", "-XX:+UseSerialGC"]
    options += [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
    places = [build.build(folder), *ivy.of_pyspark()]
    (py4j,) = (str(path) for path in places if path.name.startswith("py4j-"))
    port, token = launch_gateway(
        jarpath=py4j, classpath=os.pathsep.join(map(str, places)), javaopts=options, java_path=str(java()), die_on_exit=True,
        enable_auth=True,
    )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield Decoders(gateway.jvm)
    finally:
        gateway.shutdown()
        gateway.java_process and gateway.java_process.wait(30)


def value(json_value: Any, type_: Type) -> Any:
    """The value that Spark would give Python for the JVM's JSON."""
    if json_value is None:
        return None
    match type_:
        case WrittenType():
            return value(json_value, type_.type)
        case Array():
            return [value(item, type_.element) for item in json_value]
        case Map():
            return [(key, value(item, type_.value)) for key, item in zip(*json_value, strict=True)]
        case Struct():
            return {field.name: value(item, field.type) for item, field in zip(json_value, type_.fields, strict=True)}
        case types.Decimal():
            return Decimal(json_value)
        case types.BINARY:
            return base64.b64decode(json_value)
        case types.DATE:
            return date(1970, 1, 1) + timedelta(days=json_value)
        case types.TIMESTAMP:
            return (_EPOCH + timedelta(microseconds=json_value)).replace(tzinfo=timezone.utc)
        case types.TIMESTAMP_NTZ:
            return _EPOCH + timedelta(microseconds=json_value)
        case types.FLOAT | types.DOUBLE:
            return struct.unpack("f", struct.pack("f", json_value))[0] if type_ == types.FLOAT else float(json_value)
    return json_value


def types_of(columns: Sequence[Mapping[str, Any]], **other_types: Type) -> dict[str, Type]:
    """The types by name of columns as a description has them."""
    return {**{column["name"]: _type(column) for column in columns}, **other_types}


def _type(json_: Mapping[str, Any]) -> Type:
    match json_["type"]:
        case "array":
            return Array(_type(json_["element"]))
        case "map":
            return Map(types.STRING, _type(json_["value"]))
        case "struct":
            return Struct(tuple(types.Field(field["name"], _type(field)) for field in json_["fields"]))
    return type_text.parse(json_["type"])


def of_json(columns: Sequence[Mapping[str, Any]], **settings: Any) -> dict[str, Any]:
    return {"format": "json", "columns": columns, "largest": decoder.LARGEST, **settings}
