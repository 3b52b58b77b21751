"""Values as plain JSON has them become Avro's bytes.

Dates and times are ISO text or the schema's own numbers, decimals are numbers or text, bytes and fixed are base64 text, an enum is its
symbol, NaN and infinities are text. A union takes the type that the value has; `{"long": 5}` names it where several could.
Guarantee: what is written is what was given: a value that would be cut or rounded is refused.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal as Number
from typing import Any

import fastavro

from framework.messages.formats.avro.atoms import Misfit, Path, atom, misfit
from framework.messages.formats.avro.schema import loaded
from framework.messages.schemas.versions import Unsupported
from framework.plan.schema import Schema

Json = Any
_NATURAL: dict[type, tuple[str, ...]] = {
    bool: ("boolean",), int: ("int", "long"), float: ("double", "float"), Number: ("double", "float"),
    str: ("string",), dict: ("record", "error", "map"), list: ("array",),
}  # fmt: skip


def encoder(schema: Schema) -> Callable[[Any], bytes]:
    """Writes what stands behind the id. Misfit names the field that does not fit."""
    named: dict[str, Any] = {}
    try:
        for _, referred in schema.behind:
            fastavro.parse_schema(loaded(referred.text), named_schemas=named)
        # In a record of its own, which has the same bytes: a union or a name alone has no place for what it refers to.
        whole = {"type": "record", "name": "_sluice_message", "fields": [{"name": "value", "type": loaded(schema.text)}]}
        parsed: Any = fastavro.parse_schema(whole, named_schemas=named)
    except (
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
    ) as error:
        raise Unsupported(f"the schema is not Avro: {type(error).__name__} {error}"[:200]) from None
    fitter = _Fitter(named)
    type_ = parsed["fields"][0]["type"]

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"value": fitter.value(type_, value, ())})
        return out.getvalue()

    return encode


class _Fitter:
    """Values as fastavro takes them: logical types as the numbers and bytes that they are."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.named = named

    def value(self, type_: Json, value: Any, path: Path) -> Any:
        if isinstance(type_, list):
            return self.union(type_, value, path)
        schema, kind = self.resolved(type_)
        match kind:
            case "record" | "error":
                return self.record(schema, value, path)
            case "array":
                return [self.value(schema["items"], each, path) for each in _is(list, value, "a list", path)]
            case "map":
                entries = _is(dict, value, "an object", path).items()
                return {key: self.value(schema["values"], each, (*path, key)) for key, each in entries}
        return atom(kind, schema, value, path)

    def resolved(self, type_: Json) -> tuple[Mapping[str, Any], str]:
        """The schema behind a type's name, and its kind."""
        while isinstance(type_, str) and type_ in self.named:
            type_ = self.named[type_]
        while isinstance(type_, dict) and isinstance(type_["type"], dict):
            type_ = type_["type"]
        return ({}, type_) if isinstance(type_, str) else (type_, type_["type"])

    def record(self, schema: Mapping[str, Any], value: Any, path: Path) -> dict[str, Any]:
        given = _is(dict, value, "an object", path)
        fields = {field["name"]: field for field in schema["fields"]}
        for name in given:
            if name not in fields:
                raise Misfit(f"there is no field `{'.'.join((*path, name))}`")
        return {name: self.field(field, given, (*path, name)) for name, field in fields.items()}

    def field(self, field: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> Any:
        type_ = field["type"]
        if field["name"] in given:
            return self.value(type_, given[field["name"]], path)
        if "default" in field:
            return self.default(type_, field["default"], path)
        if type_ == "null" or (isinstance(type_, list) and "null" in type_):
            return None
        raise Misfit(f"`{'.'.join(path)}` is missing, and the schema has no default for it")

    def default(self, type_: Json, value: Any, path: Path) -> Any:
        """As schemas have it: of a union the first type; each character of bytes is one of them."""
        schema, kind = self.resolved(type_[0] if isinstance(type_, list) else type_)
        match kind:
            case "bytes" | "fixed":
                whole: Any = value.encode("latin-1")
            case "array":
                whole = [self.default(schema["items"], each, path) for each in value]
            case "map":
                whole = {key: self.default(schema["values"], each, path) for key, each in value.items()}
            case "record" | "error":
                whole = {
                    each["name"]: self.default(each["type"], value[each["name"]], path)
                    if each["name"] in value
                    else self.field(each, {}, (*path, each["name"]))
                    for each in schema["fields"]
                }
            case _:
                whole = value
        return (self.called(type_[0]), whole) if isinstance(type_, list) and kind != "null" else whole

    def union(self, types_: Sequence[Json], value: Any, path: Path) -> Any:
        if value is None and "null" in types_:
            return None
        others = [each for each in types_ if each != "null"]
        natural = _NATURAL.get(type(value), ())

        def order(each: Json) -> bool:
            schema, kind = self.resolved(each)
            return kind not in natural or "logicalType" in schema

        set_ = {name: each for name, each in value.items() if each is not None} if isinstance(value, Mapping) else {}
        named = {name: each for each in others for name in self.names(each)}
        wrong: list[Misfit] = []
        if len(others) > 1 and len(set_) == 1 and named.keys() & set_.keys():
            ((name, inner),) = set_.items()
            with suppress(Misfit):
                return self.called(named[name]), self.value(named[name], inner, path)
        for each in sorted(others, key=order):
            try:
                return self.called(each), self.value(each, value, path)
            except Misfit as error:
                wrong.append(error)
        if len(wrong) == 1:
            raise wrong[0]
        raise misfit(path, " or ".join(self.names(each)[0] for each in others), value)

    def called(self, type_: Json) -> Json:
        """The name that fastavro has for a type of a union."""
        return type_.get("name", type_["type"]) if isinstance(type_, dict) else type_

    def names(self, type_: Json) -> list[str]:
        """The names that people may give it."""
        schema, kind = self.resolved(type_)
        full = schema.get("name", kind)
        return [full.rpartition(".")[2], full]


def _is(type_: type, value: Any, noun: str, path: Path) -> Any:
    plain = dict(value) if type_ is dict and isinstance(value, Mapping) else value
    if not isinstance(plain, type_):
        raise misfit(path, noun, value)
    return plain
