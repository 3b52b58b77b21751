"""Reads an Avro schema's text together with its references, and gives the columns that it becomes.

*Cost*: each type of a schema is read once, however often it is referred to. Columns are capped, since two references at each level
make twice as many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from framework.base import types
from framework.base.types import Type
from framework.messages.schemas.versions import ColumnShape, Unsupported
from framework.plan.schema import Schema

_PLAIN: dict[str, Type] = {
    "boolean": types.BOOLEAN, "int": types.INT, "long": types.BIGINT, "float": types.FLOAT, "double": types.DOUBLE,
    "bytes": types.BINARY, "string": types.STRING,
}  # fmt: skip
_LOGICAL: dict[tuple[str, str], Type] = {
    ("int", "date"): types.DATE,
    ("long", "timestamp-millis"): types.TIMESTAMP,
    ("long", "timestamp-micros"): types.TIMESTAMP,
    ("long", "local-timestamp-millis"): types.TIMESTAMP_NTZ,
    ("long", "local-timestamp-micros"): types.TIMESTAMP_NTZ,
}
_TWO_WIDTHS = (("int", "long"), ("float", "double"))  # a union of these is one number
_UUID_BYTES = 16
_DEEPEST = 64
MOST = 5_000
"""Fields of a schema, counted at each place where they become columns."""


@dataclass(frozen=True)
class Member:
    """A field of a record."""

    name: str
    node: AvroNode
    doc: str = ""
    old_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class AvroNode:
    """A type of a schema. `kind` is Avro's own word for it, on which the meaning of the other fields depends."""

    kind: str
    logical: str = ""
    name: str = ""  # the name of a record, an enum or a fixed
    _: KW_ONLY
    members: tuple[Member, ...] = ()
    items: tuple[AvroNode, ...] = ()  # one type for an array or a map, all types for a union
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0

    @cached_property
    def value(self) -> AvroNode:
        """The type without null: of a union with null and one other type, the other; of two widths of one number, the wider."""
        if self.kind != "union":
            return self
        non_null_items = tuple(item for item in self.items if item.kind != "null")
        if len(non_null_items) == 1:
            return non_null_items[0]
        kinds = {(item.kind, item.logical) for item in non_null_items}
        number = next((wide for narrow, wide in _TWO_WIDTHS if kinds == {(narrow, ""), (wide, "")}), None)
        return (
            AvroNode(number, items=non_null_items)
            if number
            else AvroNode("union" if non_null_items else "null", items=non_null_items)
        )

    @cached_property
    def takes_bytes(self) -> bool:
        """Whether each value takes at least one byte."""
        if self.kind == "record":
            return any(member.node.takes_bytes for member in self.members)
        return self.kind != "null" and (self.kind != "fixed" or self.size > 0)

    @cached_property
    def type(self) -> Type | None:
        """The column's type; None if no value holds anything, as of a record without fields."""
        node = self.value
        match node.kind:
            case "null":
                return None
            case "record" | "union":
                fields = tuple(types.Field(shape.name, shape.type) for shape in node.shapes)
                return types.Struct(fields) if fields else None
            case "array" | "map":
                inner = node.items[0].type
                if inner is None:
                    return None
                return types.Array(inner) if node.kind == "array" else types.Map(types.STRING, inner)
            case "enum":
                return types.STRING
        if node.logical == "decimal":
            return types.Decimal(node.precision, node.scale)
        if node.kind == "fixed":
            return types.STRING if node.logical == "uuid" else types.BINARY
        return _LOGICAL.get((node.kind, node.logical), _PLAIN[node.kind])

    @cached_property
    def shapes(self) -> tuple[ColumnShape, ...]:
        """The fields of the struct in this type, also where it is inside arrays or maps."""
        node = self.value
        if node.kind in ("array", "map"):
            return node.items[0].shapes
        if node.kind == "union":
            named_items = zip(member_names(node), node.items, strict=True)
            return tuple(ColumnShape(name, type_, inside=item.shapes) for name, item in named_items if (type_ := item.type))
        return tuple(
            ColumnShape(member.name, type_, member.doc, old_names=member.old_names, number=None, inside=member.node.shapes)
            for member in node.members
            if (type_ := member.node.type)
        )

    @cached_property
    def size_of_all(self) -> tuple[int, int]:
        """The number of fields and types inside, counted at each place, and the number of levels."""
        inside = [node.size_of_all for node in (*self.items, *(member.node for member in self.members))]
        return len(inside) + sum(count for count, _ in inside), 1 + max((levels for _, levels in inside), default=0)


def member_names(union: AvroNode) -> list[str]:
    """Returns the names of a union's types as fields of the struct that it becomes: a record's name, or the type's."""
    names: list[str] = []
    for item in union.items:
        name = item.name or item.kind
        names.append(name if name.lower() not in (earlier_name.lower() for earlier_name in names) else f"{name}_{len(names)}")
    return names


def shapes(schema: Schema) -> tuple[ColumnShape, ...]:
    return record(schema).shapes


def record(schema: Schema) -> AvroNode:
    """Returns the record that a message is; for any other type a record with the one field `value`, which has the same bytes."""
    node = parse(schema)
    return node if node.kind == "record" else AvroNode("record", members=(Member("value", node),))


@lru_cache(maxsize=1024)
def parse(schema: Schema) -> AvroNode:
    reader = _Reader()
    for _, reference in schema.behind:
        reader.text(reference.text)
    node = reader.text(schema.text)
    count, levels = node.size_of_all
    if count > MOST or levels > _DEEPEST:
        problem = f"has more than {MOST:,} fields" if count > MOST else f"is nested deeper than {_DEEPEST} levels"
        raise Unsupported(f"the schema {problem}", "keep the topic as `value: bytes`")
    return node


@dataclass
class _Reader:
    types_by_name: dict[str, AvroNode] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def text(self, text: str) -> AvroNode:
        try:
            return self.node(loaded(text), "", 0)
        except RecursionError:
            raise Unsupported("the schema is not Avro: its text is nested too deep") from None
        except json.JSONDecodeError as error:
            raise Unsupported(f"the schema is not Avro: it is neither JSON nor the name of a type ({error})"[:200]) from None
        except ValueError as error:
            raise Unsupported(f"the schema is not Avro: {error}"[:200]) from None
        except (KeyError, TypeError, AttributeError):
            raise Unsupported("the schema is not Avro: a part of it is of another kind than Avro says") from None

    def node(self, schema: Any, space: str, depth: int) -> AvroNode:
        if depth > _DEEPEST:
            raise Unsupported(f"the schema is nested deeper than {_DEEPEST} levels")
        if isinstance(schema, str):
            return self.named(schema, space)
        if isinstance(schema, list):
            items = tuple(self.node(item, space, depth + 1) for item in schema)
            return AvroNode("union", items=items)
        kind = _part(schema, "type", "a type")
        if isinstance(kind, (dict, list)) or (isinstance(kind, str) and kind not in (*_PLAIN, "null", *_COMPLEX)):
            return self.node(kind, space, depth + 1)
        if not isinstance(kind, str):
            raise ValueError("a type has no name")
        match kind:
            case "record" | "error" | "enum" | "fixed":
                return self.define(schema, space, depth)
            case "array":
                item = self.node(_part(schema, "items", "an array"), space, depth + 1)
                if not item.takes_bytes:
                    raise Unsupported("an array has items without bytes, of which ten bytes can claim any number")
                return AvroNode("array", items=(item,))
            case "map":
                return AvroNode("map", items=(self.node(_part(schema, "values", "a map"), space, depth + 1),))
        return _logical(AvroNode(kind), schema)

    def named(self, name: str, space: str) -> AvroNode:
        if name in _PLAIN or name == "null":
            return AvroNode(name)
        full = name if "." in name or not space else f"{space}.{name}"
        for candidate in (full, name):
            if candidate in self.open:
                hint = "a table's columns end somewhere: write `value: bytes`, or let the producer flatten it"
                raise Unsupported(f"the record `{name}` contains itself", hint)
            if candidate in self.types_by_name:
                return self.types_by_name[candidate]
        raise Unsupported(f"the schema names `{name}`, which it does not define", "register it with a reference to where that is")

    def define(self, schema: Mapping[str, Any], space: str, depth: int) -> AvroNode:
        kind = str(schema["type"])
        name = _text(_part(schema, "name", kind))
        prefix, dot, short = name.rpartition(".")
        space = prefix if dot else schema.get("namespace", space) or ""
        full = f"{space}.{short}" if space else short
        if kind == "enum":
            node = AvroNode("enum", name=short, symbols=tuple(map(_text, _listed(schema, "symbols", name))))
        elif kind == "fixed":
            node = _logical(AvroNode("fixed", name=short, size=_size(_part(schema, "size", name))), schema)
        else:
            self.open.add(full)
            node = AvroNode("record", name=short, members=tuple(self.members(_listed(schema, "fields", name), space, depth)))
            _refuse_twice(node)
            self.open.discard(full)
        _ = node.size_of_all, node.takes_bytes  # computed now, so that a chain of a thousand names is not walked at once
        self.types_by_name[full] = node
        return node

    def members(self, fields: list[Any], space: str, depth: int) -> Iterator[Member]:
        for entry in fields:
            name = _text(_part(entry, "name", "a field"))
            old_names = tuple(_text(alias).rpartition(".")[2] for alias in _listed(entry, "aliases", name, []))
            doc = entry.get("doc")
            doc = doc.encode(errors="replace").decode() if isinstance(doc, str) else ""
            yield Member(name, self.node(_part(entry, "type", name), space, depth + 1), doc, old_names)


_COMPLEX = ("record", "error", "enum", "fixed", "array", "map")


def _part(schema: Any, key: str, owner: str) -> Any:
    """Returns the value of a key of a type or a field, which must have it."""
    if not isinstance(schema, dict):
        raise ValueError(f"{json.dumps(schema)[:40]} stands where an object is expected")
    if key not in schema:
        raise ValueError(f"{owner} has no `{key}`")
    return schema[key]


def _listed(schema: Any, key: str, owner: str, otherwise: list[Any] | None = None) -> list[Any]:
    """Returns the list under a key, or `otherwise` if there is no such key."""
    if otherwise is not None and isinstance(schema, dict) and key not in schema:
        return otherwise
    values = _part(schema, key, owner)
    if not isinstance(values, list):
        raise ValueError(f"the `{key}` of {owner} are no list")
    return values


def _refuse_twice(record: AvroNode) -> None:
    names: set[str] = set()
    for member in record.members:
        if member.name in names:
            raise ValueError(f"the record `{record.name}` has the field `{member.name}` twice")
        names.add(member.name)


def _text(value: Any) -> str:
    """Returns the value, which must be a name."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{json.dumps(value)[:40]} is no name")
    value.encode()  # half a character is a ValueError, too
    return value


def _size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{json.dumps(value)[:40]} is no size")
    return value


def loaded(text: str) -> Any:
    """Returns the JSON of a schema's text. A registry gives the name of a plain type with or without quotes."""
    try:
        return json.loads(text)
    except ValueError:
        if text in (*_PLAIN, "null"):
            return text
        raise


def _logical(node: AvroNode, schema: Mapping[str, Any]) -> AvroNode:
    """Returns the node with its logical type, if its kind has that one: Avro says that others are to be ignored."""
    logical = schema.get("logicalType")
    if logical == "decimal" and node.kind in ("bytes", "fixed"):
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        fits = type(precision) is type(scale) is int and 0 < precision <= 38 and 0 <= scale <= precision
        return AvroNode(node.kind, "decimal", node.name, size=node.size, precision=precision, scale=scale) if fits else node
    if logical == "uuid" and (node.kind == "string" or node.size == _UUID_BYTES):
        return AvroNode(node.kind, "uuid", node.name, size=node.size)
    if isinstance(logical, str) and (node.kind, logical) in _LOGICAL:
        return AvroNode(node.kind, logical, node.name, size=node.size)
    return node
