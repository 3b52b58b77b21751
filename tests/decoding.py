"""Messages are decoded by the jar in a bare JVM, without a Spark job: a million in a few seconds."""

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
    """`values` are the columns, None of a bad message."""

    values: dict[str, Any] | None
    code: str | None
    why: str | None


@dataclass(frozen=True)
class Decoders:
    jvm: Any

    def rows(self, described: Mapping[str, Any], types_: Mapping[str, Type], messages: Iterable[bytes | None]) -> list[Row]:
        """`types_` are those of all columns, in their order."""
        rows = []
        for line in self.lines(described, messages):
            *values, code, why = line
            row = {name: value(each, type_) for each, (name, type_) in zip(values, types_.items(), strict=True)}
            assert code is None or not any(each is not None for each in values), "a bad message has values"
            rows.append(Row(row if code is None else None, code, why))
        return rows

    def lines(self, described: Mapping[str, Any], messages: Iterable[bytes | None]) -> list[list[Any]]:
        """As the JVM writes them."""
        packed = b"".join(struct.pack(">i", -1) if each is None else struct.pack(">i", len(each)) + each for each in messages)
        text = self.jvm.sluice.AsText.rows(decoder.text(described), packed)
        # A column's text can have line breaks of other scripts, so `splitlines` is no help.
        return [json.loads(line, strict=False) for line in text.split("\n")[:-1]]


@contextmanager
def running(folder: Path) -> Iterator[Decoders]:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    from framework.machine.java import ivy

    options = [f"-Xmx{MEMORY}", "-XX:+UseSerialGC"]
    options += [f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in _OPENED]
    places = [build.build(folder), *ivy.of_pyspark()]
    (py4j,) = (str(each) for each in places if each.name.startswith("py4j-"))
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


def value(given: Any, type_: Type) -> Any:
    """From the JVM's JSON to what Spark would give Python."""
    if given is None:
        return None
    match type_:
        case WrittenType():
            return value(given, type_.type)
        case Array():
            return [value(each, type_.element) for each in given]
        case Map():
            return [(key, value(each, type_.value)) for key, each in zip(*given, strict=True)]
        case Struct():
            return {field.name: value(each, field.type) for each, field in zip(given, type_.fields, strict=True)}
        case types.Decimal():
            return Decimal(given)
        case types.BINARY:
            return base64.b64decode(given)
        case types.DATE:
            return date(1970, 1, 1) + timedelta(days=given)
        case types.TIMESTAMP:
            return (_EPOCH + timedelta(microseconds=given)).replace(tzinfo=timezone.utc)
        case types.TIMESTAMP_NTZ:
            return _EPOCH + timedelta(microseconds=given)
        case types.FLOAT | types.DOUBLE:
            return struct.unpack("f", struct.pack("f", given))[0] if type_ == types.FLOAT else float(given)
    return given


def types_of(columns: Sequence[Mapping[str, Any]], **more: Type) -> dict[str, Type]:
    """Of columns as a description has them."""
    return {**{each["name"]: _type(each) for each in columns}, **more}


def _type(json_: Mapping[str, Any]) -> Type:
    match json_["type"]:
        case "array":
            return Array(_type(json_["element"]))
        case "map":
            return Map(types.STRING, _type(json_["value"]))
        case "struct":
            return Struct(tuple(types.Field(each["name"], _type(each)) for each in json_["fields"]))
    return type_text.parse(json_["type"])


def of_json(columns: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {"format": "json", "columns": columns, "largest": decoder.LARGEST, **more}
