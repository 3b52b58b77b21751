"""Describes a compiled Protobuf schema for the decoder: its message types, their fields, and the default of an absent field."""

from __future__ import annotations

import base64
import math
from typing import Any

from framework.messages.formats.protobuf.compiler import Descriptor, messages
from framework.plan.schema import Schema

Json = Any
_KINDS = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string", 11: "message",
    12: "bytes", 13: "uint32", 14: "enum", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64",
}  # fmt: skip


def writer(schema: Schema) -> dict[str, Json]:
    """Returns the description by which messages of the first message type are read."""
    compiled = messages(schema)
    types: dict[str, Json] = {}
    enums: dict[str, Json] = {}
    waiting = [compiled.first]
    while waiting:
        message = waiting.pop()
        if message.full_name in types:
            continue
        types[message.full_name] = [_field(field, compiled.maps) for field in message.fields]
        for field in message.fields:
            if field.message_type:
                waiting.append(field.message_type)
            if field.enum_type:
                values = [[value.number, value.name] for value in field.enum_type.values]
                enums[field.enum_type.full_name] = {"closed": field.enum_type.is_closed, "values": values}
    return {"first": compiled.first.full_name, "types": types, "enums": enums}


def _field(field: Descriptor, maps: frozenset[str]) -> dict[str, Json]:
    member: dict[str, Json] = {"name": field.name, "number": field.number, "kind": _KINDS[field.type]}
    if field.message_type:
        member["type"] = field.message_type.full_name
    if field.enum_type:
        member["enum"] = field.enum_type.full_name
    if field.is_repeated:
        member["map" if field.message_type and field.message_type.full_name in maps else "repeated"] = True
    elif field.is_required:
        member["required"] = True
    in_entry = field.containing_type.full_name in maps
    if not field.is_repeated and not field.message_type and (in_entry or not field.has_presence or field.has_default_value):
        member["default"] = _constant(field)
    if field.containing_oneof and len(field.containing_oneof.fields) > 1:
        member["oneof"] = field.containing_oneof.name
    return member


def _constant(field: Descriptor) -> str:
    """Returns the default of a field as text that the decoder in Java reads."""
    value = field.default_value
    if field.enum_type:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value).lower() if isinstance(value, bool) else str(value)
