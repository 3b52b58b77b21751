"""Turns one message into a line of JSON for people to read, with the values of its columns, by Google's library."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from framework.base.types import TIMESTAMP, Array, Field, Map, Struct, Type
from framework.messages.encoding import json_values
from framework.messages.formats.protobuf.columns import ENUM, MESSAGE, STRING_FIELD, shapes
from framework.messages.formats.protobuf.compiler import Descriptor, messages
from framework.messages.formats.protobuf.well_known_types import WELL_KNOWN
from framework.plan.schema import Schema


def decoder(schema: Schema) -> Callable[[bytes], str]:
    """Returns a function that reads the bytes behind the id. A ValueError says that they are no message of this schema."""
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    descriptor = messages(schema).first
    message_class = GetMessageClass(descriptor)
    columns = Struct(tuple(Field(shape.name, shape.type) for shape in shapes(schema)))

    def decode(data: bytes) -> str:
        try:
            message = message_class.FromString(_body(data))
            _check(message)
            return json_values.text(_fields(message, descriptor, columns))
        except (DecodeError, ValueError):
            raise ValueError("it is cut off, has fields that the schema does not have, or was written by another") from None

    return decode


def _body(data: bytes) -> bytes:
    """Returns the bytes behind the place of the message type in its schema. The place is a count, then so many numbers; a lone 0 is short
    for the first type, the only one that is read."""
    for first_type in (b"\0", b"\2\0"):
        if data.startswith(first_type):
            return data[len(first_type) :]
    raise ValueError("not of the first message type")


def _check(message: Any) -> None:
    """Refuses a message in which, at any depth, a field is required and missing, unknown, or a text of proto2 that is not UTF-8."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if not message.IsInitialized() or len(UnknownFieldSet(message)):
        raise ValueError("a field is missing or unknown")
    for field, value in message.ListFields():
        for item in value if field.is_repeated else (value,):
            if field.message_type:
                _check(item)
            elif field.type == STRING_FIELD and isinstance(item, bytes):
                raise ValueError("not UTF-8")


def _fields(message: Any, descriptor: Descriptor, struct: Struct) -> dict[str, Any]:
    return {field.name: _field(message, descriptor.fields_by_name[field.name], field.type) for field in struct.fields}


def _field(message: Any, field: Descriptor, type_: Type) -> Any:
    if field.has_presence and not field.has_default_value and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if isinstance(type_, Map):  # the last of equal keys counts
        value_field = field.message_type.fields_by_name["value"]
        return {_key(entry.key): _value(entry.value, value_field, type_.value) for entry in value}
    if isinstance(type_, Array):
        return [_value(item, field, type_.element) for item in value]
    return _value(value, field, type_)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(value: Any, field: Descriptor, type_: Type) -> Any:
    """Returns one value of a field, without the list or map that it is in."""
    if isinstance(type_, Struct):
        return _fields(value, field.message_type, type_)
    if field.type == ENUM:
        return next((symbol.name for symbol in field.enum_type.values if symbol.number == value), str(value))
    if field.type == MESSAGE:
        value = WELL_KNOWN[field.message_type.full_name].value(value, type_)
    if type_ == TIMESTAMP:
        return json_values.iso(json_values.EPOCH + timedelta(microseconds=value), TIMESTAMP)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
