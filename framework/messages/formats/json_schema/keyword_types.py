"""The types that the keywords of one place allow, and those of several places together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from typing import Any, Literal

from framework.base import types
from framework.base.types import Array, Decimal, Map, Struct, Type
from framework.messages.encoding.fields import WrittenType
from framework.messages.schemas.versions import Unsupported

_NUMBERS: Sequence[Type] = (types.INT, types.BIGINT, types.FLOAT, types.DOUBLE)  # each holds those before it, or nearly
_INTS = ("int8", "int16", "int32", "uint8", "uint16")
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_TITLES = {
    "org.apache.kafka.connect.data.Date": WrittenType(types.DATE, "epoch_days"),
    "org.apache.kafka.connect.data.Timestamp": WrittenType(types.TIMESTAMP, "epoch_millis"),
    "io.debezium.time.Date": WrittenType(types.DATE, "epoch_days"),
    "io.debezium.time.Timestamp": WrittenType(types.TIMESTAMP, "epoch_millis"),
    "io.debezium.time.MicroTimestamp": WrittenType(types.TIMESTAMP, "epoch_micros"),
}
_FORMATS: Mapping[str, Type] = {"date": types.DATE, "date-time": types.TIMESTAMP}


@dataclass(frozen=True)
class Allowed:
    """The types that a value may have: any (`anything`, and its text is the column), or one of the others."""

    is_: Literal["anything", "null", "atom", "object", "array", "map"] = "anything"
    atom: Type = types.STRING
    fields: tuple[tuple[str, Allowed], ...] = ()
    _: KW_ONLY
    inner: Allowed | None = None
    doc: str = ""
    at: int | None = None  # Connect's order of fields
    single: bool = False  # of messages that are no objects: the one field stands for the whole

    @property
    def type(self) -> Type:
        if self.inner:
            return Array(self.inner.type) if self.is_ == "array" else Map(types.STRING, self.inner.type)
        if self.fields:
            return Struct(tuple(types.Field(name, allowed.type) for name, allowed in self.fields))
        return self.atom


ANYTHING = Allowed()
_TEXT = Allowed("atom")  # of a value that has several types


def keyword(schema: Any, name: str, kind: type) -> Any:
    """The value of a keyword, if it has the right form."""
    value = schema.get(name) if isinstance(schema, dict) else None
    return value if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else None


def check_names(names: Iterable[str]) -> None:
    there: dict[str, str] = {}
    for name in names:
        other = there.setdefault(types.folded(name), name)
        if other != name:
            raise Unsupported(f"`{other}` and `{name}` differ only in case", "tables do not tell them apart: rename one")
        if not name:
            raise Unsupported("a property has no name", "a table's columns have one: rename it")
        if not name.isprintable() and name.encode(errors="replace").decode() != name:
            raise Unsupported(f"a property's name has half a character: {ascii(name)[1:-1]}", "rename it")


def kinds_of(schema: dict[str, Any]) -> list[str]:
    """JSON's types that a value can have beside null; none at all: nothing is said."""
    type_ = schema.get("type")
    kinds = [each for each in (type_ if isinstance(type_, list) else [type_]) if isinstance(each, str)]
    if not kinds and ("enum" in schema or "const" in schema):
        listed = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        kinds = list(dict.fromkeys(_kind(each) for each in listed))
    if not kinds and any(
        isinstance(schema.get(name), dict) for name in ("properties", "patternProperties", "additionalProperties")
    ):
        kinds = ["object"]
    if not kinds and ("items" in schema or "prefixItems" in schema):
        kinds = ["array"]
    if "number" in kinds:
        kinds = [each for each in kinds if each != "integer"]
    return kinds if kinds == ["null"] else [each for each in kinds if each != "null"]


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(value)]


def atom(kinds: Sequence[str], schema: dict[str, Any]) -> Allowed:
    if not kinds:
        return ANYTHING
    if len(kinds) > 1:
        return _TEXT
    title, format_, connect = (keyword(schema, name, str) or "" for name in ("title", "format", "connect.type"))
    as_bytes = connect == "bytes" or schema.get("contentEncoding") == "base64"
    match kinds[0]:
        case "null":
            return Allowed("null")
        case "boolean":
            return Allowed("atom", types.BOOLEAN)
        case "integer":
            narrow = format_ in _INTS or connect in _INTS
            return Allowed("atom", _TITLES.get(title) or (types.INT if narrow else types.BIGINT))
        case "number" | "string" if as_bytes:
            return Allowed("atom", _decimal(schema) if title == _DECIMAL else types.BINARY)
        case "number":
            return Allowed("atom", types.FLOAT if connect == "float32" else types.DOUBLE)
        case "string" if title == "io.debezium.time.ZonedTimestamp":
            return Allowed("atom", types.TIMESTAMP)
        case "string":
            return Allowed("atom", _FORMATS.get(format_, types.STRING))
    return _TEXT


def _decimal(schema: dict[str, Any]) -> Type:
    parameters = keyword(schema, "connect.parameters", dict) or {}
    scale, precision = (str(parameters.get(name, "")) for name in ("scale", "connect.decimal.precision"))
    if not re.fullmatch(r"\d\d?", scale) or int(scale) > 38:
        return types.BINARY
    whole = int(precision) if re.fullmatch(r"\d{1,3}", precision) else 38
    return WrittenType(Decimal(min(38, max(whole, int(scale), 1)), int(scale)), "base64")


def both(one: Allowed, other: Allowed) -> Allowed:
    """The types of a value that must satisfy both."""
    kept = replace(one, doc=one.doc or other.doc, at=other.at if one.at is None else one.at)
    taken = replace(other, doc=kept.doc, at=kept.at)
    if other.is_ in ("anything", "null"):
        return kept
    if one.is_ in ("anything", "null") or (one.is_ == "atom" and one.atom == types.STRING):
        return taken
    if one.is_ == other.is_ == "object":
        return replace(kept, fields=_joined(one, other, both))
    if one.is_ == other.is_ and one.inner and other.inner:
        return replace(kept, inner=both(one.inner, other.inner))
    if other.is_ == "object" and other.fields:
        return taken
    if one.is_ == other.is_ and one.atom in _NUMBERS and other.atom in _NUMBERS:
        return replace(kept, atom=min(one.atom, other.atom, key=_NUMBERS.index))
    return kept


def either(one: Allowed, other: Allowed) -> Allowed:
    """The types of a value that must satisfy one or the other."""
    if one.is_ == "null" or other.is_ == "null":
        return other if one.is_ == "null" else one
    if "anything" in (one.is_, other.is_):
        return ANYTHING
    if one.is_ == other.is_ and one.type == other.type:
        return replace(one, doc="")
    if one.is_ == other.is_ and one.inner and other.inner:
        return Allowed(one.is_, inner=either(one.inner, other.inner))
    if one.is_ == other.is_ == "atom" and one.atom in _NUMBERS and other.atom in _NUMBERS:
        widest = max(one.atom, other.atom, key=_NUMBERS.index)
        return Allowed("atom", types.DOUBLE if widest == types.FLOAT else widest)
    return _TEXT


def any_of(parts: Sequence[Allowed], of_object: bool) -> Allowed:
    """Of several alternatives. Those of an object that is told of elsewhere are its fields, too."""
    others = [part for part in parts if part.is_ != "null"]
    if len(others) < 2:
        return others[0] if others else Allowed("null")
    if of_object and all(part.is_ in ("object", "anything") for part in others):
        return reduce(lambda one, other: Allowed("object", fields=_joined(one, other, either)), others, Allowed("object"))
    return reduce(either, others)


def _joined(one: Allowed, other: Allowed, how: Any) -> tuple[tuple[str, Allowed], ...]:
    fields = dict(one.fields)
    for name, allowed in other.fields:
        fields[name] = how(fields[name], allowed) if name in fields else allowed
    check_names(fields)
    return tuple(fields.items())
