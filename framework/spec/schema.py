"""JSON Schema (draft 2020-12) made of the declared options."""

from __future__ import annotations

from typing import Any

from framework.spec.options import Option
from framework.spec.shapes import (
    NO_OPTION,
    BoundClass,
    EnumShape,
    FilesShape,
    ListShape,
    MapShape,
    RecordShape,
    ScalarShape,
    Shape,
    Slot,
    UnionShape,
    item_option,
    record_shape,
)

_REFERENCE = {"type": "string", "pattern": r"\$\{(var|secret):"}
MADE_OF = "sluice"  # the key that leads from a part of the schema back to the shape and option it was made of


def json_schema(cls: BoundClass) -> dict[str, Any]:
    """For editors: the schema of one kind, in which a reference may stand for any scalar."""
    schema = _public(schema_of(record_shape(cls), NO_OPTION))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": record_shape(cls).name, **schema}


def schema_of(shape: Shape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = _BUILDERS[type(shape)](shape, option)
    if option.doc:
        schema["description"] = option.doc
    schema[MADE_OF] = shape, option
    return schema


def _scalar(shape: ScalarShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": shape.json}
    if shape.scalar.pattern:
        schema["pattern"] = shape.scalar.pattern
    for keyword, bound in (("minimum", option.at_least), ("maximum", option.at_most)):
        if bound is not None and not isinstance(bound, str):
            schema[keyword] = bound
    return schema


def _enum(shape: EnumShape, _option: Option) -> dict[str, Any]:
    return {"enum": list(shape.values)}


def _list(shape: ListShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": schema_of(shape.item, item_option(option))}
    if shape.length is not None:
        schema |= {"minItems": shape.length, "maxItems": shape.length}
    elif option.at_least is not None:
        schema["minItems"] = option.at_least
    return schema


def _map(shape: MapShape, option: Option) -> dict[str, Any]:
    schema = {
        "type": "object",
        "propertyNames": schema_of(shape.key, NO_OPTION),
        "additionalProperties": schema_of(shape.value, item_option(option)),
    }
    return schema if option.at_least is None else {**schema, "minProperties": option.at_least}


def _record(shape: RecordShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _property(slot, shape.cls.exactly_one) for name, slot in shape.slots.items()},
        "additionalProperties": False,
    }
    required = [name for name, slot in shape.slots.items() if slot.required]
    if required:
        schema["required"] = required
    if shape.cls.exactly_one:
        schema |= {"minProperties": 1, "maxProperties": 1}
    if shape.cls.short is None:
        return schema
    short = shape.slots[shape.cls.short]
    return {"anyOf": [schema_of(short.shape, short.option), {**schema, MADE_OF: (shape, option)}]}


def _property(slot: Slot, only: bool) -> dict[str, Any]:
    schema = schema_of(slot.shape, slot.option)
    return schema if slot.required or only else {**schema, "nullable": True}


def _files(shape: FilesShape, _option: Option) -> dict[str, Any]:
    properties = {name: schema_of(slot.shape, slot.option) for name, slot in shape.slots().items()}
    closed = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def _union(shape: UnionShape, option: Option) -> dict[str, Any]:
    return {"anyOf": [schema_of(alternative, item_option(option)) for alternative in shape.alternatives]}


_BUILDERS: dict[type[Shape], Any] = {
    ScalarShape: _scalar, EnumShape: _enum, ListShape: _list, MapShape: _map, RecordShape: _record, FilesShape: _files,
    UnionShape: _union,
}  # fmt: skip


def _public(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_public(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    shape = schema.get(MADE_OF, (None,))[0]
    public = {key: _public(value) for key, value in schema.items() if key not in (MADE_OF, "nullable", "propertyNames")}
    if "propertyNames" in schema and "pattern" in schema["propertyNames"]:
        public["propertyNames"] = {"pattern": schema["propertyNames"]["pattern"]}
    if isinstance(shape, ScalarShape) and shape.secret == "must":
        return {**_REFERENCE, "description": schema.get("description", "")}
    is_text = isinstance(shape, ScalarShape) and shape.json == "string" and "pattern" not in schema
    return public if is_text or not isinstance(shape, ScalarShape | EnumShape) else {"anyOf": [public, _REFERENCE]}
