"""JSON Schema made of the declared options, and the check of a document against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from framework.errors import Problem
from framework.spec.messages import Failure, problems_of
from framework.spec.node import Node
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
_OURS = "sluice"  # the key that leads from a part of the schema back to the shape and option it was made of


def json_schema(cls: BoundClass) -> dict[str, Any]:
    """For editors: the schema of one kind, in which a reference may stand for any scalar."""
    schema = _public(_schema(record_shape(cls), NO_OPTION))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": record_shape(cls).name, **schema}


def check(cls: BoundClass, node: Node) -> Iterator[Problem]:
    """What is wrong with the shape of a document."""
    for error in _validator(cls).iter_errors(_instance(node)):
        shape, option = error.schema[_OURS]
        path = [part.node.text if isinstance(part, Text) else part for part in error.absolute_path]
        is_key = "propertyNames" in error.absolute_schema_path
        yield from problems_of(Failure(str(error.validator), error.instance.node, shape, option, path, is_key))


def _schema(shape: Shape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = _BUILDERS[type(shape)](shape, option)
    if option.doc:
        schema["description"] = option.doc
    schema[_OURS] = shape, option
    return schema


def _scalar(shape: ScalarShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": shape.json}
    if shape.scalar.pattern:
        schema["pattern"] = shape.scalar.pattern
    for keyword, bound in (("minimum", option.at_least), ("maximum", option.at_most)):
        if bound is not None and not isinstance(bound, str):
            schema[keyword] = bound
    return schema


def _enum(shape: EnumShape, option: Option) -> dict[str, Any]:
    return {"enum": list(shape.values)}


def _list(shape: ListShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _schema(shape.item, item_option(option))}
    if shape.length is not None:
        schema |= {"minItems": shape.length, "maxItems": shape.length}
    elif option.at_least is not None:
        schema["minItems"] = option.at_least
    return schema


def _map(shape: MapShape, option: Option) -> dict[str, Any]:
    schema = {
        "type": "object",
        "propertyNames": _schema(shape.key, NO_OPTION),
        "additionalProperties": _schema(shape.value, item_option(option)),
    }
    return schema if option.at_least is None else {**schema, "minProperties": option.at_least}


def _record(shape: RecordShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _property(slot) for name, slot in shape.slots.items()},
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
    return {"anyOf": [_schema(short.shape, short.option), {**schema, _OURS: (shape, option)}]}


def _property(slot: Slot) -> dict[str, Any]:
    schema = _schema(slot.shape, slot.option)
    return schema if slot.required else {**schema, "nullable": True}


def _files(shape: FilesShape, option: Option) -> dict[str, Any]:
    properties = {name: _schema(slot.shape, slot.option) for name, slot in shape.slots().items()}
    closed = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def _union(shape: UnionShape, option: Option) -> dict[str, Any]:
    return {"anyOf": [_schema(alternative, item_option(option)) for alternative in shape.alternatives]}


_BUILDERS: dict[type[Shape], Any] = {
    ScalarShape: _scalar, EnumShape: _enum, ListShape: _list, MapShape: _map, RecordShape: _record, FilesShape: _files,
    UnionShape: _union,
}  # fmt: skip


def _public(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_public(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    shape = schema.get(_OURS, (None,))[0]
    public = {key: _public(value) for key, value in schema.items() if key not in (_OURS, "nullable", "propertyNames")}
    if "propertyNames" in schema and "pattern" in schema["propertyNames"]:
        public["propertyNames"] = {"pattern": schema["propertyNames"]["pattern"]}
    if isinstance(shape, ScalarShape) and shape.secret == "must":
        return {**_REFERENCE, "description": schema.get("description", "")}
    is_text = isinstance(shape, ScalarShape) and shape.json == "string" and "pattern" not in schema
    return public if is_text or not isinstance(shape, ScalarShape | EnumShape) else {"anyOf": [public, _REFERENCE]}


class Text(str):
    """A scalar for the validator, which finds the way back to the node through it."""

    node: Node


class Items(list[Any]):
    node: Node


class Entries(dict[Any, Any]):
    node: Node


def _instance(node: Node) -> Text | Items | Entries:
    made: Text | Items | Entries
    if node.kind == "scalar":
        made = Text(node.text)
    elif node.kind == "list":
        made = Items(_instance(item) for item in node.items)
    else:
        made = Entries((_instance(key), _instance(value)) for key, value in node.entries)
    made.node = node
    return made


def _properties(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    """As in the standard, but a value that is null counts as left out where the option has a default."""
    if isinstance(instance, Entries):
        for key, value in instance.items():
            inner = properties.get(key)
            if inner is not None and not (value.node.is_null and inner.get("nullable")):
                yield from validator.descend(value, inner, path=key, schema_path=key)


def _any_of(validator: Any, alternatives: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    """As in the standard, but what fails is told of the alternative that was meant."""
    fitting = [each for each in alternatives if _form(each) == instance.node.kind]
    if len(fitting) == 1:
        yield from validator.descend(instance, fitting[0])
    elif not any(validator.evolve(schema=each).is_valid(instance) for each in fitting):
        yield ValidationError("no alternative fits")


def _form(schema: dict[str, Any]) -> str:
    return {"object": "map", "array": "list"}.get(schema.get("type", ""), "scalar")


def _enumerated(validator: Any, values: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    node = instance.node
    allowed = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    if node.kind != "scalar" or node.is_null or node.text not in allowed:
        yield ValidationError("not one of these")


def _minimum(validator: Any, bound: float, instance: Any, schema: Any) -> Iterable[ValidationError]:
    if instance.node.is_number and float(instance) < bound:
        yield ValidationError("too small")


def _maximum(validator: Any, bound: float, instance: Any, schema: Any) -> Iterable[ValidationError]:
    if instance.node.is_number and float(instance) > bound:
        yield ValidationError("too large")


_types = Draft202012Validator.TYPE_CHECKER.redefine_many({
    "object": lambda _, instance: isinstance(instance, Entries),
    "array": lambda _, instance: isinstance(instance, Items),
    "string": lambda _, instance: isinstance(instance, Text) and not instance.node.is_null,
    "integer": lambda _, instance: isinstance(instance, Text) and instance.node.is_whole,
    "number": lambda _, instance: isinstance(instance, Text) and instance.node.is_number,
    "boolean": lambda _, instance: isinstance(instance, Text) and instance.node.is_bool,
})  # fmt: skip

# The standard keywords over nodes: a scalar is read by the type that is asked of it, never by how it looks.
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"properties": _properties, "anyOf": _any_of, "enum": _enumerated, "minimum": _minimum, "maximum": _maximum},
    type_checker=_types,
)


@cache
def _validator(cls: BoundClass) -> Any:
    return _Validator(_schema(record_shape(cls), NO_OPTION))
