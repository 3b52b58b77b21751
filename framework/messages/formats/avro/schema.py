"""An Avro schema's text, with what it refers to in its place, and the columns that it becomes.

*Cost*: each type of a schema is looked at once, however often it is referred to; columns are capped, since two references at each
level make twice as many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from framework.base import types
from framework.base.types import Type
from framework.messages.schemas.versions import Shape, Unsupported
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
    node: Node
    doc: str = ""
    was: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """A type of a schema. `kind` is Avro's own word for it; what the others mean hangs on that."""

    kind: str
    logical: str = ""
    name: str = ""  # of a record, an enum or a fixed
    _: KW_ONLY
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()  # of an array or a map one, of a union all
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0

    @cached_property
    def value(self) -> Node:
        """Without null, if that is all that a union adds."""
        if self.kind != "union":
            return self
        others = tuple(each for each in self.items if each.kind != "null")
        if len(others) == 1:
            return others[0]
        kinds = {(each.kind, each.logical) for each in others}
        number = next((wide for narrow, wide in _TWO_WIDTHS if kinds == {(narrow, ""), (wide, "")}), None)
        return Node(number, items=others) if number else Node("union" if others else "null", items=others)

    @cached_property
    def takes_bytes(self) -> bool:
        """Whether each value takes at least one."""
        if self.kind == "record":
            return any(each.node.takes_bytes for each in self.members)
        return self.kind != "null" and (self.kind != "fixed" or self.size > 0)

    @cached_property
    def type(self) -> Type | None:
        """The column's type; None of what holds nothing, such as a record without fields."""
        node = self.value
        match node.kind:
            case "null":
                return None
            case "record" | "union":
                fields = tuple(types.Field(each.name, each.type) for each in node.shapes)
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
    def shapes(self) -> tuple[Shape, ...]:
        """The fields of the struct that it is, be it in arrays or maps."""
        node = self.value
        if node.kind in ("array", "map"):
            return node.items[0].shapes
        if node.kind == "union":
            named = zip(member_names(node), node.items, strict=True)
            return tuple(Shape(name, type_, inside=each.shapes) for name, each in named if (type_ := each.type))
        return tuple(
            Shape(each.name, type_, each.doc, was=each.was, number=None, inside=each.node.shapes)
            for each in node.members
            if (type_ := each.node.type)
        )

    @cached_property
    def size_of_all(self) -> tuple[int, int]:
        """The number of fields and types inside, counted at each place, and of levels."""
        inside = [each.size_of_all for each in (*self.items, *(member.node for member in self.members))]
        return len(inside) + sum(count for count, _ in inside), 1 + max((levels for _, levels in inside), default=0)


def member_names(union: Node) -> list[str]:
    """The names of a union's types as fields of the struct that it becomes: a record by its name, others by their type."""
    names: list[str] = []
    for each in union.items:
        name = each.name or each.kind
        names.append(name if name.lower() not in (other.lower() for other in names) else f"{name}_{len(names)}")
    return names


def shapes(schema: Schema) -> tuple[Shape, ...]:
    return record(schema).shapes


def record(schema: Schema) -> Node:
    """The record that a message is; anything else is a record with the one field `value`, which has the same bytes."""
    node = parse(schema)
    return node if node.kind == "record" else Node("record", members=(Member("value", node),))


@lru_cache(maxsize=1024)
def parse(schema: Schema) -> Node:
    reader = _Reader()
    for _, referred in schema.behind:
        reader.text(referred.text)
    node = reader.text(schema.text)
    count, levels = node.size_of_all
    if count > MOST or levels > _DEEPEST:
        what = f"has more than {MOST:,} fields" if count > MOST else f"is nested deeper than {_DEEPEST} levels"
        raise Unsupported(f"the schema {what}", "keep the topic as `value: bytes`")
    return node


@dataclass
class _Reader:
    types_by_name: dict[str, Node] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def text(self, text: str) -> Node:
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

    def node(self, schema: Any, space: str, depth: int) -> Node:
        if depth > _DEEPEST:
            raise Unsupported(f"the schema is nested deeper than {_DEEPEST} levels")
        if isinstance(schema, str):
            return self.named(schema, space)
        if isinstance(schema, list):
            items = tuple(self.node(each, space, depth + 1) for each in schema)
            return Node("union", items=items)
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
                return Node("array", items=(item,))
            case "map":
                return Node("map", items=(self.node(_part(schema, "values", "a map"), space, depth + 1),))
        return _logical(Node(kind), schema)

    def named(self, name: str, space: str) -> Node:
        if name in _PLAIN or name == "null":
            return Node(name)
        full = name if "." in name or not space else f"{space}.{name}"
        for each in (full, name):
            if each in self.open:
                hint = "a table's columns end somewhere: write `value: bytes`, or let the producer flatten it"
                raise Unsupported(f"the record `{name}` contains itself", hint)
            if each in self.types_by_name:
                return self.types_by_name[each]
        raise Unsupported(f"the schema names `{name}`, which it does not define", "register it with a reference to where that is")

    def define(self, schema: Mapping[str, Any], space: str, depth: int) -> Node:
        kind = str(schema["type"])
        name = _text(_part(schema, "name", kind))
        before, dot, short = name.rpartition(".")
        space = before if dot else schema.get("namespace", space) or ""
        full = f"{space}.{short}" if space else short
        if kind == "enum":
            node = Node("enum", name=short, symbols=tuple(map(_text, _listed(schema, "symbols", name))))
        elif kind == "fixed":
            node = _logical(Node("fixed", name=short, size=_size(_part(schema, "size", name))), schema)
        else:
            self.open.add(full)
            node = Node("record", name=short, members=tuple(self.members(_listed(schema, "fields", name), space, depth)))
            _refuse_twice(node)
            self.open.discard(full)
        _ = node.size_of_all, node.takes_bytes  # kept, so that a chain of a thousand names is not walked at once
        self.types_by_name[full] = node
        return node

    def members(self, fields: list[Any], space: str, depth: int) -> Iterator[Member]:
        for each in fields:
            name = _text(_part(each, "name", "a field"))
            was = tuple(_text(alias).rpartition(".")[2] for alias in _listed(each, "aliases", name, []))
            doc = each.get("doc")
            doc = doc.encode(errors="replace").decode() if isinstance(doc, str) else ""
            yield Member(name, self.node(_part(each, "type", name), space, depth + 1), doc, was)


_COMPLEX = ("record", "error", "enum", "fixed", "array", "map")


def _part(schema: Any, key: str, owner: str) -> Any:
    """What stands under a key of a type or a field."""
    if not isinstance(schema, dict):
        raise ValueError(f"{json.dumps(schema)[:40]} stands where an object is expected")
    if key not in schema:
        raise ValueError(f"{owner} has no `{key}`")
    return schema[key]


def _listed(schema: Any, key: str, owner: str, otherwise: list[Any] | None = None) -> list[Any]:
    """A list under a key; `otherwise` if there is none."""
    if otherwise is not None and isinstance(schema, dict) and key not in schema:
        return otherwise
    values = _part(schema, key, owner)
    if not isinstance(values, list):
        raise ValueError(f"the `{key}` of {owner} are no list")
    return values


def _refuse_twice(record: Node) -> None:
    names: set[str] = set()
    for member in record.members:
        if member.name in names:
            raise ValueError(f"the record `{record.name}` has the field `{member.name}` twice")
        names.add(member.name)


def _text(value: Any) -> str:
    """A name. A ValueError where it is none."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{json.dumps(value)[:40]} is no name")
    value.encode()  # half a character is a ValueError, too
    return value


def _size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{json.dumps(value)[:40]} is no size")
    return value


def loaded(text: str) -> Any:
    """A registry gives a plain type with or without quotes."""
    try:
        return json.loads(text)
    except ValueError:
        if text in (*_PLAIN, "null"):
            return text
        raise


def _logical(node: Node, schema: Mapping[str, Any]) -> Node:
    """With its logical type, if that is one of its kind: others are to be ignored, says Avro."""
    logical = schema.get("logicalType")
    if logical == "decimal" and node.kind in ("bytes", "fixed"):
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        fits = type(precision) is type(scale) is int and 0 < precision <= 38 and 0 <= scale <= precision
        return Node(node.kind, "decimal", node.name, size=node.size, precision=precision, scale=scale) if fits else node
    if logical == "uuid" and (node.kind == "string" or node.size == _UUID_BYTES):
        return Node(node.kind, "uuid", node.name, size=node.size)
    if isinstance(logical, str) and (node.kind, logical) in _LOGICAL:
        return Node(node.kind, logical, node.name, size=node.size)
    return node
