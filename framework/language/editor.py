"""JSON Schema (draft 2020-12) with which editors complete and check specs. One schema, built from the declared options, fits every
document.

An editor reads YAML 1.2, where 1.10 is a number. So the schema accepts numbers and booleans as text, a reference as any scalar, and
null for an optional option. The compiler refuses everything that the schema refuses.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import Any

from framework.language.bind import bind_part
from framework.language.kind import document_types
from framework.language.node import YamlNode
from framework.language.options import Option
from framework.language.reader import read_text
from framework.language.references import HAS_VARIABLE, IS_SECRET
from framework.language.shapes import (
    NO_OPTION,
    AnyShape,
    BoundClass,
    Chosen,
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
from framework.language.words import written

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NUMBERS = ("0", "-1", "+1", "1.5", ".5", "1e3", "1.5e-3", "0x1F", "0o17", ".inf")  # numbers in YAML 1.2
_CORE: tuple[tuple[str, Any], ...] = (
    (r"null|Null|NULL|~|", lambda text: None),
    (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    (r"[-+]?[0-9]{1,4000}", int),  # Python parses at most about 4,300 digits
    (r"0o[0-7]+|0x[0-9a-fA-F]+", lambda text: int(text, 0)),
    (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", float),
    (r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", lambda text: float(text.replace(".", ""))),
)


def document_schema() -> dict[str, Any]:
    """The schema of any document."""
    kinds = document_types()
    return {
        "$schema": _DRAFT,
        "description": "One document of a spec file. Its first key is its kind.",
        "type": "object",
        "anyOf": [{"required": [kind], "properties": {kind: {"$ref": f"#/$defs/{kind}/properties/{kind}"}}} for kind in kinds],
        "allOf": [{"if": {"required": [kind]}, "then": {"$ref": f"#/$defs/{kind}"}} for kind in kinds],
        "$defs": {kind: json_schema(cls) for kind, cls in kinds.items()},
    }


def as_data(node: YamlNode) -> Any:
    """A node as an editor reads it: plain data, by the core schema of YAML 1.2."""
    if node.kind == "list":
        return [as_data(item) for item in node.items]
    if node.kind == "map":
        return {key.text: as_data(value) for key, value in node.entries}
    read = next((read for pattern, read in _CORE if re.fullmatch(pattern, node.text)), str)
    return node.text if node.quoted else read(node.text)


def json_schema(cls: BoundClass) -> dict[str, Any]:
    """The schema of one kind of document, or of another class of options."""
    shape = record_shape(cls)
    schema = _schema(shape, NO_OPTION)
    if shape.name:
        schema["properties"][shape.name]["description"] = inspect.getdoc(cls)
    return {"description": inspect.getdoc(cls), **schema}


def _schema(shape: Shape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = _BUILDERS[type(shape)](shape, option)
    if "anyOf" in schema:
        schema["anyOf"] = [inner for alternative in schema["anyOf"] for inner in alternative.get("anyOf", [alternative])]
    return schema | _about(shape, option)


def _scalar(shape: ScalarShape, option: Option) -> dict[str, Any]:
    bounds = {"minimum": option.at_least, "maximum": option.at_most}
    return _text(shape) | {key: bound for key, bound in bounds.items() if bound is not None and not isinstance(bound, str)}


def _text(shape: ScalarShape) -> dict[str, Any]:
    if shape.json != "string":
        return {"type": [shape.json, "string"], "pattern": HAS_VARIABLE, "patternErrorMessage": f"Not {shape.scalar.noun}."}
    if shape.secret == "must":
        return {"type": "string", "pattern": IS_SECRET, "patternErrorMessage": "Write `${secret:NAME}`."}
    pattern = shape.scalar.pattern
    texts_by_type = {"number": _NUMBERS, "boolean": ("true", "false")}
    types = ["string", *(name for name, texts in texts_by_type.items() if any(re.search(pattern, text) for text in texts))]
    if not pattern:
        return {"type": types}
    pattern = pattern if re.search(pattern, "${var:NAME}") else f"({pattern})|{HAS_VARIABLE}"
    return {"type": types, "pattern": pattern, "patternErrorMessage": f"Not {shape.scalar.noun}. Write {shape.scalar.rule}."}


def _enum(shape: EnumShape, _option: Option) -> dict[str, Any]:
    return {"anyOf": [{"enum": list(shape.values)}, {"type": "string", "pattern": _texts(shape)}]}


def _list(shape: ListShape, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _schema(shape.item, item_option(option))}
    if shape.length is not None:
        return schema | {"minItems": shape.length, "maxItems": shape.length}
    return schema if option.at_least is None else {**schema, "minItems": option.at_least}


def _map(shape: MapShape, option: Option) -> dict[str, Any]:
    pattern = shape.key.scalar.pattern
    schema = {
        "type": "object",
        "propertyNames": {"pattern": pattern} if pattern else {},
        "additionalProperties": _schema(shape.value, item_option(option)),
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
    if shape.chosen:
        schema["properties"] |= {name: _about(slot.shape, slot.option) for name, slot in shape.chosen.any.items()}
        schema["allOf"] = [_of_component(shape.chosen, name) for name in shape.chosen.records]
    if shape.cls.exactly_one:
        schema |= _exactly_one([name for name in shape.slots if name not in shape.cls.besides], shape.cls.besides)
    if shape.cls.short is None:
        return schema
    short = shape.slots[shape.cls.short]
    return {"anyOf": [schema | _about(shape, option), _schema(short.shape, short.option)]}


def _exactly_one(names: list[str], besides: Collection[str]) -> dict[str, Any]:
    if not besides:
        return {"minProperties": 1, "maxProperties": 1}
    return {"oneOf": [{"required": [name]} for name in names]}


def _of_component(chosen: Chosen, name: str) -> dict[str, Any]:
    """The schema of a map that names this component."""
    options = _record(chosen.records[name], NO_OPTION)
    other_options = dict.fromkeys(sorted(chosen.any.keys() - options["properties"].keys()), False)
    consequence = {"properties": {**options["properties"], **other_options}, "required": options.get("required", [])}
    return {"if": {"properties": {chosen.by: {"const": name}}, "required": [chosen.by]}, "then": consequence}


def _property(slot: Slot, only: bool) -> dict[str, Any]:
    schema = _schema(slot.shape, slot.option)
    return schema if slot.required or only else _optional(schema, slot)


def _files(shape: FilesShape, _option: Option) -> dict[str, Any]:
    properties = {name: _schema(slot.shape, slot.option) for name, slot in shape.slots().items()}
    return {"type": "object", "properties": properties, "minProperties": 1, "maxProperties": 1, "additionalProperties": False}


def _union(shape: UnionShape, option: Option) -> dict[str, Any]:
    return {"anyOf": [_schema(alternative, item_option(option)) for alternative in shape.alternatives]}


def _any(_shape: AnyShape, _option: Option) -> dict[str, Any]:
    return {}


_BUILDERS: dict[type[Shape], Any] = {
    ScalarShape: _scalar, EnumShape: _enum, ListShape: _list, MapShape: _map, RecordShape: _record, FilesShape: _files,
    UnionShape: _union, AnyShape: _any,
}  # fmt: skip


def _texts(shape: EnumShape) -> str:
    """A pattern for texts that stand for a choice: a reference, or a quoted number or boolean."""
    texts = [re.escape(written(value)) for value in shape.values if not isinstance(value, str)]
    return f"^({'|'.join(texts)})$|{HAS_VARIABLE}" if texts else HAS_VARIABLE


def _about(shape: Shape, option: Option) -> dict[str, Any]:
    rule = f"Write {shape.scalar.rule}." if isinstance(shape, ScalarShape) and shape.scalar.rule else ""
    about: dict[str, Any] = {"description": f"{option.doc} {rule}".strip()} if option.doc else {}
    return {**about, "examples": [as_data(_example(option))]} if option.example else about


def _example(option: Option) -> YamlNode:
    return read_text(option.example, "example", [])[0]


def _optional(schema: dict[str, Any], slot: Slot) -> dict[str, Any]:
    if "anyOf" in schema:
        schema["anyOf"].append({"type": "null"})
    elif "type" in schema:
        types = schema["type"]
        schema["type"] = [*([types] if isinstance(types, str) else types), "null"]
    default = _default(slot)
    return schema if default is None else {**schema, "default": default}


def _default(slot: Slot) -> Any:
    """The default as a spec writes it. For a duration or a map the text is known only if the default equals the example."""
    plain = isinstance(slot.shape, ScalarShape) and slot.shape.json != "string"
    if plain or slot.default is None or isinstance(slot.default, str):
        return slot.default
    example = _example(slot.option) if slot.option.example else None
    return as_data(example) if example and bind_part(slot.shape, slot.option, example) == slot.default else None
