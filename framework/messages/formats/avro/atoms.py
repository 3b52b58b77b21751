"""Turns values of Avro's types without parts into what fastavro takes: dates, times and decimals into numbers and bytes."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal as Number, InvalidOperation
from typing import Any, NoReturn
from uuid import UUID

from framework.base import iso_times
from framework.messages.encoding import json_values

Path = tuple[str, ...]
_EPOCH = datetime(1970, 1, 1)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_OF_DAY = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?", re.ASCII)
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_MICROS = {"millis": 1000, "micros": 1}  # microseconds of one
_LONGEST = 60  # characters of a value in a message


class ValueMisfit(ValueError):
    """A value that is none of its schema."""


def atom(kind: str, schema: Mapping[str, Any], value: Any, path: Path) -> Any:
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
    raise misfit(path, noun, value)


def _noun(kind: str, schema: Mapping[str, Any]) -> str:
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
    return str(logical or (f"base64 text of {schema['size']:,} bytes" if kind == "fixed" else kind))


def misfit(path: Path, noun: str, value: Any) -> ValueMisfit:
    printed = str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False, default=str)
    printed = printed if len(printed) <= _LONGEST else printed[: _LONGEST - 1] + "…"
    return ValueMisfit(f"{'`' + '.'.join(path) + '`' if path else 'the value'} must be {noun}, and is {printed}")


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
    """Returns the number that the schema has for the text of a date or a time."""
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
        return UUID(value).bytes if isinstance(value, str) else _no()
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
