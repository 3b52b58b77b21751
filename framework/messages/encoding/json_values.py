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
    """Returns the value as JSON in one line."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_encode(str(name))}: {text(item)}" for name, item in value.items()) + "}"
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
    """Returns the value of a JSON document, whose numbers keep all their digits. A ValueError says that it is not JSON, or that an
    object has a field twice."""
    return json.loads(text, parse_float=Number, parse_constant=no_constant, object_pairs_hook=_object)


def no_constant(name: str) -> None:
    """Refuses NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a field is there twice")
    return members


def unscaled(number: Number, scale: int) -> int:
    """Returns a decimal as a whole number of its last place. It is a ValueError if that loses a digit or the number is not finite."""
    sign, digits, exponent = number.as_tuple()
    whole: int
    if not isinstance(exponent, int) or not -1000 < exponent + scale < 1000:
        raise ValueError
    whole, rest = divmod(int("".join(map(str, digits))) * 10 ** max(0, exponent + scale), 10 ** max(0, -exponent - scale))
    if rest:
        raise ValueError
    return -whole if sign else whole


def signed(number: int, size: int | None = None) -> bytes:
    """Returns the bytes of a whole number in two's complement, the highest byte first."""
    return number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True)


def base64_of(number: Number, scale: int) -> str:
    return base64.b64encode(signed(unscaled(number, scale))).decode()


def moment(text: str, type_: Type) -> date | datetime:
    """Returns the date or time of an ISO text; one without a zone is UTC. It is a ValueError if the text is neither."""
    if type_ == DATE:
        return date.fromisoformat(text)
    time = iso_times.read(text)
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def epoch(value: date | datetime, unit: str) -> int | None:
    """Returns a date or time as a count of days, or of `unit`, since 1970; None if that would lose a fraction."""
    if not isinstance(value, datetime):
        return (value - EPOCH.date()).days
    number, rest = divmod(value - EPOCH, _UNITS[unit])
    return None if rest else int(number)


def iso(value: datetime, type_: Type) -> str:
    return value.replace(tzinfo=None).isoformat() + ("" if type_ == TIMESTAMP_NTZ else "Z")
