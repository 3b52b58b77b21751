"""Message types that are a single value: which column they become, and the value of one message. A message without a value is a
ValueError. The type table in the documentation has the same types."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal as Number
from typing import Any

from framework.base.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, Decimal, Type

DECIMAL = "confluent.type.Decimal"
UNSIGNED = Decimal(20, 0)  # holds 2^64 - 1
_ANY_DECIMAL = Decimal(38, 9)
_FIRST, _LAST = -62135596800, 253402300799  # seconds of the years 1 to 9999
_LONGEST_DURATION = 315_576_000_000  # seconds, by protobuf's own definition
_BILLION = 1_000_000_000
_LONGEST_NUMBER = 64  # bytes of a decimal: 38 digits and many noughts behind them
_EXACT = 1 << 53  # up to here a double is one whole number


@dataclass(frozen=True)
class WellKnownType:
    """The column's type, and `value`, which takes the message and that type."""

    type: Type
    value: Callable[[Any, Any], Any]


def decimal_type(params: Mapping[str, str]) -> Decimal:
    """Returns the type of a field with these parameters. A ValueError says what is wrong with them."""
    if "precision" not in params and "scale" not in params:
        return _ANY_DECIMAL
    try:
        precision, scale = int(params.get("precision", "38")), int(params.get("scale", "0"))
    except ValueError:
        raise ValueError("`precision` and `scale` are no numbers") from None
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise ValueError(f"there is no decimal({precision},{scale}): a decimal has 1 to 38 digits")
    return Decimal(precision, scale)


def _timestamp(message: Any, _: Type) -> int:
    if not (_FIRST <= message.seconds <= _LAST and 0 <= message.nanos < _BILLION):
        raise ValueError("not within the years 1 to 9999")
    return int(message.seconds * 1_000_000 + message.nanos // 1000)


def _duration(message: Any, _: Type) -> int:
    seconds, nanos = message.seconds, message.nanos
    if abs(seconds) > _LONGEST_DURATION or abs(nanos) >= _BILLION or seconds * nanos < 0:
        raise ValueError("no duration")
    return int(seconds * 1_000_000 + (nanos // 1000 if nanos >= 0 else -(-nanos // 1000)))


def _date(message: Any, _: Type) -> date:
    return date(message.year, message.month, message.day)


def _time_of_day(message: Any, _: Type) -> str:
    hours, minutes, seconds, nanos = message.hours, message.minutes, message.seconds, message.nanos
    if not (0 <= hours <= 24 and 0 <= minutes < 60 and 0 <= seconds <= 60 and 0 <= nanos < _BILLION):
        raise ValueError("no time of a day")
    if hours == 24 and (minutes or seconds or nanos):
        raise ValueError("a day ends at 24:00")
    return f"{hours:02}:{minutes:02}:{seconds:02}" + (f".{nanos:09}".rstrip("0") if nanos else "")


def _decimal(message: Any, type_: Decimal) -> Number:
    if len(message.value) > _LONGEST_NUMBER:
        raise ValueError("too long")
    unscaled = int.from_bytes(message.value, "big", signed=True)
    shift = type_.scale - message.scale
    if unscaled == 0:
        shift = 0
    if abs(shift) > 8 * _LONGEST_NUMBER:  # else a scale of two billion would be computed
        raise ValueError("does not fit")
    rest = 0
    if shift >= 0:
        unscaled *= 10**shift
    else:
        sign = -1 if unscaled < 0 else 1
        whole, rest = divmod(abs(unscaled), 10**-shift)
        unscaled = sign * whole
    if rest or abs(unscaled) >= 10**type_.precision:
        raise ValueError("does not fit")
    return Number((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -type_.scale))


def _json(message: Any, _: Type) -> str:
    """Returns the message as JSON text. NaN and infinities are refused, since JSON does not have them."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    plain = _plain(message, lambda part: len(UnknownFieldSet(part)) > 0)
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(message: Any, has_unknown_fields: Callable[[Any], bool]) -> Any:
    if has_unknown_fields(message):
        raise ValueError("an unknown field")
    kind = message.DESCRIPTOR.name
    if kind == "ListValue":
        return [_plain(item, has_unknown_fields) for item in message.values]
    if kind == "Struct":
        if any(map(has_unknown_fields, message.fields)):
            raise ValueError("an unknown field")
        return {entry.key: _plain(entry.value, has_unknown_fields) for entry in message.fields}
    value_field = message.WhichOneof("kind")
    if value_field in ("struct_value", "list_value"):
        return _plain(getattr(message, value_field), has_unknown_fields)
    if value_field == "number_value":
        number = message.number_value
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    return None if value_field in (None, "null_value") else getattr(message, value_field)


def _inner(message: Any, _: Type) -> Any:
    return message.value


_WRAPPED = {
    "Double": DOUBLE, "Float": FLOAT, "Int64": BIGINT, "UInt64": UNSIGNED, "Int32": INT, "UInt32": BIGINT, "Bool": BOOLEAN,
    "String": STRING, "Bytes": BINARY,
}  # fmt: skip
WELL_KNOWN = {
    "google.protobuf.Timestamp": WellKnownType(TIMESTAMP, _timestamp),
    "google.protobuf.Duration": WellKnownType(BIGINT, _duration),
    "google.protobuf.Struct": WellKnownType(STRING, _json),
    "google.protobuf.Value": WellKnownType(STRING, _json),
    "google.protobuf.ListValue": WellKnownType(STRING, _json),
    "google.type.Date": WellKnownType(DATE, _date),
    "google.type.TimeOfDay": WellKnownType(STRING, _time_of_day),
    DECIMAL: WellKnownType(_ANY_DECIMAL, _decimal),
    **{f"google.protobuf.{name}Value": WellKnownType(type_, _inner) for name, type_ in _WRAPPED.items()},
}
