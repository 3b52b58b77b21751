"""Protobuf messages that are changed to do harm, and how Google's library reads them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from random import Random
from typing import Any

from tests.support.mutated_avro import FRACTIONS, NARROW, NUMBERS, TEXTS, Unreadable, change_bytes, framed, varint
from tests.support.protobuf_messages import one, proto, written

SCHEMA = one(
    "int64 id = 1; string name = 2; double heat = 3; optional bool ok = 4; N n = 5; repeated N all = 6; map<int32, N> by = 7;"
    " google.protobuf.Timestamp time = 8; google.protobuf.Struct any = 9; confluent.type.Decimal cost = 10; E e = 11;"
    " google.type.Date day = 12; oneof which { string left = 13; N right = 14; E middle = 21; } repeated sint32 numbers = 15;"
    " google.protobuf.StringValue wrapped = 16; uint64 big = 17; bytes raw = 18; google.protobuf.Duration took = 19; bool yes = 20;"
    " repeated E many = 22; map<string, E> kinds = 23; map<bool, bytes> flags = 24; map<fixed64, float> ratios = 25; float f = 26;"
    " fixed32 low = 27; sfixed64 high = 28; repeated double curve = 29 [packed = false]; uint32 u = 30; sint64 s = 31;"
    " google.protobuf.Value json = 32; optional int32 o = 33; google.type.TimeOfDay hour = 34; google.protobuf.UInt64Value most = 35;"
    " repeated bytes blobs = 36; repeated fixed32 steps = 37; Deep deep = 200; optional E maybe = 536870911;",
    "enum E { NONE = 0; SOME = 1; MINUS = -1; } message N { int32 x = 1; repeated string y = 2; map<string, fixed64> z = 3;"
    " optional string w = 4; } message Deep { message A { message B { message C { N n = 1; repeated N more = 2; } C c = 1; } B b = 1; }"
    " A a = 1; }",
)
STRICT = proto(
    "message M { required int64 id = 1; optional string name = 2; repeated E strict_many = 40; optional E strict_e = 41 [default = SOME];"
    " map<string, E> strict_kinds = 42; optional N strict_n = 43; repeated N strict_all = 44;"
    " optional double strict_heat = 45 [default = nan]; repeated int32 strict_numbers = 46;"
    " oneof strict_which { E strict_left = 47; N strict_right = 48; } }"
    " enum E { NONE = 0; SOME = 1; } message N { required int32 x = 1; optional bytes y = 2; }",
    'syntax = "proto2";',
)
SCHEMAS: Mapping[int, Any] = {1: SCHEMA, 2: STRICT}


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


HOSTILE = [
    b"\xff\xff\xff\xff\x07", b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x7f", b"\xff" * 20, b"\x80" * 9 + b"\0", b"\x80" * 10 +
    b"\0", b"\x80\0", b"\x81\x80\0", b"\x80" * 4 + b"\x10", b"\xff\xff\xff\xff\xff\x01", b"\x80", b"\0", b"\x0b", b"\x0c",
    b"\x0b\x0c", b"\x0e", b"\x0f", b"\x02\xff\xff", b"\x03\xed\xa0\x80", b"\x02\xc0\x80", b"\x04\xf4\x90\x80\x80", b"\xf8\x7f\0",
    b"\x82\x80\x80\x80\x10\0", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
]  # fmt: skip
MESSAGE, ENUM, STRING = 11, 14, 9
_WIRE = {1: 1, 2: 5, 6: 1, 7: 5, 9: 2, 11: 2, 12: 2, 15: 5, 16: 1}
_FORMS = {1: "<d", 2: "<f", 6: "<Q", 7: "<I", 15: "<i", 16: "<q"}


def fields(descriptor: Any, chance: Random, depth: int = 0) -> list[bytes]:
    """The fields of a message in any order, some of them absent and some there twice."""
    field_parts: list[bytes] = []
    if (
        descriptor.full_name.startswith(("google.type", "google.protobuf.Ti", "google.protobuf.Du", "confluent"))
        and chance.random() < 0.97
    ):
        return [usual(descriptor, chance)]
    for field in descriptor.fields:
        is_needed = field.is_required or (descriptor.has_options and descriptor.GetOptions().map_entry)
        if chance.random() < (0.97 if is_needed else 0.35 / (1 + depth / 4)):
            field_parts += [entry(field, chance, depth) for _ in range(chance.choice((1, 1, 1, 2)))]
    if chance.random() < 0.2:
        chance.shuffle(field_parts)
    return field_parts


def usual(descriptor: Any, chance: Random) -> bytes:
    """A time, a date or a decimal that its column can hold, mostly."""
    match descriptor.name:
        case "Date":
            return (
                b"\x08"
                + varint(chance.randint(1, 9999))
                + b"\x10"
                + varint(chance.randint(1, 12))
                + b"\x18"
                + varint(chance.randint(1, 29))
            )
        case "Decimal":
            return b"\x0a" + sized(chance.randbytes(chance.randint(0, 11))) + b"\x18" + varint(chance.randint(0, 10))
    seconds, nanos = (
        chance.choice((0, 1, 253_402_300_799, chance.randint(0, 10**11))),
        chance.choice((0, 1, 1_999, 999_999_999, 5 * 10**8)),
    )
    if descriptor.name == "TimeOfDay":
        return b"\x08" + varint(seconds % 24) + b"\x10" + varint(seconds % 60) + b"\x20" + varint(nanos)
    return b"\x08" + varint(seconds) + b"\x10" + varint(nanos)


def entry(field: Any, chance: Random, depth: int) -> bytes:
    wire = _WIRE.get(field.type, 0)
    if field.is_repeated and wire != 2 and chance.random() < 0.5:
        return varint(field.number << 3 | 2) + sized(b"".join(payload(field, chance, depth) for _ in range(chance.randint(0, 3))))
    return varint(field.number << 3 | wire) + payload(field, chance, depth)


def payload(field: Any, chance: Random, depth: int) -> bytes:
    match field.type:
        case 1 | 2:
            return struct.pack(_FORMS[field.type], chance.choice(FRACTIONS if field.type == 1 else NARROW))
        case 6 | 7 | 15 | 16:
            return chance.choice((bytes(8), b"\xff" * 8, chance.randbytes(8)))[: struct.calcsize(_FORMS[field.type])]
        case 9:
            return sized(chance.choice(TEXTS).encode())
        case 12:
            return sized(chance.randbytes(chance.randint(0, 5)))
        case 11:
            inner_fields = fields(field.message_type, chance, depth + 1) if depth < 12 else []
            if chance.random() < 0.02:
                change(inner_fields, chance, field.message_type)
            return sized(b"".join(inner_fields))
        case 14:
            return varint(chance.choice((0, 1, 2, 7, 2**64 - 1)) if chance.random() < 0.3 else chance.randrange(2))
    return varint(chance.choice((*NUMBERS, chance.randint(0, 2**64 - 1))) & 0xFFFFFFFFFFFFFFFF)


def message(chance: Random) -> bytes:
    """A message with its frame and the place of its type: one of five is right, the others have one to three changes."""
    id_ = chance.choice((1, 1, 1, 2))
    pieces = fields(written(SCHEMAS[id_]).DESCRIPTOR, chance)
    changes = 0 if chance.random() < 0.2 else chance.choice((1, 1, 1, 2, 3))
    for _ in range(changes):
        change(pieces, chance, written(SCHEMAS[id_]).DESCRIPTOR)
    body = bytearray(b"".join(pieces))
    if changes and chance.random() < 0.3:
        change_bytes(body, chance)
    return framed(id_, place(chance) + bytes(body), chance)


def place(chance: Random) -> bytes:
    """The path of the message type in its file; mostly that of the first one."""
    if chance.random() < 0.96:
        return b"\0"
    return chance.choice((
        b"\2\0", b"\2\2", b"\2\4", b"\4\0\0", b"\4\4\0", b"\1\0", b"\1", b"\3", b"\2\1", b"\2\3", b"", b"\2", b"\x80\0",
        b"\xfe\xff\xff\xff\x0f", b"\xff" * 9 + b"\1", b"\2" + b"\xff" * 9 + b"\1", b"\2\xfe\xff\xff\xff\x0f", b"\x80" * 12,
        b"\xc8\1" + bytes(100),
    ))  # fmt: skip


def change(field_parts: list[bytes], chance: Random, descriptor: Any) -> None:
    """A field gets another wire type, number, length or value; or it goes, comes twice, moves, or goes deeper."""
    index = chance.randrange(len(field_parts) + 1)
    field = chance.choice(descriptor.fields)
    match chance.randrange(10):
        case 0:
            field_parts.insert(
                index,
                varint(field.number << 3 | chance.randrange(8)) + chance.choice((b"", b"\0", b"\1a", bytes(8), b"\x02\x08\1")),
            )
        case 1:
            field_parts.insert(index, varint(field.number << 3 | 2) + chance.choice(HOSTILE))
        case 2:
            field_parts.insert(index, varint(field.number << 3 | _WIRE.get(field.type, 0)) + chance.choice(HOSTILE))
        case 3:
            number = chance.choice((0, 38, 199, 18_999, 2**29 - 1, 2**29, 2**32, 2**61))
            field_parts.insert(
                index, varint(number << 3 | chance.choice((0, 1, 2, 5))) + chance.choice((b"\0", bytes(4), bytes(8)))
            )
        case 4:
            field_parts[index:index] = field_parts[index : index + 3]
        case 5:
            del field_parts[index : index + 2]
        case 6:
            field_parts.insert(index, chance.choice(HOSTILE))
        case 7:
            field_parts.insert(index, value_in_lists(chance.choice((1, 10, 24, 25, 26, 30, 48, 49, 50, 51, 52, 60, 400))))
        case 8 if field_parts:
            part = field_parts[index % len(field_parts)]
            field_parts[index % len(field_parts)] = part[: chance.randrange(len(part) + 1)]
        case _:
            group = varint(field.number << 3 | 3) + b"".join(field_parts[:1]) + varint(field.number << 3 | 4)
            field_parts.insert(index, group)


def value_in_lists(depth: int) -> bytes:
    """The field `json`: a null in lists in lists."""
    data = b"\x08\0"
    for _ in range(depth):
        data = b"\x32" + sized(b"\x0a" + sized(data))
    return varint(32 << 3 | 2) + sized(data)


EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def values(data: bytes) -> dict[str, Any]:
    """The row of a message by Google's library; `Unreadable` if it is none."""
    from google.protobuf.message import DecodeError

    id_ = int.from_bytes(data[1:5], "big")
    if len(data) < 5 or data[0] != 0 or id_ not in SCHEMAS:
        raise Unreadable("no frame")
    start = next((len(prefix) for prefix in (b"\0", b"\2\0") if data[5:].startswith(prefix)), None)
    if start is None:
        raise Unreadable("not of the first type")
    try:
        message = written(SCHEMAS[id_]).FromString(data[5 + start :])
    except DecodeError as error:
        raise Unreadable(str(error)) from None
    refuse_foreign(data[5 + start :], message.DESCRIPTOR)
    if not message.IsInitialized():
        raise Unreadable("a required field is missing")
    columns = [field.name for schema in SCHEMAS.values() for field in written(schema).DESCRIPTOR.fields]
    return {**dict.fromkeys(columns), **row(message)}


def row(message: Any) -> dict[str, Any]:
    return {field.name: column(message, field) for field in message.DESCRIPTOR.fields}


def column(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry:
        key, inner = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return {str(name).lower() if key.type == 8 else str(name): single(value[name], inner) for name in value}
    if field.is_repeated:
        return [single(item, field) for item in value]
    if field.has_presence and not message.HasField(field.name) and not field.has_default_value:
        return None
    return single(value, field)


def single(value: Any, field: Any) -> Any:
    if field.type == ENUM:
        return next((symbol.name for symbol in field.enum_type.values if symbol.number == value), str(value))
    if field.type in (4, 6):
        return Decimal(value)
    if field.type == STRING and isinstance(value, bytes):
        raise Unreadable("not UTF-8")
    if field.type != MESSAGE:
        return value
    convert = CONVERTERS.get(field.message_type.name)
    if convert is None or not field.message_type.full_name.startswith(("google", "confluent")):
        return row(value)
    return convert(value)


def moment(value: Any) -> datetime:
    if not 0 <= value.nanos < 10**9 or not -62135596800 <= value.seconds <= 253402300799:
        raise Unreadable("no time")
    return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def duration(value: Any) -> int:
    if abs(value.seconds) > 315_576_000_000 or abs(value.nanos) >= 10**9 or value.seconds * value.nanos < 0:
        raise Unreadable("no duration")
    return int(value.seconds) * 10**6 + int(value.nanos / 1000)


def day(value: Any) -> date:
    try:
        return date(value.year, value.month, value.day)
    except (ValueError, OverflowError):
        raise Unreadable("no day") from None


def hour(value: Any) -> str:
    seconds = (value.hours * 60 + value.minutes) * 60 + value.seconds
    is_end = value.hours == 24 and seconds == 86400 and not value.nanos
    if not (0 <= value.hours < 24 or is_end) or not 0 <= value.minutes < 60 or not 0 <= value.seconds <= 60:
        raise Unreadable("no hour")
    if not 0 <= value.nanos < 10**9:
        raise Unreadable("no hour")
    nanos = f".{value.nanos:09}".rstrip("0") if value.nanos else ""
    return f"{value.hours:02}:{value.minutes:02}:{value.seconds:02}{nanos}"


def amount(value: Any) -> Decimal:
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 200, 10**10, -(10**10)
        number = Decimal(int.from_bytes(value.value[:80], "big", signed=True)).scaleb(-value.scale)
        if len(value.value) > 64:
            raise Unreadable("no decimal(38,9)")
        if not number:
            return Decimal(0)
        if abs(number.adjusted()) > 100 or number != round(number, 9) or abs(number) >= 10**29:
            raise Unreadable("no decimal(38,9)")
        return round(number, 9)


def as_json(value: Any) -> Any:
    """Google's own JSON, which refuses what JSON does not have."""
    from google.protobuf import json_format, struct_pb2

    standard = getattr(struct_pb2, value.DESCRIPTOR.name)
    try:
        return Json(json.loads(json_format.MessageToJson(standard.FromString(value.SerializeToString()))))
    except (json_format.Error, ValueError) as error:
        raise Unreadable(str(error)) from None


def refuse_foreign(data: bytes, descriptor: Any) -> None:
    """Refuses a field that the type does not have, at any depth, also where a later field takes its place: Google's library has
    forgotten such fields."""
    index = 0

    def number() -> int:
        nonlocal index
        value, shift = 0, 0
        while True:
            byte = data[index]
            index += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value & 0xFFFFFFFFFFFFFFFF

    while index < len(data):
        tag = number()
        field, wire = descriptor.fields_by_number.get(tag >> 3), tag & 7
        if field is None:
            raise Unreadable(f"no field {tag >> 3}")
        own_wire = _WIRE.get(field.type, 0)
        if wire != own_wire and not (wire == 2 and field.is_repeated and own_wire != 2):
            raise Unreadable("another wire type")
        if wire == 2:
            size = number()
            inner = data[index : index + size]
            index += size
            if field.message_type:
                refuse_foreign(inner, field.message_type)
            elif field.type == STRING:
                refuse_text(inner)
            elif own_wire == 0 and field.type == ENUM and field.enum_type.is_closed:
                refuse_symbols(inner, field)
        elif wire == 0:
            start = index
            number()
            if field.type == ENUM and field.enum_type.is_closed:
                refuse_symbols(data[start:index], field)
        else:
            index += {1: 8, 5: 4}[wire]


def refuse_text(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None


def refuse_symbols(data: bytes, field: Any) -> None:
    """Refuses a number that a closed enum does not have, in a list of varints."""
    value, shift = 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            symbol = value & 0xFFFFFFFF
            if symbol - (symbol >> 31 << 32) not in field.enum_type.values_by_number:
                raise Unreadable("no symbol")
            value, shift = 0, 0


class Json:
    """A JSON value, equal to each text of it."""

    def __init__(self, value: Any) -> None:
        self.value = value


CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "Timestamp": moment, "Duration": duration, "Date": day, "TimeOfDay": hour, "Decimal": amount, "Struct": as_json, "Value": as_json,
    "StringValue": lambda value: value.value, "UInt64Value": lambda value: Decimal(value.value),
}  # fmt: skip
