"""Values as plain JSON has them, outside of Spark: to the last digit, decimals also as the bytes that Avro and Connect have."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal as Number
from typing import Any

from framework.base import iso_times
from framework.base.types import DATE, TIMESTAMP_NTZ, Type

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UNITS = {"epoch_millis": timedelta(milliseconds=1), "epoch_micros": timedelta(microseconds=1)}
_encode = json.JSONEncoder(ensure_ascii=False).encode


def text(value: Any) -> str:
    """JSON in one line."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_encode(str(name))}: {text(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(text, value)) + "]"
        case Number():
            return format(value, "f")
        case datetime() | date():
            return _encode(value.isoformat())
        case bytes():
            return _encode(base64.b64encode(value).decode())
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def loads(text: str) -> Any:
    """A JSON document, whose numbers keep all their digits. ValueError where it is none, or names a field twice."""
    return json.loads(text, parse_float=Number, parse_constant=no_constant, object_pairs_hook=_object)


def no_constant(name: str) -> None:
    """NaN and infinities are none of JSON's numbers."""
    raise ValueError(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a field is there twice")
    return members


def unscaled(number: Number, scale: int) -> int:
    """A decimal as a whole number of its last place. ValueError where that loses a digit, or it is none."""
    sign, digits, exponent = number.as_tuple()
    whole: int
    if not isinstance(exponent, int) or not -1000 < exponent + scale < 1000:
        raise ValueError
    whole, rest = divmod(int("".join(map(str, digits))) * 10 ** max(0, exponent + scale), 10 ** max(0, -exponent - scale))
    if rest:
        raise ValueError
    return -whole if sign else whole


def signed(number: int, size: int | None = None) -> bytes:
    """A whole number's bytes, with its sign."""
    return number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True)


def base64_of(number: Number, scale: int) -> str:
    return base64.b64encode(signed(unscaled(number, scale))).decode()


def moment(text: str, type_: Type) -> date | datetime:
    """A date or time of ISO text; one without a zone is UTC. ValueError where it is none."""
    if type_ == DATE:
        return date.fromisoformat(text)
    time = iso_times.read(text)
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def epoch(value: date | datetime, way: str) -> int | None:
    """A date or time as the number that a format counts since 1970; None where that loses something."""
    if not isinstance(value, datetime):
        return (value - EPOCH.date()).days
    number, rest = divmod(value - EPOCH, _UNITS[way])
    return None if rest else int(number)


def iso(value: datetime, type_: Type) -> str:
    return value.replace(tzinfo=None).isoformat() + ("" if type_ == TIMESTAMP_NTZ else "Z")
