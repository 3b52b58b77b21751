"""Writes the messages and schemas that `sluice generate` and `sluice send` put into a topic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number, InvalidOperation
from typing import Any

from framework.base import types
from framework.base.types import Array, Decimal, Field, Map, Struct, Type
from framework.messages.encoding import json_values
from framework.messages.formats.protobuf.columns import STRING_FIELD
from framework.messages.formats.protobuf.compiler import Descriptor, meta, to_write
from framework.messages.formats.protobuf.well_known_types import DECIMAL, decimal_type
from framework.messages.schemas.versions import Unsupported
from framework.plan.schema import Schema

_FIRST_TYPE = b"\0"  # the place of the message type in the schema
_SCALARS: dict[Type, str] = {
    types.BOOLEAN: "bool", types.TINYINT: "int32", types.SMALLINT: "int32", types.INT: "int32", types.BIGINT: "int64",
    types.FLOAT: "float", types.DOUBLE: "double", types.STRING: "string", types.BINARY: "bytes",
    types.DATE: "google.type.Date", types.TIMESTAMP: "google.protobuf.Timestamp",
}  # fmt: skip
_IMPORTS = {
    "google.type.Date": ("google/type/date.proto",),
    "google.protobuf.Timestamp": ("google/protobuf/timestamp.proto",),
    DECIMAL: ("confluent/meta.proto", "confluent/type/decimal.proto"),
}
_KEYS: dict[Type, str] = {type_: _SCALARS[type_] for type_ in (types.STRING, types.BOOLEAN, types.INT, types.BIGINT)}
_LONGEST = 100  # places before or behind a decimal's point
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def encoder(schema: Schema) -> Callable[[Mapping[str, Any]], bytes]:
    """Returns a function that writes the bytes behind the id. Values are those of JSON: times and dates are ISO text, bytes base64,
    decimals numbers or text, durations microseconds; a column of JSON text is the text or its value. A ValueError says what does
    not fit."""
    from google.protobuf.json_format import ParseDict, ParseError
    from google.protobuf.message import EncodeError
    from google.protobuf.message_factory import GetMessageClass

    descriptor = to_write(schema)
    message_class, pool = GetMessageClass(descriptor), descriptor.file.pool

    def encode(values: Mapping[str, Any]) -> bytes:
        try:
            message = ParseDict(_message(descriptor, values), message_class(), descriptor_pool=pool)
            return _FIRST_TYPE + bytes(message.SerializeToString(deterministic=True))
        except (ParseError, EncodeError, OverflowError) as error:
            raise ValueError(str(error)) from None

    return encode


def _message(descriptor: Descriptor, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values as protobuf's own JSON has them."""
    by_name = {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
    return {name: _field(by_name[name], value) if name in by_name else value for name, value in values.items()}


def _field(field: Descriptor, value: Any) -> Any:
    if field.message_type and field.message_type.GetOptions().map_entry and isinstance(value, Mapping):
        inner = field.message_type.fields_by_name["value"]
        return {key: _value(inner, field, item) for key, item in value.items()}
    if field.is_repeated and isinstance(value, (list, tuple)):
        return [_value(field, field, item) for item in value]
    return _value(field, field, value)


def _value(field: Descriptor, outer: Descriptor, value: Any) -> Any:
    name = field.message_type.full_name if field.message_type else None
    if name == DECIMAL and isinstance(value, (Number, int, float, str)) and not isinstance(value, bool):
        return _decimal(outer, value)
    if name == "google.type.Date" and isinstance(value, str):
        return _parts(outer, value, r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)")
    if name == "google.type.TimeOfDay" and isinstance(value, str):
        return _parts(outer, value, r"(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:\.(?P<nanos>\d{1,9}))?")
    if name == "google.protobuf.Duration" and isinstance(value, int):
        return f"{'-' if value < 0 else ''}{abs(value) // 1_000_000}.{abs(value) % 1_000_000:06}s"
    if name in ("google.protobuf.Struct", "google.protobuf.ListValue") and isinstance(value, str):
        return json.loads(value)
    if isinstance(value, Number):
        is_whole = value.is_finite() and value == value.to_integral_value() and field.type != STRING_FIELD
        return int(value) if is_whole else str(value)
    if name and isinstance(value, Mapping) and name != "google.protobuf.Struct":
        return _message(field.message_type, value)
    return value


def _decimal(field: Descriptor, value: Any) -> dict[str, Any]:
    params = meta(field)[1]
    try:
        number = Number(str(value))
    except InvalidOperation:
        raise ValueError(f"{value!r} is not a number for `{field.name}`") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _LONGEST:
        raise ValueError(f"{value!r} is not a number for `{field.name}`")
    scale = decimal_type(params).scale if params else max(0, -exponent)
    try:
        unscaled = json_values.unscaled(number, scale)
    except ValueError:
        raise ValueError(f"{value} has more than the {scale} decimal places of `{field.name}`") from None
    return {"value": json_values.base64_of(number, scale), "precision": len(str(abs(unscaled))), "scale": scale}


def _parts(field: Descriptor, text: str, pattern: str) -> dict[str, int]:
    match = re.fullmatch(pattern, text, re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} does not fit `{field.name}`")
    parts = {name: part for name, part in match.groupdict().items() if part}
    return {name: int(part.ljust(9, "0") if name == "nanos" else part) for name, part in parts.items()}


def schema_text(name: str, columns: Sequence[Field]) -> str:
    """Returns a .proto file whose first message type has these columns; tinyint and smallint come back as int."""
    imports: set[str] = set()
    body = _body(_type_name(name), columns, "", imports)
    lines = ['syntax = "proto3";', *(f'import "{path}";' for path in sorted(imports)), "", *body]
    return "\n".join(lines) + "\n"


def _body(name: str, fields: Sequence[Field], indent: str, imports: set[str]) -> list[str]:
    inner_lines: list[str] = []
    lines: list[str] = []
    taken_names = {name, *(field.name for field in fields)}
    for number, field in enumerate(fields, 1):
        if not _NAME.fullmatch(field.name):
            raise Unsupported(f"`{field.name}` cannot be a field of a Protobuf message", "its names are of a-z, 0-9 and `_`")
        wrap, type_ = _unwrapped(field)
        declared, options = _declared(type_)
        if isinstance(type_, Struct):
            declared = _type_name(field.name)
            while declared in taken_names:
                declared += "_"
            taken_names.add(declared)
            inner_lines += _body(declared, type_.fields, f"{indent}  ", imports)
        elif not declared:
            raise Unsupported(f"`{field.name}` is {field.type}, which Protobuf does not have", "see which types can be written")
        imports.update(_IMPORTS.get(declared, ()))
        lines.append(f"{indent}  {wrap.format(declared)} {field.name} = {number}{options};")
    return [f"{indent}message {name} {{", *inner_lines, *lines, f"{indent}}}"]


def _unwrapped(field: Field) -> tuple[str, Type]:
    """Returns the label or container around a field's type, and the type inside."""
    if isinstance(field.type, Array):
        return "repeated {}", field.type.element
    if isinstance(field.type, Map) and field.type.key in _KEYS:
        return f"map<{_KEYS[field.type.key]}, {{}}>", field.type.value
    return "optional {}", field.type


def _declared(type_: Type) -> tuple[str, str]:
    """Returns Protobuf's name for a type, and the options behind a field's number; an empty name if Protobuf has no such type."""
    if isinstance(type_, Decimal):
        params = f'{{key: "precision", value: "{type_.precision}"}}, {{key: "scale", value: "{type_.scale}"}}'
        return DECIMAL, f" [(confluent.field_meta) = {{params: [{params}]}}]"
    return _SCALARS.get(type_, ""), ""


def _type_name(name: str) -> str:
    pascal = "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))
    return pascal if pascal[:1].isalpha() else f"Message{pascal}"
