"""Avro's bytes become what JSON has, for people to read: times as ISO text, decimals with all their digits, bytes as base64."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal as Number
from typing import Any
from uuid import UUID

from framework.messages.formats.avro.schema import AvroNode, parse
from framework.plan.schema import Schema

_EPOCH = datetime(1970, 1, 1)
_MICROS = {"millis": 1000, "micros": 1}  # microseconds of one
_LONGEST_NUMBER = 10  # bytes
_LONGEST_DECIMAL = 100


def decoder(schema: Schema) -> Callable[[bytes], Any]:
    """Returns a function that reads the bytes behind the id. A ValueError says what is wrong with them. Decimals are Python's."""
    node = parse(schema)

    def decode(data: bytes) -> Any:
        reader = _Reader(data)
        value = reader.value(node)
        if reader.position != len(data):
            raise ValueError("more follows behind the message")
        return value

    return decode


@dataclass
class _Reader:
    data: bytes
    position: int = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.position + count > len(self.data):
            raise ValueError("it is cut off" if count >= 0 else "a length is below 0")
        self.position += count
        return self.data[self.position - count : self.position]

    def number(self) -> int:
        zigzag = 0
        for place in range(_LONGEST_NUMBER):
            (byte,) = self.take(1)
            zigzag |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return zigzag >> 1 ^ -(zigzag & 1)
        raise ValueError("a number has more than 64 bits")

    def value(self, node: AvroNode) -> Any:
        match node.kind:
            case "null":
                return None
            case "boolean":
                return {b"\0": False, b"\1": True}[self.require_one_of(self.take(1), (b"\0", b"\1"))]
            case "int" | "long":
                return _moment(node.logical, self.number())
            case "float" | "double":
                return _fraction(node.kind, self.take(4 if node.kind == "float" else 8))
            case "string":
                return self.text()
            case "bytes" | "fixed":
                return _bytes(node, self.take(self.number() if node.kind == "bytes" else node.size))
            case "enum":
                return node.symbols[self.require_one_of(self.number(), range(len(node.symbols)))]
            case "union":
                return self.value(node.items[self.require_one_of(self.number(), range(len(node.items)))])
            case "array":
                return [self.value(node.items[0]) for _ in self.items()]
            case "map":
                return {self.text(): self.value(node.items[0]) for _ in self.items()}
        return {member.name: self.value(member.node) for member in node.members}

    def items(self) -> Any:
        """Yields once for each item, block by block. Each item takes at least one byte, so that a wrong count ends soon."""
        while count := self.number():
            if count < 0:
                count = -count
                self.number()
            yield from range(count)

    def text(self) -> str:
        return self.take(self.number()).decode("utf-8")

    def require_one_of(self, value: Any, symbols: Any) -> Any:
        if value not in symbols:
            raise ValueError("it names a type, a symbol or a truth that there is not")
        return value


def _moment(logical: str, number: int) -> Any:
    """Returns the date or time that a number stands for, or the number if it is none that Python knows."""
    name, _, unit = logical.rpartition("-")
    try:
        if logical == "date":
            return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
        if unit in _MICROS:
            time = _EPOCH + timedelta(microseconds=number * _MICROS[unit])
            return time.isoformat() + ("Z" if name == "timestamp" else "")
    except OverflowError:
        pass
    return number


def _bytes(node: AvroNode, data: bytes) -> Any:
    if node.logical == "decimal":
        if len(data) > _LONGEST_DECIMAL:
            raise ValueError("a decimal has too many digits")
        unscaled = int.from_bytes(data, "big", signed=True)
        return Number((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -node.scale))
    return str(UUID(bytes=data)) if node.logical == "uuid" else base64.b64encode(data).decode()


def _fraction(kind: str, data: bytes) -> Any:
    """Returns the number in these bytes, or text if JSON has no such number. A float is the shortest number with the same bytes."""
    (number,) = struct.unpack("<f" if kind == "float" else "<d", data)
    if not math.isfinite(number):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")
    shorter = (float(f"{number:.{digits}g}") for digits in range(6, 10 if kind == "float" else 6))
    return next((candidate for candidate in shorter if abs(candidate) < 3.4e38 and struct.pack("<f", candidate) == data), number)
