"""JSON Schema (draft 2020-12) made of the declared options, by which documents are checked. `editor` has it for editors."""

from __future__ import annotations

from typing import Any

from framework.spec import shapes
from framework.spec.options import Option

MADE_OF = "sluice"  # the key that leads from a part of the schema back to the shape and option it was made of
NULLABLE = "nullable"  # the key of an option that may be left out


def schema_of(shape: shapes.Shape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = _BUILDERS[type(shape)](shape, option)
    if option.doc:
        schema["description"] = option.doc
    schema[MADE_OF] = shape, option
    return schema


def _scalar(shape: shapes.ScalarShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": shape.json}
    if shape.scalar.pattern:
        schema["pattern"] = shape.scalar.pattern
    for keyword, bound in (("minimum", option.at_least), ("maximum", option.at_most)):
        if bound is not None and not isinstance(bound, str):
            schema[keyword] = bound
    return schema


def _enum(shape: shapes.EnumShape, _option: Option) -> dict[str, Any]:
    return {"enum": list(shape.values)}


def _list(shape: shapes.ListShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": schema_of(shape.item, shapes.item_option(option))}
    if shape.length is not None:
        schema |= {"minItems": shape.length, "maxItems": shape.length}
    elif option.at_least is not None:
        schema["minItems"] = option.at_least
    return schema


def _map(shape: shapes.MapShape, option: Option) -> dict[str, Any]:
    schema = {
        "type": "object",
        "propertyNames": schema_of(shape.key, shapes.NO_OPTION),
        "additionalProperties": schema_of(shape.value, shapes.item_option(option)),
    }
    return schema if option.at_least is None else {**schema, "minProperties": option.at_least}


def _record(shape: shapes.RecordShape, option: Option) -> dict[str, Any]:
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
    return {"anyOf": [{**schema, MADE_OF: (shape, option)}, schema_of(short.shape, short.option)]}


def _property(slot: shapes.Slot, only: bool) -> dict[str, Any]:
    schema = schema_of(slot.shape, slot.option)
    return schema if slot.required or only else {**schema, NULLABLE: slot}


def _files(shape: shapes.FilesShape, _option: Option) -> dict[str, Any]:
    properties = {name: schema_of(slot.shape, slot.option) for name, slot in shape.slots().items()}
    closed = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def _any(_shape: shapes.AnyShape, _option: Option) -> dict[str, Any]:
    return {}


def _union(shape: shapes.UnionShape, option: Option) -> dict[str, Any]:
    return {"anyOf": [schema_of(alternative, shapes.item_option(option)) for alternative in shape.alternatives]}


_BUILDERS: dict[type[shapes.Shape], Any] = {
    shapes.ScalarShape: _scalar,
    shapes.EnumShape: _enum,
    shapes.ListShape: _list,
    shapes.MapShape: _map,
    shapes.RecordShape: _record,
    shapes.FilesShape: _files,
    shapes.UnionShape: _union,
    shapes.AnyShape: _any,
}
