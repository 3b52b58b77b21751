"""Read the values in a spec as values of a column's type, for Python or for JSON messages."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable
from datetime import date, datetime, timezone
from decimal import Decimal as Number
from typing import Any

from framework.base.errors import Where
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGRALS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    Decimal,
    Map,
    Struct,
    Type,
    is_fractional,
    is_integral,
)
from framework.language.node import YamlNode
from framework.language.scalars import read_time
from framework.messages.encoding import json_values

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,38})")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?")
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LONGEST = 60  # characters of a value in a message


class BadValue(ValueError):
    """Raised for a value that does not fit, with its place."""

    def __init__(self, where: Where, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.where = where
        self.code = code
        self.message = message
        self.hint = hint


def read(node: YamlNode, type_: Type) -> Any:
    """The value in Python. A struct is a dict of the named fields. Raises BadValue for a value of another type."""
    if node.is_null:
        return None
    match type_:
        case Array():
            return [read(item, type_.element) for item in _kind(node, "list", type_).items]
        case Map():
            entries = _kind(node, "map", type_).entries
            return {_scalar(key, type_.key): read(value, type_.value) for key, value in entries}
        case Struct():
            fields = _fields(_kind(node, "map", type_), type_)
            return {name: read(value, inner) for name, value, inner in fields}
    return node if type_ == VOID else _scalar(node, type_)


def json_text(node: YamlNode, type_: Type, format_: str | None = None) -> str:
    """The value as JSON text. Raises BadValue for a value of another type."""
    if node.is_null:
        return "null"
    match type_:
        case Array():
            return f"[{', '.join(json_text(item, type_.element) for item in _kind(node, 'list', type_).items)}]"
        case Map():
            entries = _kind(node, "map", type_).entries
            return json_object((key.text, json_text(value, type_.value)) for key, value in entries)
        case Struct():
            fields = _fields(_kind(node, "map", type_), type_)
            return json_object((name, json_text(value, inner)) for name, value, inner in fields)
    return _json_scalar(node, type_, format_)


def plain_json(node: YamlNode) -> str:
    """The value as JSON text without a type: unquoted numbers and booleans stay so, and everything else is text."""
    if node.is_null:
        return "null"
    if node.kind == "list":
        return f"[{', '.join(map(plain_json, node.items))}]"
    if node.kind == "map":
        return json_object((key.text, plain_json(value)) for key, value in node.entries)
    is_plain = not node.quoted and (node.text in ("true", "false") or _NUMBER.fullmatch(node.text))
    return node.text if is_plain else json.dumps(node.text, ensure_ascii=False)


def json_object(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {text}" for name, text in entries) + "}"


def _json_scalar(node: YamlNode, type_: Type, format_: str | None) -> str:
    value = _scalar(node, type_)
    if format_ and format_.startswith("epoch_"):
        number = json_values.epoch(value, format_)
        if number is None:
            raise BadValue(
                node.where, "wrong-type", f"`{_short(node)}` is not a whole number of milliseconds", "remove the fraction"
            )
        return str(number)
    if format_ == "base64" and isinstance(type_, Decimal):
        return json_values.text(json_values.base64_of(value, type_.scale))
    if isinstance(value, datetime):
        return json_values.text(json_values.iso(value, type_))
    if isinstance(value, (date, bytes)):
        return json_values.text(value)
    if is_fractional(type_) and not math.isfinite(value):
        raise BadValue(node.where, "wrong-type", f"`{node.text}` is not a JSON number", "write a number")
    # The node's text keeps all digits.
    return node.text if is_fractional(type_) or isinstance(type_, Decimal) else json.dumps(value, ensure_ascii=False)


def _kind(node: YamlNode, kind: str, type_: Type) -> YamlNode:
    if node.kind != kind:
        raise _no(node, type_)
    return node


def _fields(node: YamlNode, type_: Struct) -> Iterable[tuple[str, YamlNode, Type]]:
    for key, value in node.entries:
        field = next((struct_field for struct_field in type_.fields if struct_field.name == key.text), None)
        if field is None:
            names = [struct_field.name for struct_field in type_.fields]
            hint = did_you_mean(key.text, names, the_names("field", names))
            raise BadValue(key.where, "unknown-field", f"there is no field `{key.text}` in {_short(str(type_))}", hint)
        yield field.name, value, field.type


def _scalar(node: YamlNode, type_: Type) -> Any:
    if node.kind != "scalar":
        raise _no(node, type_)
    try:
        return _from_text(node.text, type_, node.quoted and not node.expanded)
    except (ValueError, ArithmeticError):
        raise _no(node, type_) from None


def _from_text(text: str, type_: Type, quoted: bool) -> Any:
    """The value of a text. Raises ValueError or ArithmeticError if it is not of the type. Quoted numbers and booleans are text."""
    if type_ == STRING:
        return text
    if type_ == BINARY:
        return text.encode()
    if type_ == DATE and _DATE.fullmatch(text):
        return date.fromisoformat(text)
    if type_ in (TIMESTAMP, TIMESTAMP_NTZ) and _TIME.fullmatch(text):
        return _moment(text, type_)
    if not quoted and type_ == BOOLEAN and text in ("true", "false"):
        return text == "true"
    if not quoted and is_integral(type_) and _WHOLE.fullmatch(text):
        return _in_range(int(text), 8 << INTEGRALS.index(type_) if type_ != BIGINT else 64)
    if not quoted and is_fractional(type_) and text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if not quoted and _NUMBER.fullmatch(text):
        return _fraction(text, type_)
    raise ValueError


def _moment(text: str, type_: Type) -> datetime:
    moment = read_time(text)
    if type_ == TIMESTAMP:
        return moment.astimezone(timezone.utc)
    if re.search(r"(Z|[+-][0-9]{2}:[0-9]{2})$", text[10:]):
        raise ValueError
    return moment.replace(tzinfo=None)


def _in_range(number: int, bits: int) -> int:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError
    return number


def _fraction(text: str, type_: Type) -> Any:
    if isinstance(type_, Decimal):
        return _decimal(Number(text), type_)
    if not is_fractional(type_) or not math.isfinite(float(text)):
        raise ValueError
    # Round to the column's precision: 0.1 as a float is not 0.1 as a double.
    return struct.unpack("f", struct.pack("f", float(text)))[0] if type_ == FLOAT else float(text)


def _decimal(number: Number, type_: Decimal) -> Number:
    if abs(json_values.unscaled(number, type_.scale)) >= 10**type_.precision:
        raise ValueError
    return number


def _no(node: YamlNode, type_: Type) -> BadValue:
    description = {"list": "a list", "map": "a map"}.get(node.kind, f"`{_short(node)}`")
    quotes = " without quotes" if node.quoted and _NUMBER.fullmatch(node.text) else ""
    return BadValue(
        node.where, "wrong-type", f"{description} is not of type {type_}", f"write `{node.text}`{quotes}" if quotes else ""
    )


def _short(value: YamlNode | str) -> str:
    text = value if isinstance(value, str) else value.text
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
