"""Values as plain JSON has them become Avro's bytes, and columns become an Avro schema.

Dates and times are ISO text or the schema's own numbers, decimals are numbers or text, bytes and fixed are base64 text, an enum is its
symbol, NaN and infinities are text. A union takes the type that the value has; `{"long": 5}` names it where several could.
Guarantee: what is written is what was given: a value that would be cut or rounded is refused.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any, NoReturn
from uuid import UUID

import fastavro

from framework import iso_times, types
from framework.encoding import json_values
from framework.formats.avro.schema import loaded
from framework.model.schemas import Schema
from framework.schemas.versions import Unsupported
from framework.types import Array, Decimal, Field, Map, Struct, Type

Path = tuple[str, ...]
Json = Any
_EPOCH = datetime(1970, 1, 1)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_OF_DAY = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NATURAL: dict[type, tuple[str, ...]] = {
    bool: ("boolean",), int: ("int", "long"), float: ("double", "float"), Number: ("double", "float"),
    str: ("string",), dict: ("record", "error", "map"), list: ("array",),
}  # fmt: skip
_MICROS = {"millis": 1000, "micros": 1}  # microseconds of one
_LONGEST = 60  # characters of a value in a message


class Misfit(ValueError):
    """A value that is none of its schema."""


def encoder(schema: Schema) -> Callable[[Any], bytes]:
    """Writes what stands behind the id. Misfit names the field that does not fit."""
    named: dict[str, Any] = {}
    try:
        for _, referred in schema.behind:
            fastavro.parse_schema(loaded(referred.text), named_schemas=named)
        # In a record of its own, which has the same bytes: a union or a name alone has no place for what it refers to.
        whole = {"type": "record", "name": "_sluice_message", "fields": [{"name": "value", "type": loaded(schema.text)}]}
        parsed: Any = fastavro.parse_schema(whole, named_schemas=named)
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:
        raise Unsupported(f"the schema is not Avro: {type(error).__name__} {error}"[:200]) from None
    fitter = _Fitter(named)
    type_ = parsed["fields"][0]["type"]

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"value": fitter.value(type_, value, ())})
        return out.getvalue()

    return encode


class _Fitter:
    """Values as fastavro takes them: logical types as the numbers and bytes that they are."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.named = named

    def value(self, type_: Json, value: Any, path: Path) -> Any:
        if isinstance(type_, list):
            return self.union(type_, value, path)
        schema, kind = self.resolved(type_)
        match kind:
            case "record" | "error":
                return self.record(schema, value, path)
            case "array":
                return [self.value(schema["items"], each, path) for each in _is(list, value, "a list", path)]
            case "map":
                entries = _is(dict, value, "an object", path).items()
                return {key: self.value(schema["values"], each, (*path, key)) for key, each in entries}
        return _atom(kind, schema, value, path)

    def resolved(self, type_: Json) -> tuple[Mapping[str, Any], str]:
        """The schema behind a type's name, and its kind."""
        while isinstance(type_, str) and type_ in self.named:
            type_ = self.named[type_]
        while isinstance(type_, dict) and isinstance(type_["type"], dict):
            type_ = type_["type"]
        return ({}, type_) if isinstance(type_, str) else (type_, type_["type"])

    def record(self, schema: Mapping[str, Any], value: Any, path: Path) -> dict[str, Any]:
        given = _is(dict, value, "an object", path)
        fields = {field["name"]: field for field in schema["fields"]}
        for name in given:
            if name not in fields:
                raise Misfit(f"there is no field `{'.'.join((*path, name))}`")
        return {name: self.field(field, given, (*path, name)) for name, field in fields.items()}

    def field(self, field: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> Any:
        type_ = field["type"]
        if field["name"] in given:
            return self.value(type_, given[field["name"]], path)
        if "default" in field:
            return self.default(type_, field["default"], path)
        if type_ == "null" or (isinstance(type_, list) and "null" in type_):
            return None
        raise Misfit(f"`{'.'.join(path)}` is missing, and the schema has no default for it")

    def default(self, type_: Json, value: Any, path: Path) -> Any:
        """As schemas have it: of a union the first type; each character of bytes is one of them."""
        schema, kind = self.resolved(type_[0] if isinstance(type_, list) else type_)
        match kind:
            case "bytes" | "fixed":
                whole: Any = value.encode("latin-1")
            case "array":
                whole = [self.default(schema["items"], each, path) for each in value]
            case "map":
                whole = {key: self.default(schema["values"], each, path) for key, each in value.items()}
            case "record" | "error":
                whole = {
                    each["name"]: self.default(each["type"], value[each["name"]], path)
                    if each["name"] in value
                    else self.field(each, {}, (*path, each["name"]))
                    for each in schema["fields"]
                }
            case _:
                whole = value
        return (self.called(type_[0]), whole) if isinstance(type_, list) and kind != "null" else whole

    def union(self, types_: Sequence[Json], value: Any, path: Path) -> Any:
        if value is None and "null" in types_:
            return None
        others = [each for each in types_ if each != "null"]
        natural = _NATURAL.get(type(value), ())

        def order(each: Json) -> bool:
            schema, kind = self.resolved(each)
            return kind not in natural or "logicalType" in schema

        set_ = {name: each for name, each in value.items() if each is not None} if isinstance(value, Mapping) else {}
        named = {name: each for each in others for name in self.names(each)}
        wrong: list[Misfit] = []
        if len(others) > 1 and len(set_) == 1 and named.keys() & set_.keys():
            ((name, inner),) = set_.items()
            with suppress(Misfit):
                return self.called(named[name]), self.value(named[name], inner, path)
        for each in sorted(others, key=order):
            try:
                return self.called(each), self.value(each, value, path)
            except Misfit as misfit:
                wrong.append(misfit)
        if len(wrong) == 1:
            raise wrong[0]
        raise _misfit(path, " or ".join(self.names(each)[0] for each in others), value)

    def called(self, type_: Json) -> Json:
        """What fastavro calls a type of a union."""
        return type_.get("name", type_["type"]) if isinstance(type_, dict) else type_

    def names(self, type_: Json) -> list[str]:
        """What people may call it."""
        schema, kind = self.resolved(type_)
        full = schema.get("name", kind)
        return [full.rpartition(".")[2], full]


def _is(type_: type, value: Any, noun: str, path: Path) -> Any:
    plain = dict(value) if type_ is dict and isinstance(value, Mapping) else value
    if not isinstance(plain, type_):
        raise _misfit(path, noun, value)
    return plain


def _atom(kind: str, schema: Mapping[str, Any], value: Any, path: Path) -> Any:
    logical = schema.get("logicalType", "")
    try:
        match kind:
            case "null" if value is None:
                return None
            case "boolean" if isinstance(value, bool):
                return value
            case "int" | "long":
                return _whole(kind, logical, value)
            case "float" | "double":
                return _fraction(kind, value)
            case "string" if isinstance(value, str):
                return value if logical != "uuid" or UUID(value) else _no()
            case "enum" if value in schema["symbols"]:
                return value
            case "bytes" | "fixed" if value is not None:
                return _bytes(schema, logical, value)
    except (ValueError, TypeError, ArithmeticError):
        pass
    noun = f"one of {', '.join(schema['symbols'])}" if kind == "enum" else _noun(kind, schema)
    raise _misfit(path, noun, value)


def _noun(kind: str, schema: Mapping[str, Any]) -> str:
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
    return str(logical or (f"base64 text of {schema['size']:,} bytes" if kind == "fixed" else kind))


def _misfit(path: Path, noun: str, value: Any) -> Misfit:
    printed = str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False, default=str)
    printed = printed if len(printed) <= _LONGEST else printed[: _LONGEST - 1] + "…"
    return Misfit(f"{'`' + '.'.join(path) + '`' if path else 'the value'} must be {noun}, and is {printed}")


def _whole(kind: str, logical: str, value: Any) -> int:
    number = value
    if isinstance(value, str):
        number = _of_text(logical, value)
    elif isinstance(value, (float, Number)) and value == int(value):
        number = int(value)
    bits = 31 if kind == "int" else 63
    if isinstance(number, bool) or not isinstance(number, int) or not -(1 << bits) <= number < 1 << bits:
        raise ValueError
    return number


def _of_text(logical: str, text: str) -> int:
    """A date or a time as the schema's number."""
    if logical == "date":
        return (date.fromisoformat(text) - _EPOCH.date()).days
    name, _, unit = logical.rpartition("-")
    if unit not in _MICROS:
        raise ValueError
    if name == "time" and _OF_DAY.fullmatch(text):
        moment = iso_times.read(f"1970-01-01T{text}")
    elif name in ("timestamp", "local-timestamp") and _TIME.fullmatch(text):
        moment = iso_times.read(text)
        if name == "local-timestamp" and moment.tzinfo:
            raise ValueError
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment
    else:
        raise ValueError
    number, rest = divmod((moment - _EPOCH) // timedelta(microseconds=1), _MICROS[unit])
    if rest:
        raise ValueError
    return number


def _fraction(kind: str, value: Any) -> float:
    if isinstance(value, str):
        return _NOT_FINITE[value] if value in _NOT_FINITE else _no()
    if isinstance(value, bool) or not isinstance(value, (int, float, Number)):
        raise ValueError
    number = float(value)
    if kind == "float":
        struct.pack("<f", number)
    return number if math.isfinite(number) or not isinstance(value, (int, Number)) else _no()


def _bytes(schema: Mapping[str, Any], logical: str, value: Any) -> bytes:
    size = schema.get("size")
    if logical == "decimal" and isinstance(value, (int, float, Number, str)) and not isinstance(value, bool):
        return _decimal(schema, value)
    if logical == "uuid":
        return UUID(value).bytes
    data = value if isinstance(value, bytes) else base64.b64decode(value, validate=True)
    return data if size is None or len(data) == size else _no()


def _decimal(schema: Mapping[str, Any], value: Any) -> bytes:
    try:
        unscaled = json_values.unscaled(Number(str(value)), schema.get("scale", 0))
    except InvalidOperation:
        raise ValueError from None
    if abs(unscaled) >= 10 ** schema["precision"]:
        raise ValueError
    return json_values.signed(unscaled, schema.get("size"))


def _no() -> NoReturn:
    raise ValueError


_SAYS: dict[Type, Json] = {
    types.BOOLEAN: "boolean", types.TINYINT: "int", types.SMALLINT: "int", types.INT: "int", types.BIGINT: "long",
    types.FLOAT: "float", types.DOUBLE: "double", types.STRING: "string", types.BINARY: "bytes",
    types.DATE: {"type": "int", "logicalType": "date"},
    types.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    types.TIMESTAMP_NTZ: {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def schema_text(name: str, columns: Sequence[Field]) -> str:
    """A record of these columns, each of which may be null and is so if it is not given; tinyint and smallint come back as int."""
    return json.dumps(_record(name, columns))


def _record(name: str, fields: Sequence[Field]) -> Json:
    members = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise Unsupported(f"`{field.name}` cannot be a field of an Avro record", "its names are of A-Z, a-z, 0-9 and `_`")
        members.append({"name": field.name, "type": ["null", _says(field.type, f"{name}_{field.name}")], "default": None})
    return {"type": "record", "name": name, "fields": members}


def _says(type_: Type, name: str) -> Json:
    match type_:
        case Array():
            return {"type": "array", "items": ["null", _says(type_.element, name)]}
        case Map() if type_.key == types.STRING:
            return {"type": "map", "values": ["null", _says(type_.value, name)]}
        case Struct():
            return _record(name, type_.fields)
        case Decimal():
            return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if type_ not in _SAYS:
        raise Unsupported(f"Avro has no {type_}", "its maps have keys that are text")
    return _SAYS[type_]
