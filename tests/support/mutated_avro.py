"""Avro messages that are changed to do harm, and how fastavro reads them.

A message is a list of parts, one for each number, text or block count of the schema, so that a change can aim at one of them.
"""

from __future__ import annotations

import decimal
import io
import struct
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any
from uuid import UUID

import fastavro

from tests.support.registry_project import record

DEPTH = 12
NUMBERS = (0, 1, -1, 2, 63, 64, -65, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
TEXTS = ("", "a", "né", "\0", "日本", "😀", "x" * 200)
FRACTIONS = (0.0, -0.0, 0.5, 0.1, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308)
NARROW = (0.0, -0.0, 0.5, 1.5, float("nan"), float("inf"), float("-inf"), 2.0**-149)


def nested(depth: int) -> dict[str, Any]:
    """Records in each other, each an optional field of the next."""
    inner = [("next", ["null", nested(depth - 1)])] if depth > 1 else []
    return record(("n", "int"), *inner, name=f"Level{depth}")


SCHEMA = record(
    ("id", "long"), ("name", ["null", "string"]), ("tags", {"type": "array", "items": "string"}),
    ("more", {"type": "map", "values": "double"}), ("side", {"type": "enum", "name": "Side", "symbols": ["A", "B", "C"]}),
    ("part", record(("x", {"type": "fixed", "name": "F", "size": 4}), ("y", {"type": "array", "items": {"type": "map", "values": "int"}}),
                    name="Part")),
    ("any", ["null", "string", "int", record(("z", "int"), name="R")]), ("wide", ["int", "long"]),
    ("cost", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    ("sum", {"type": "fixed", "name": "Sum", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 5}),
    ("micros", {"type": "long", "logicalType": "timestamp-micros"}), ("millis", {"type": "long", "logicalType": "timestamp-millis"}),
    ("local", {"type": "long", "logicalType": "local-timestamp-micros"}), ("day", {"type": "int", "logicalType": "date"}),
    ("yes", "boolean"), ("f", "float"), ("d", "double"), ("raw", "bytes"), ("small", "int"),
    ("uuid", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}),
    ("items", {"type": "array", "items": record(("sku", "string"), ("n", ["null", "int"]), name="Item")}),
    ("deep", nested(DEPTH)),
    name="Order",
)  # fmt: skip
OTHER_SCHEMA = record(("name", "string"), ("id", "long"), ("tags", {"type": "array", "items": "string"}), name="Order")
"""A second version, with fewer fields in another order."""
SCHEMAS: Mapping[int, Any] = {1: SCHEMA, 2: OTHER_SCHEMA}
NARROW_COLUMNS = ("id", "small", "deep")
"""Columns of a topic that passes over all other fields."""


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


def zigzag(number: int) -> bytes:
    return varint((number << 1 ^ number >> 63) & 0xFFFFFFFFFFFFFFFF)


HOSTILE = [
    b"", b"\xfe\xff\xff\xff\x0f", zigzag(2**31), zigzag(2**62), zigzag(-1), zigzag(-2), zigzag(-(2**31)), zigzag(-(2**63)),
    zigzag(2**63 - 1), b"\xff" * 9 + b"\x02", b"\xff" * 9 + b"\x7f", b"\xff" * 11, b"\x80" * 12 + b"\0", b"\x80" * 9 + b"\0",
    b"\x80\0", b"\x82\0", b"\x80", zigzag(2), zigzag(3), zigzag(4), zigzag(100), b"\x02\xff", b"\x04\xed\xa0",
    b"\x06\xed\xa0\x80", b"\x04\xc0\x80", b"\x08\xf4\x90\x80\x80", b"\xc8\x01" + b"\x7f" * 100, b"\xc8\x01" + b"\xff" * 99 +
    b"\x80", b"\x02\x80", zigzag(3 * 10**17), zigzag(-(10**17)), zigzag(2932897), zigzag(253402300800000), struct.pack("<d",
    float("nan")), struct.pack("<Q", 0x7FF0000000000001), struct.pack("<f", float("inf")), b"\2", b"\3",
]  # fmt: skip


def parts(type_: Any, chance: Random) -> Iterator[bytes]:
    """A value of the type, drawn at random."""
    if isinstance(type_, list):
        index = chance.randrange(len(type_))
        yield zigzag(index)
        yield from parts(type_[index], chance)
        return
    kind = type_ if isinstance(type_, str) else type_["type"]
    logical = "" if isinstance(type_, str) else type_.get("logicalType", "")
    match kind:
        case "record":
            for field in type_["fields"]:
                yield from parts(field["type"], chance)
        case "array" | "map":
            yield from blocks(type_, chance)
        case "string" | "bytes":
            data = amount(chance) if logical else chance.choice(TEXTS).encode()
            yield from (zigzag(len(data)), data)
        case "fixed":
            yield amount(chance).rjust(9, b"\0") if logical == "decimal" else chance.randbytes(type_["size"])
        case "enum":
            yield zigzag(chance.randrange(len(type_["symbols"])))
        case "boolean":
            yield bytes([chance.randrange(2)])
        case "float" | "double":
            single = kind == "float"
            yield struct.pack("<f", chance.choice(NARROW)) if single else struct.pack("<d", chance.choice(FRACTIONS))
        case "int" | "long":
            yield zigzag(whole(kind, logical, chance))


def amount(chance: Random) -> bytes:
    return chance.randint(0, 2**31 - 1).to_bytes(4, "big")


def whole(kind: str, logical: str, chance: Random) -> int:
    if logical:
        limit = {"date": 2_932_896, "timestamp-millis": 253_402_300_799_999}.get(logical, 253_402_300_799_999_999)
        return chance.choice((0, limit, -chance.randint(0, limit // 5), chance.randint(0, limit)))
    number = chance.choice((*NUMBERS, chance.randint(-(2**63), 2**63 - 1)))
    return number if kind == "long" else (number + 2**31) % 2**32 - 2**31


def blocks(type_: Any, chance: Random) -> Iterator[bytes]:
    """Items in one block or several, with the number of bytes or without it."""
    for _ in range(chance.randint(0, 2)):
        count = chance.randint(1, 3)
        items: list[bytes] = []
        for _ in range(count):
            if type_["type"] == "map":
                items += parts("string", chance)
            items += parts(type_["items" if type_["type"] == "array" else "values"], chance)
        size = len(b"".join(items))
        yield from (zigzag(-count), zigzag(size)) if chance.random() < 0.3 else (zigzag(count),)
        yield from items
    yield zigzag(0)


def message(chance: Random) -> bytes:
    """A message with its frame: one of five is right, the others have one to three changes."""
    id_ = chance.choice((1, 1, 1, 1, 1, 1, 1, 2))
    pieces = list(parts(SCHEMAS[id_], chance))
    changes = 0 if chance.random() < 0.2 else chance.choice((1, 1, 1, 2, 3))
    for _ in range(changes):
        change(pieces, chance)
    body = bytearray(b"".join(pieces))
    if changes and chance.random() < 0.3:
        change_bytes(body, chance)
    return framed(id_, bytes(body), chance)


def change(message_parts: list[bytes], chance: Random) -> None:
    """One part becomes another, or a span of them goes, comes twice, or moves."""
    place, length = chance.randrange(len(message_parts) + 1), chance.randint(1, 4)
    match chance.randrange(6):
        case 0 | 1 if place < len(message_parts):
            message_parts[place] = chance.choice(HOSTILE)
        case 2:
            del message_parts[place : place + length]
        case 3:
            message_parts[place:place] = message_parts[place : place + length]
        case 4:
            message_parts.insert(place, chance.choice(HOSTILE))
        case _:
            start = chance.randrange(len(message_parts) + 1)
            message_parts[place : place + length] = message_parts[start : start + length]
    if not message_parts:
        message_parts.append(b"")


def change_bytes(body: bytearray, chance: Random) -> None:
    place = chance.randrange(len(body) + 1)
    match chance.randrange(4):
        case 0:
            del body[place:]
        case 1:
            body[place:place] = chance.randbytes(chance.randint(1, 12))
        case 2 if place < len(body):
            body[place] ^= 1 << chance.randrange(8)
        case _:
            body[place:place] = body[place : place + chance.randint(1, 40)]


IDS = (0, 2, 3, 77, 2**31 - 1, 2**31, 2**32 - 1)


def framed(id_: int, body: bytes, chance: Random) -> bytes:
    """The body behind a byte 0 and the id; one of twenty has another beginning."""
    frame = b"\0" + id_.to_bytes(4, "big") + body
    if chance.random() > 0.05:
        return frame
    return chance.choice((
        b"\1" + frame[1:], b"\xff" + frame[1:], frame[:chance.randrange(6)], body, b"", b"\0" + frame,
        b"\0" + chance.choice(IDS).to_bytes(4, "big") + body,
    ))  # fmt: skip


def plain(type_: Any) -> Any:
    """The schema without decimals, which fastavro would round to their precision."""
    if isinstance(type_, list):
        return [plain(part) for part in type_]
    if not isinstance(type_, dict):
        return type_
    return {key: plain(value) for key, value in type_.items() if (key, value) != ("logicalType", "decimal")}


READ = {id_: fastavro.parse_schema(plain(definition)) for id_, definition in SCHEMAS.items()}


class Unreadable(Exception):
    """The message is none of its schema, or a value is beyond what its column holds."""


def values(data: bytes) -> dict[str, Any]:
    """The row of a message by fastavro; `Unreadable` if it is none."""
    id_ = int.from_bytes(data[1:5], "big")
    if len(data) < 5 or data[0] != 0 or id_ not in SCHEMAS:
        raise Unreadable("no frame")
    stream = io.BytesIO(data[5:])
    try:
        row: Any = fastavro.schemaless_reader(stream, READ[id_], None, return_named_type=True)
    except (EOFError, ValueError, IndexError, OverflowError, KeyError, StopIteration, MemoryError) as error:
        raise Unreadable(repr(error)) from None
    if stream.read():
        raise Unreadable("more follows")
    nulls = dict.fromkeys(field["name"] for field in SCHEMA["fields"])
    return {**nulls, **row, **(_columns(row) if id_ == 1 else {})}


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    """Values that a column has in another form than fastavro."""
    any_ = row["any"]
    union = any_ if any_ is None else {
        "string": any_ if isinstance(any_, str) else None, "int": any_ if isinstance(any_, int) else None,
        "R": any_[1] if isinstance(any_, tuple) else None,
    }  # fmt: skip
    return {
        "deep": _unnamed(row["deep"]),
        "any": union,
        "cost": _decimal(row["cost"], 10, 2),
        "sum": _decimal(row["sum"], 20, 5),
        "uuid": str(UUID(bytes=row["uuid"])),
    }


def _unnamed(level: dict[str, Any]) -> dict[str, Any]:
    """A record of a union without its name."""
    return {name: _unnamed(value[1]) if isinstance(value, tuple) else value for name, value in level.items()}


def _decimal(data: bytes, precision: int, scale: int) -> decimal.Decimal:
    unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10**precision:
        raise Unreadable("a decimal has more digits than its schema says")
    return decimal.Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
