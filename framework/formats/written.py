"""Messages by a schema of the registry, outside of Spark: written of what people say or `generate` makes, and shown to people.

Values are what plain JSON has: dates and times are ISO text or the numbers that the schema has, decimals numbers or text, bytes base64.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal as Number
from fractions import Fraction
from functools import lru_cache
from typing import Any

from framework.formats.versions import Path, Shape
from framework.registry import Kind, Schema
from framework.types import BOOLEAN, DATE, Array, Decimal, Field, Map, Struct, Type

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], str]
KINDS: Mapping[str, Kind] = {"avro": "AVRO", "debezium_avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
_encode = json.JSONEncoder(ensure_ascii=False).encode
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def prefix(id_: int) -> bytes:
    """What a message of this schema begins with."""
    return b"\0" + (id_ & 0xFFFFFFFF).to_bytes(4, "big")


def id_of(message: bytes) -> int | None:
    """The id of the schema that a message names, if it does."""
    return int.from_bytes(message[1:5], "big") if len(message) >= 5 and message[0] == 0 else None


def shapes(schema: Schema) -> tuple[Shape, ...]:
    if schema.kind == "PROTOBUF":
        from framework.formats import protobuf

        return protobuf.shapes(schema)
    if schema.kind == "JSON":
        from framework.formats import json_schema

        return json_schema.shapes(schema)
    from framework.formats import avro

    return avro.shapes(schema)


def schema_of(format_: str, name: str, columns: Sequence[Field]) -> Schema:
    """A schema whose messages have these columns, none of which they need to have. Unsupported where a format has no such column."""
    kind = KINDS[format_]
    if kind == "PROTOBUF":
        from framework.formats.protobuf import schema_text
    elif kind == "JSON":
        from framework.formats.json_schema import schema_text
    else:
        from framework.formats.avro.writer import schema_text
    return Schema(kind, schema_text(name, columns))


def encoder(schema: Schema) -> Encode:
    """The bytes behind the id. A ValueError says in a few words which field does not fit."""
    if schema.kind == "PROTOBUF":
        from framework.formats import protobuf

        return protobuf.encoder(schema)
    if schema.kind == "JSON":
        from framework.formats import json_schema

        return json_schema.encoder(schema)
    from framework.formats.avro.writer import encoder as avro_encoder

    return avro_encoder(schema)


def decoder(schema: Schema) -> Decode:
    """The bytes behind the id as one line of JSON. A ValueError says what is wrong with them."""
    if schema.kind == "PROTOBUF":
        return _of_protobuf(schema)
    if schema.kind == "JSON":
        return _of_json
    from framework.formats.avro.shown import decoder as avro_decoder

    decode = avro_decoder(schema)
    return lambda data: text(decode(data))


def _of_json(data: bytes) -> str:
    """As it came, to the last digit."""
    try:
        said = data.decode("utf-8")
        json.loads(said, parse_int=lambda _: 0, parse_float=lambda _: 0.0, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    return said.strip(" \t\r\n")


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _of_protobuf(schema: Schema) -> Decode:
    """By way of the columns, which are all that Sluice reads of a message."""
    import pyarrow

    from framework.formats.protobuf import WRONG
    from framework.formats.protobuf.decode import structs

    type_ = Struct((*(Field(each.name, each.type) for each in shapes(schema)), Field(WRONG, BOOLEAN)))

    def decode(data: bytes) -> str:
        (row,) = structs(pyarrow.array([prefix(0) + data], pyarrow.binary()), ((0, schema, ()),), type_).to_pylist()
        if row is None or row.pop(WRONG):
            raise ValueError("it is cut off, has fields that the schema does not have, or was written by another")
        return text({each.name: _plain(row[each.name], each.type) for each in type_.fields[:-1]})

    return decode


def _plain(value: Any, type_: Type) -> Any:
    """A value of Arrow as JSON has it."""
    if value is None:
        return None
    match type_:
        case Array():
            return [_plain(each, type_.element) for each in value]
        case Map():
            return {key: _plain(each, type_.value) for key, each in value}
        case Struct():
            return {each.name: _plain(value[each.name], each.type) for each in type_.fields}
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def text(value: Any) -> str:
    """JSON in one line; a decimal keeps all its digits."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_encode(str(name))}: {text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return format(value, "f") if isinstance(value, Number) else _encode(value)


def loads(said: str) -> Any:
    """A JSON document, whose numbers keep all their digits. ValueError where it is none, or names a field twice."""
    return json.loads(said, parse_float=Number, parse_constant=_no_constant, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a field is there twice")
    return made


@dataclass(frozen=True)
class Writer:
    """Writes keys or values by one schema. `single`: they are one value that has no fields."""

    id: int
    schema: Schema
    single: bool
    encode: Encode
    ways: Mapping[str, Type]  # of JSON the fields' types, which say how times and decimals are written
    back: Mapping[tuple[Path, str], str]  # by its place and what columns call it: a field's own name

    def whole(self, value: Any) -> bytes:
        """A message, of a value as JSON has it."""
        if not self.single and not isinstance(value, Mapping):
            raise ValueError("it is no JSON object")
        try:
            return prefix(self.id) + self.encode(value)
        except ValueError as error:  # a library's own words may go on for lines
            raise ValueError(str(error).strip().splitlines()[0].rstrip(".")) from None

    def columns(self, values: Mapping[str, Any]) -> bytes:
        """A message, of the values of columns; what is not named is left out."""
        if self.single:
            return self.whole(next(iter(values.values()), None))
        wrong: ValueError | None = None
        for base64_ in (False, True) if self.ways else (False,):  # a decimal is a number, or text where the schema takes none
            said = {name: _written(value, self.ways.get(name), base64_) for name, value in values.items()}
            try:
                return self.whole(_renamed(said, (), self.back) if self.back else said)
            except ValueError as error:
                wrong = wrong or error
        assert wrong is not None
        raise wrong

    def column(self, field: str) -> str:
        """What columns call a field of the message."""
        return next((column for (path, column), name in self.back.items() if not path and name == field), field)


@lru_cache(maxsize=256)
def writer(id_: int, schema: Schema, names: tuple[tuple[Path, str], ...] = ()) -> Writer:
    """`names` are fields that columns call otherwise. Unsupported where the schema cannot be read."""
    single, ways = False, {}
    if schema.kind == "AVRO":
        from framework.formats.avro.schema import parse

        single = parse(schema).kind != "record"
    elif schema.kind == "JSON":
        from framework.formats.json_schema.text import said_of

        ways = {name: said.type for name, said in said_of(schema).fields}
    back = {(path[:-1], column): path[-1] for path, column in names}
    return Writer(id_, schema, single, encoder(schema), ways, back)


def _renamed(value: Any, path: Path, back: Mapping[tuple[Path, str], str]) -> Any:
    """With the fields' own names."""
    if isinstance(value, list):
        return [_renamed(each, path, back) for each in value]
    if not isinstance(value, Mapping):
        return value
    named = {back.get((path, name), name): each for name, each in value.items()}
    return {name: _renamed(each, (*path, name), back) for name, each in named.items()}


def _written(value: Any, type_: Type | None, base64_: bool) -> Any:
    from framework.formats.json import Written

    match type_:
        case Array() if isinstance(value, list):
            return [_written(each, type_.element, base64_) for each in value]
        case Map() if isinstance(value, Mapping):
            return {name: _written(each, type_.value, base64_) for name, each in value.items()}
        case Struct() if isinstance(value, Mapping):
            types_ = {each.name: each.type for each in type_.fields}
            return {name: _written(each, types_.get(name), base64_) for name, each in value.items()}
        case Written(Decimal() as decimal, "base64") if base64_ and isinstance(value, (int, Number)):
            unscaled = Fraction(value) * 10**decimal.scale
            whole = int(unscaled)
            if whole == unscaled:
                return base64.b64encode(whole.to_bytes(whole.bit_length() // 8 + 1, "big", signed=True)).decode()
        case Written(inner, way) if isinstance(value, str) and way != "base64":
            return _number(value, inner, way)
    return value


def _number(said: str, type_: Type, way: str) -> Any:
    """A date or time as the number that the schema has; as it is where it is none."""
    try:
        if type_ == DATE:
            return (date.fromisoformat(said) - _EPOCH.date()).days
        moment = datetime.fromisoformat(said.replace("Z", "+00:00"))
    except ValueError:
        return said
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    number, rest = divmod(moment - _EPOCH, timedelta(milliseconds=1) if way == "epoch_millis" else timedelta(microseconds=1))
    return said if rest else number
