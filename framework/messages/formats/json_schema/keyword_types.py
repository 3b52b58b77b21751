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
    """The types that a value may have. With the kind `anything` it may have any type, and the column is its text."""

    kind: Literal["anything", "null", "atom", "object", "array", "map"] = "anything"
    atom: Type = types.STRING
    fields: tuple[tuple[str, Allowed], ...] = ()
    _: KW_ONLY
    inner: Allowed | None = None
    doc: str = ""
    order: int | None = None  # Connect's order of fields
    single: bool = False  # whether messages are no objects, so that the one field stands for the whole

    @property
    def type(self) -> Type:
        if self.inner:
            return Array(self.inner.type) if self.kind == "array" else Map(types.STRING, self.inner.type)
        if self.fields:
            return Struct(tuple(types.Field(name, allowed.type) for name, allowed in self.fields))
        return self.atom


ANYTHING = Allowed()
_TEXT = Allowed("atom")  # for a value that has several types


def keyword(schema: Any, name: str, kind: type) -> Any:
    """Returns the value of a keyword if it is of this type, else None."""
    value = schema.get(name) if isinstance(schema, dict) else None
    return value if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else None


def check_names(names: Iterable[str]) -> None:
    spellings: dict[str, str] = {}
    for name in names:
        spelling = spellings.setdefault(types.folded(name), name)
        if spelling != name:
            raise Unsupported(f"`{spelling}` and `{name}` differ only in case", "tables do not tell them apart: rename one")
        if not name:
            raise Unsupported("a property has no name", "a table's columns have one: rename it")
        if not name.isprintable() and name.encode(errors="replace").decode() != name:
            raise Unsupported(f"a property's name has half a character: {ascii(name)[1:-1]}", "rename it")


def kinds_of(schema: dict[str, Any]) -> list[str]:
    """Returns JSON's types that a value can have besides null; none if the schema does not say."""
    type_ = schema.get("type")
    kinds = [name for name in (type_ if isinstance(type_, list) else [type_]) if isinstance(name, str)]
    if not kinds and ("enum" in schema or "const" in schema):
        listed = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        kinds = list(dict.fromkeys(_kind(option) for option in listed))
    if not kinds and any(
        isinstance(schema.get(name), dict) for name in ("properties", "patternProperties", "additionalProperties")
    ):
        kinds = ["object"]
    if not kinds and ("items" in schema or "prefixItems" in schema):
        kinds = ["array"]
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "integer"]
    return kinds if kinds == ["null"] else [kind for kind in kinds if kind != "null"]


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
    is_bytes = connect == "bytes" or schema.get("contentEncoding") == "base64"
    match kinds[0]:
        case "null":
            return Allowed("null")
        case "boolean":
            return Allowed("atom", types.BOOLEAN)
        case "integer":
            is_narrow = format_ in _INTS or connect in _INTS
            return Allowed("atom", _TITLES.get(title) or (types.INT if is_narrow else types.BIGINT))
        case "number" | "string" if is_bytes:
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


def both(merged: Allowed, addition: Allowed) -> Allowed:
    """Returns the types of a value that must satisfy both."""
    documented_merged = replace(
        merged, doc=merged.doc or addition.doc, order=addition.order if merged.order is None else merged.order
    )
    documented_addition = replace(addition, doc=documented_merged.doc, order=documented_merged.order)
    if addition.kind in ("anything", "null"):
        return documented_merged
    if merged.kind in ("anything", "null") or (merged.kind == "atom" and merged.atom == types.STRING):
        return documented_addition
    if merged.kind == addition.kind == "object":
        return replace(documented_merged, fields=_joined(merged, addition, both))
    if merged.kind == addition.kind and merged.inner and addition.inner:
        return replace(documented_merged, inner=both(merged.inner, addition.inner))
    if addition.kind == "object" and addition.fields:
        return documented_addition
    if merged.kind == addition.kind and merged.atom in _NUMBERS and addition.atom in _NUMBERS:
        return replace(documented_merged, atom=min(merged.atom, addition.atom, key=_NUMBERS.index))
    return documented_merged


def either(merged: Allowed, addition: Allowed) -> Allowed:
    """Returns the types of a value that must satisfy one or the other."""
    if merged.kind == "null" or addition.kind == "null":
        return addition if merged.kind == "null" else merged
    if "anything" in (merged.kind, addition.kind):
        return ANYTHING
    if merged.kind == addition.kind and merged.type == addition.type:
        return replace(merged, doc="")
    if merged.kind == addition.kind and merged.inner and addition.inner:
        return Allowed(merged.kind, inner=either(merged.inner, addition.inner))
    if merged.kind == addition.kind == "atom" and merged.atom in _NUMBERS and addition.atom in _NUMBERS:
        widest = max(merged.atom, addition.atom, key=_NUMBERS.index)
        return Allowed("atom", types.DOUBLE if widest == types.FLOAT else widest)
    return _TEXT


def any_of(parts: Sequence[Allowed], is_object: bool) -> Allowed:
    """Returns the types of a value that must satisfy one of the parts. With `is_object`, the fields of all parts are joined."""
    alternatives = [part for part in parts if part.kind != "null"]
    if len(alternatives) < 2:
        return alternatives[0] if alternatives else Allowed("null")
    if is_object and all(part.kind in ("object", "anything") for part in alternatives):
        return reduce(
            lambda merged, addition: Allowed("object", fields=_joined(merged, addition, either)), alternatives, Allowed("object")
        )
    return reduce(either, alternatives)


def _joined(merged: Allowed, addition: Allowed, combine: Any) -> tuple[tuple[str, Allowed], ...]:
    fields = dict(merged.fields)
    for name, allowed in addition.fields:
        fields[name] = combine(fields[name], allowed) if name in fields else allowed
    check_names(fields)
    return tuple(fields.items())
