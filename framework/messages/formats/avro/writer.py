"""Writes values of plain JSON as Avro's bytes.

Dates and times are ISO text or the schema's own numbers, decimals are numbers or text, bytes and fixed are base64 text, an enum is its
symbol, NaN and infinities are text. A union takes the type that the value has; `{"long": 5}` names it where several could.
Guarantee: each value is written exactly: one that would be cut or rounded is refused.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal as Number
from typing import Any

import fastavro

from framework.messages.formats.avro.atoms import Path, ValueMisfit, atom, misfit
from framework.messages.formats.avro.schema import loaded
from framework.messages.schemas.versions import Unsupported
from framework.plan.schema import Schema

Json = Any
_NATURAL: dict[type, tuple[str, ...]] = {
    bool: ("boolean",), int: ("int", "long"), float: ("double", "float"), Number: ("double", "float"),
    str: ("string",), dict: ("record", "error", "map"), list: ("array",),
}  # fmt: skip


def encoder(schema: Schema) -> Callable[[Any], bytes]:
    """Returns a function that writes the bytes behind the id. A ValueMisfit names the field that does not fit."""
    schemas: dict[str, Any] = {}
    try:
        for _, reference in schema.behind:
            fastavro.parse_schema(loaded(reference.text), named_schemas=schemas)
        # The schema stands in a record, which has the same bytes, since a union or a name alone has no place for its references.
        whole = {"type": "record", "name": "_sluice_message", "fields": [{"name": "value", "type": loaded(schema.text)}]}
        parsed: Any = fastavro.parse_schema(whole, named_schemas=schemas)
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:
        raise Unsupported(f"the schema is not Avro: {type(error).__name__} {error}"[:200]) from None
    fitter = _Fitter(schemas)
    type_ = parsed["fields"][0]["type"]

    def encode(value: Any) -> bytes:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, {"value": fitter.value(type_, value, ())})
        return buffer.getvalue()

    return encode


class _Fitter:
    """Turns values into what fastavro takes: those of logical types into numbers and bytes."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas

    def value(self, type_: Json, value: Any, path: Path) -> Any:
        if isinstance(type_, list):
            return self.union(type_, value, path)
        schema, kind = self.resolved(type_)
        match kind:
            case "record" | "error":
                return self.record(schema, value, path)
            case "array":
                return [self.value(schema["items"], item, path) for item in _is(list, value, "a list", path)]
            case "map":
                entries = _is(dict, value, "an object", path).items()
                return {key: self.value(schema["values"], item, (*path, key)) for key, item in entries}
        return atom(kind, schema, value, path)

    def resolved(self, type_: Json) -> tuple[Mapping[str, Any], str]:
        """The schema behind a type's name, and its kind."""
        while isinstance(type_, str) and type_ in self.schemas:
            type_ = self.schemas[type_]
        while isinstance(type_, dict) and isinstance(type_["type"], dict):
            type_ = type_["type"]
        return ({}, type_) if isinstance(type_, str) else (type_, type_["type"])

    def record(self, schema: Mapping[str, Any], value: Any, path: Path) -> dict[str, Any]:
        values = _is(dict, value, "an object", path)
        fields = {field["name"]: field for field in schema["fields"]}
        for name in values:
            if name not in fields:
                raise ValueMisfit(f"there is no field `{'.'.join((*path, name))}`")
        return {name: self.field(field, values, (*path, name)) for name, field in fields.items()}

    def field(self, field: Mapping[str, Any], values: Mapping[str, Any], path: Path) -> Any:
        type_ = field["type"]
        if field["name"] in values:
            return self.value(type_, values[field["name"]], path)
        if "default" in field:
            return self.default(type_, field["default"], path)
        if type_ == "null" or (isinstance(type_, list) and "null" in type_):
            return None
        raise ValueMisfit(f"`{'.'.join(path)}` is missing, and the schema has no default for it")

    def default(self, type_: Json, value: Any, path: Path) -> Any:
        """Returns the value of a schema's default: a union's is of its first type, and in the text of bytes each character is
        one byte."""
        schema, kind = self.resolved(type_[0] if isinstance(type_, list) else type_)
        match kind:
            case "bytes" | "fixed":
                whole: Any = value.encode("latin-1")
            case "array":
                whole = [self.default(schema["items"], item, path) for item in value]
            case "map":
                whole = {key: self.default(schema["values"], item, path) for key, item in value.items()}
            case "record" | "error":
                whole = {
                    field["name"]: self.default(field["type"], value[field["name"]], path)
                    if field["name"] in value
                    else self.field(field, {}, (*path, field["name"]))
                    for field in schema["fields"]
                }
            case _:
                whole = value
        return (self.called(type_[0]), whole) if isinstance(type_, list) and kind != "null" else whole

    def union(self, types_: Sequence[Json], value: Any, path: Path) -> Any:
        if value is None and "null" in types_:
            return None
        non_null_types = [type_ for type_ in types_ if type_ != "null"]
        natural = _NATURAL.get(type(value), ())

        def order(candidate: Json) -> bool:
            schema, kind = self.resolved(candidate)
            return kind not in natural or "logicalType" in schema

        given_fields = {name: item for name, item in value.items() if item is not None} if isinstance(value, Mapping) else {}
        types_by_name = {name: type_ for type_ in non_null_types for name in self.names(type_)}
        misfits: list[ValueMisfit] = []
        if len(non_null_types) > 1 and len(given_fields) == 1 and types_by_name.keys() & given_fields.keys():
            ((name, inner),) = given_fields.items()
            with suppress(ValueMisfit):
                return self.called(types_by_name[name]), self.value(types_by_name[name], inner, path)
        for type_ in sorted(non_null_types, key=order):
            try:
                return self.called(type_), self.value(type_, value, path)
            except ValueMisfit as error:
                misfits.append(error)
        if len(misfits) == 1:
            raise misfits[0]
        raise misfit(path, " or ".join(self.names(type_)[0] for type_ in non_null_types), value)

    def called(self, type_: Json) -> Json:
        """Returns the name that fastavro has for a type of a union."""
        return type_.get("name", type_["type"]) if isinstance(type_, dict) else type_

    def names(self, type_: Json) -> list[str]:
        """Returns the names that people may write for a type of a union."""
        schema, kind = self.resolved(type_)
        full = schema.get("name", kind)
        return [full.rpartition(".")[2], full]


def _is(type_: type, value: Any, noun: str, path: Path) -> Any:
    plain = dict(value) if type_ is dict and isinstance(value, Mapping) else value
    if not isinstance(plain, type_):
        raise misfit(path, noun, value)
    return plain
