"""JSON behind the id of a JSON Schema, of the drafts 4, 6, 7, 2019-09 and 2020-12: its properties are columns, by their types.

Guarantee: as with plain JSON, a message that is not one object with these types is a bad row, never another value. A message whose
schema is of a single value, as keys have it, is that value.
Limit: only the types of a schema are used; a length, a pattern, an enum or `required` makes no bad row. `if`, `not` and
`dependentSchemas` are not read. A value that has several types is its text. Values that Sluice itself writes are checked more closely.
"""

from __future__ import annotations

import json as text_of
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from framework.base import types
from framework.base.types import Array, Decimal, Map, Struct, Type
from framework.messages.encoding import decoder as decoder_, json_values
from framework.messages.encoding.confluent_frame import DecoderDescription, renamed
from framework.messages.encoding.fields import WrittenType
from framework.messages.encoding.schema_writer import Way
from framework.messages.formats import OBJECT, RegisteredSchema
from framework.messages.formats.json_schema.keyword_types import Allowed
from framework.messages.formats.json_schema.text import allowed_of
from framework.messages.schemas.versions import ColumnShape, Merged, Path
from framework.plan import MessagePart
from framework.plan.schema import Schema

_DRAFT = "http://json-schema.org/draft-07/schema#"
_LONGEST = 200  # characters of what a validator says
_WAYS = {
    "text": "text",
    "epoch_millis": "a number of milliseconds",
    "epoch_micros": "a number of microseconds",
    "epoch_days": "a number of days",
    "base64": "bytes",
}


def shapes(schema: Schema) -> tuple[ColumnShape, ...]:
    """Returns the columns of one version."""
    return tuple(_shape(name, values) for name, values in _allowed(schema).fields)


@lru_cache(maxsize=256)
def _allowed(schema: Schema) -> Allowed:
    return allowed_of(schema)


def _shape(name: str, values: Allowed) -> ColumnShape:
    inside = values
    while inside.inner:
        inside = inside.inner
    return ColumnShape(name, _plain(values.type), values.doc, inside=tuple(_shape(*field) for field in inside.fields))


def _plain(type_: Type) -> Type:
    """Returns the column's type without the forms in which JSON writes it."""
    match type_:
        case WrittenType():
            return type_.type
        case Array():
            return Array(_plain(type_.element))
        case Map():
            return Map(type_.key, _plain(type_.value))
        case Struct():
            return Struct(tuple(types.Field(field.name, _plain(field.type)) for field in type_.fields))
    return type_


def read(_part: MessagePart, merged: Merged) -> DecoderDescription:
    """Returns the decoder's description. Messages of a version that writes times or decimals in another form than earlier
    ones are bad rows."""
    ways, reasons = _ways(merged)
    columns = tuple(decoder_.column(shape.name, _as_written(shape, shape.type, (), ways)) for shape in merged.shapes)
    writers: dict[int, Mapping[str, Any]] = {
        fit.version.id: {"single": True} if _allowed(fit.version.schema).single else renamed(fit.names) for fit in merged.fits
    }
    writers |= {id_: {"refused": reason, "code": "undecodable"} for id_, reason in reasons.items()}
    return DecoderDescription(format="json", columns=columns, writers=writers, extra_keys={"largest": decoder_.LARGEST})


def _ways(merged: Merged) -> tuple[dict[Path, str], dict[int, str]]:
    """Returns the forms of times and decimals by the columns' names, and a reason for each version with another form."""
    ways: dict[Path, str] = {}
    reasons: dict[int, str] = {}
    for fit in merged.fits:
        for path, way in _written(_allowed(fit.version.schema).fields, ()):
            place = tuple(fit.names.get(path[: index + 1], name) for index, name in enumerate(path))
            if ways.setdefault(place, way) != way:
                difference = f"{fit.version} writes `{'.'.join(place)}` as {_WAYS[way]}, and before it was {_WAYS[ways[place]]}"
                reasons[fit.version.id] = difference
    return ways, reasons


def _written(fields: Iterable[tuple[str, Allowed]], path: Path) -> Iterator[tuple[Path, str]]:
    for name, values in fields:
        field_path = (*path, name)
        inside = values
        while inside.inner:
            inside = inside.inner
        if isinstance(inside.type, WrittenType):
            yield field_path, inside.type.format
        elif inside.type in (types.DATE, types.TIMESTAMP):
            yield field_path, "text"
        yield from _written(inside.fields, field_path)


def _as_written(shape: ColumnShape, type_: Type, path: Path, ways: Mapping[Path, str]) -> Type:
    field_path = (*path, shape.name)
    match type_:
        case Array():
            return Array(_as_written(shape, type_.element, path, ways))
        case Map():
            return Map(type_.key, _as_written(shape, type_.value, path, ways))
        case Struct():
            inside = (
                types.Field(inner_shape.name, _as_written(inner_shape, inner_shape.type, field_path, ways))
                for inner_shape in shape.inside
            )
            return Struct(tuple(inside))
    way = ways.get(field_path, "integral" if types.is_integral(type_) else "text")
    return type_ if way == "text" else WrittenType(type_, way)


_SAYS: Mapping[Type, Mapping[str, Any]] = {
    types.STRING: {"type": "string"},
    types.BOOLEAN: {"type": "boolean"},
    types.TINYINT: {"type": "integer", "connect.type": "int8"},
    types.SMALLINT: {"type": "integer", "connect.type": "int16"},
    types.INT: {"type": "integer", "connect.type": "int32"},
    types.BIGINT: {"type": "integer"},
    types.FLOAT: {"type": "number", "connect.type": "float32"},
    types.DOUBLE: {"type": "number"},
    types.DATE: {"type": "string", "format": "date"},
    types.TIMESTAMP: {"type": "string", "format": "date-time"},
    types.TIMESTAMP_NTZ: {"type": "string"},
    types.BINARY: {"type": "string", "contentEncoding": "base64"},
}


def schema_text(name: str, columns: Sequence[types.Field]) -> str:
    """Returns a schema with these columns, as far as JSON Schema has such types. Every field may be missing or null."""
    properties = {column.name: _says(column.type) for column in columns}
    return text_of.dumps({"$schema": _DRAFT, "title": name, "type": "object", "properties": properties}, ensure_ascii=False)


def _says(type_: Type) -> dict[str, Any]:
    match type_:
        case Array():
            schema = {"type": "array", "items": _says(type_.element)}
        case Map():
            schema = {"type": "object", "additionalProperties": _says(type_.value)}
        case Struct():
            schema = {"type": "object", "properties": {field.name: _says(field.type) for field in type_.fields}}
        case Decimal():
            size = {"scale": str(type_.scale), "connect.decimal.precision": str(type_.precision)}
            title = "org.apache.kafka.connect.data.Decimal"
            schema = {"type": "number", "title": title, "connect.type": "bytes", "connect.parameters": size}
        case _:
            schema = dict(_SAYS[type_])
    return {**schema, "type": [schema["type"], "null"]}


def encoder(schema: Schema) -> Callable[[Any], bytes]:
    """Returns a function that writes the bytes behind the id. A ValueError says where an object does not fit the schema."""
    from framework.messages.formats.json_schema.judge import judge

    find_fault = judge(schema)

    def encode(value: Any) -> bytes:
        text = json_values.text(value)
        fault = find_fault(text_of.loads(text))
        if fault is not None:
            raise ValueError(_short(fault))
        return text.encode()

    return encode


def decoder(_schema: Schema) -> Callable[[bytes], str]:
    """Returns a function that reads the bytes behind the id as the JSON that they are, to the last digit."""

    def decode(data: bytes) -> str:
        try:
            text = data.decode("utf-8")
            text_of.loads(text, parse_int=lambda _: 0, parse_float=lambda _: 0.0, parse_constant=json_values.no_constant)
        except (ValueError, RecursionError):
            raise ValueError("it is not JSON") from None
        return text.strip(" \t\r\n")

    return decode


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 2] + " …"


def _way(schema: Schema) -> Way:
    values = _allowed(schema)
    return Way(single=values.single, types={name: allowed.type for name, allowed in values.fields})


CONNECT = {"value.converter": "io.confluent.connect.json.JsonSchemaConverter"}
VALUE = KEY = RegisteredSchema(
    kind="JSON", shapes=shapes, read=read, encoder=encoder, decoder=decoder, schema_text=schema_text, sample=OBJECT, way=_way
)
