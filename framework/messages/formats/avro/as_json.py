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

from framework.messages.formats.avro.schema import Node, parse
from framework.plan.schema import Schema

_EPOCH = datetime(1970, 1, 1)
_MICROS = {"millis": 1000, "micros": 1}  # microseconds of one
_LONGEST_NUMBER = 10  # bytes
_LONGEST_DECIMAL = 100


def decoder(schema: Schema) -> Callable[[bytes], Any]:
    """Reads what stands behind the id. A ValueError says what is wrong with the bytes. Decimals come as Python's."""
    node = parse(schema)

    def decode(data: bytes) -> Any:
        reader = _Reader(data)
        value = reader.value(node)
        if reader.at != len(data):
            raise ValueError("more follows behind the message")
        return value

    return decode


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("it is cut off" if count >= 0 else "a length is below 0")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        zigzag = 0
        for place in range(_LONGEST_NUMBER):
            (byte,) = self.take(1)
            zigzag |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return zigzag >> 1 ^ -(zigzag & 1)
        raise ValueError("a number has more than 64 bits")

    def value(self, node: Node) -> Any:
        match node.kind:
            case "null":
                return None
            case "boolean":
                return {b"\0": False, b"\1": True}[self.among(self.take(1), (b"\0", b"\1"))]
            case "int" | "long":
                return _moment(node.logical, self.number())
            case "float" | "double":
                return _fraction(node.kind, self.take(4 if node.kind == "float" else 8))
            case "string":
                return self.text()
            case "bytes" | "fixed":
                return _bytes(node, self.take(self.number() if node.kind == "bytes" else node.size))
            case "enum":
                return node.symbols[self.among(self.number(), range(len(node.symbols)))]
            case "union":
                return self.value(node.items[self.among(self.number(), range(len(node.items)))])
            case "array":
                return [self.value(node.items[0]) for _ in self.items()]
            case "map":
                return {self.text(): self.value(node.items[0]) for _ in self.items()}
        return {each.name: self.value(each.node) for each in node.members}

    def items(self) -> Any:
        """As many as there are, block by block. Each takes at least one byte, so that a wrong count ends soon."""
        while count := self.number():
            if count < 0:
                count = -count
                self.number()
            yield from range(count)

    def text(self) -> str:
        return self.take(self.number()).decode("utf-8")

    def among(self, value: Any, symbols: Any) -> Any:
        if value not in symbols:
            raise ValueError("it names a type, a symbol or a truth that there is not")
        return value


def _moment(logical: str, number: int) -> Any:
    """A number, or the date or time that it stands for if Python knows it."""
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


def _bytes(node: Node, data: bytes) -> Any:
    if node.logical == "decimal":
        if len(data) > _LONGEST_DECIMAL:
            raise ValueError("a decimal has too many digits")
        unscaled = int.from_bytes(data, "big", signed=True)
        return Number((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -node.scale))
    return str(UUID(bytes=data)) if node.logical == "uuid" else base64.b64encode(data).decode()


def _fraction(kind: str, data: bytes) -> Any:
    """A number that JSON lacks is text. A float becomes the shortest number that is the same in four bytes."""
    (number,) = struct.unpack("<f" if kind == "float" else "<d", data)
    if not math.isfinite(number):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(number, "NaN")
    shorter = (float(f"{number:.{digits}g}") for digits in range(6, 10 if kind == "float" else 6))
    return next((each for each in shorter if abs(each) < 3.4e38 and struct.pack("<f", each) == data), number)
