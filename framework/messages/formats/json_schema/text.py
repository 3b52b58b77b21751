"""Reads the text of a JSON Schema as the types and fields, in their order, that become columns."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from framework.messages.formats.json_schema.keyword_types import (
    ANYTHING,
    Allowed,
    any_of,
    atom,
    both,
    check_names,
    either,
    keyword,
    kinds_of,
)
from framework.messages.formats.json_schema.wellformed import document
from framework.messages.schemas.versions import Unsupported
from framework.plan.schema import Schema

if TYPE_CHECKING:
    from referencing import Registry, Resource
    from referencing._core import Resolver

_MOST = 20_000  # schemas read, each as often as it is referred to
_DEEPEST = 64  # schemas within schemas
_CLASS = re.compile(r"\w+(\.[\w$-]+)+")  # a title that is a name in a program
MALFORMED = (
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)  # raised for malformed texts that a registry accepted
_CHECK_REGISTRY = "see what the registry has"
_IGNORES_BESIDE_REF = ("draft-03", "draft-04", "draft-06", "draft-07")


def registry_of(schema: Schema) -> Registry[Any]:
    """Returns the schemas to which a schema refers, by its names for them, which may be relative to any address."""
    from referencing import Registry
    from referencing.exceptions import NoSuchResource

    resources = {name: _resource(reference.text) for name, reference in schema.behind}

    def retrieve(uri: str) -> Resource[Any]:
        match = next((name for name in resources if uri == name or uri.endswith(f"/{name}")), None)
        if match is None:
            raise NoSuchResource(uri)
        return resources[match]

    registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
    return registry.with_resources(resources.items()).crawl()


def _resource(text: str) -> Resource[Any]:
    from referencing import Resource
    from referencing.jsonschema import DRAFT4, DRAFT7

    schema = document(text)
    return Resource.from_contents(schema, default_specification=DRAFT4 if _old_id(schema) else DRAFT7)


def _old_id(schema: Any) -> bool:
    return keyword(schema, "id", str) is not None and keyword(schema, "$id", str) is None


def allowed_of(schema: Schema) -> Allowed:
    """Returns the types of whole messages: objects, or a single value, which becomes the field `value`."""
    from referencing.exceptions import Unresolvable

    root = _resource(schema.text)
    registry = registry_of(schema)
    name = keyword(root.contents, "$id", str) or keyword(root.contents, "id", str)
    if name:
        registry = registry.with_resource(name.rstrip("#"), root)
    draft = keyword(root.contents, "$schema", str) or "draft-07"
    reader = _Reader(modern=not any(old in draft for old in _IGNORES_BESIDE_REF), old_ids=_old_id(root.contents))
    try:
        allowed = reader.schema(root.contents, registry.resolver_with_root(root), top=True)
    except Unresolvable as error:
        hint = "register what it refers to in the same registry, and name it in the schema's references"
        raise Unsupported(f"the schema refers to `{error.ref}`, which is not there", hint) from None
    except MALFORMED:
        raise Unsupported("the schema refers to something in it that is no schema", _CHECK_REGISTRY) from None
    if allowed.kind == "atom":
        return Allowed("object", fields=(("value", allowed),), single=True)
    if allowed.kind != "object":
        problem = "has fields of any name" if allowed.kind == "map" else "is no object"
        raise Unsupported(f"a message {problem}, by its schema", "a table needs columns: put it into a property of an object")
    if not allowed.fields:
        raise Unsupported("the schema names no fields", "a table needs columns: say `properties`")
    return allowed


class _Reader:
    """One pass over a schema and everything that it refers to."""

    def __init__(self, modern: bool, old_ids: bool) -> None:
        self.modern = modern  # whether keywords next to a `$ref` count
        self.old_ids = old_ids  # whether `id` means what `$id` means in later drafts
        self.open: list[int] = []
        self.parts = 0

    def schema(self, schema: Any, resolver: Resolver[Any], top: bool = False) -> Allowed:
        self.parts += 1
        if self.parts > _MOST or len(self.open) > _DEEPEST:
            size = f"more than {_MOST:,} parts" if self.parts > _MOST else f"more than {_DEEPEST} levels"
            raise Unsupported(f"the schema has {size}", "make it smaller: a part that is `{}` becomes its JSON text")
        if not isinstance(schema, dict):
            return ANYTHING
        if id(schema) in self.open:
            hint = (
                "a table has no such column: write `{}` in the schema where it refers to itself, and the column is its JSON text"
            )
            raise Unsupported("the schema contains itself", hint)
        self.open.append(id(schema))
        allowed = self._all(schema, self._base(schema, resolver), top)
        self.open.pop()
        title = keyword(schema, "title", str) or ""
        doc = keyword(schema, "description", str) or ("" if _CLASS.fullmatch(title) else title) or allowed.doc
        order = keyword(schema, "connect.index", int)
        doc = doc.encode(errors="replace").decode()  # half a character is no text
        return replace(allowed, doc=" ".join(doc.split()), order=allowed.order if order is None else order)

    def _base(self, schema: dict[str, Any], resolver: Resolver[Any]) -> Resolver[Any]:
        from referencing.jsonschema import DRAFT4, DRAFT202012

        if keyword(schema, "$id", str) is None and not (self.old_ids and _old_id(schema)):
            return resolver
        if not self.modern and "$ref" in schema:
            return resolver  # an id next to a `$ref` does not count either
        return resolver.in_subresource((DRAFT4 if _old_id(schema) else DRAFT202012).create_resource(schema))

    def _all(self, schema: dict[str, Any], resolver: Resolver[Any], top: bool) -> Allowed:
        """Returns the types that satisfy all keywords of one place."""
        ref = next((schema[name] for name in ("$ref", "$dynamicRef") if isinstance(schema.get(name), str)), None)
        whole = ANYTHING
        if ref is not None:
            target = resolver.lookup(ref)
            whole = self.schema(target.contents, target.resolver, top)
            if not self.modern:
                return whole
        whole = both(self._own(schema, resolver), whole)
        for part in keyword(schema, "allOf", list) or ():
            whole = both(whole, self.schema(part, resolver, top))
        for name in ("anyOf", "oneOf"):
            parts = [self.schema(part, resolver, top) for part in keyword(schema, name, list) or ()]
            if parts:
                whole = both(whole, any_of(parts, top or whole.kind == "object"))
        return whole

    def _own(self, schema: dict[str, Any], resolver: Resolver[Any]) -> Allowed:
        kinds = kinds_of(schema)
        if kinds == ["object"]:
            return self._object(schema, resolver)
        if kinds == ["array"]:
            return Allowed("array", inner=self._items(schema, resolver))
        return atom(kinds, schema)

    def _object(self, schema: dict[str, Any], resolver: Resolver[Any]) -> Allowed:
        properties = (keyword(schema, "properties", dict) or {}).items()
        fields = [(name, self.schema(value, resolver)) for name, value in properties if value is not False]
        if fields:
            check_names([name for name, _ in fields])
            fields.sort(key=lambda field: (field[1].order is None, field[1].order or 0))
            return Allowed("object", fields=tuple(fields))
        value_schemas = [schema.get("additionalProperties"), *(keyword(schema, "patternProperties", dict) or {}).values()]
        values = [
            self.schema(value_schema, resolver)
            for value_schema in value_schemas
            if isinstance(value_schema, dict) and value_schema
        ]
        is_open = "patternProperties" in schema and schema.get("additionalProperties", True) in (True, {})
        values += [ANYTHING] if values and is_open else []  # other names may have any value
        return Allowed("map", inner=reduce(either, values)) if values else Allowed("object")

    def _items(self, schema: dict[str, Any], resolver: Resolver[Any]) -> Allowed:
        items_keyword = schema.get("items")
        listed_items = items_keyword if isinstance(items_keyword, list) else keyword(schema, "prefixItems", list) or []
        other_items = schema.get("additionalItems") if isinstance(items_keyword, list) else items_keyword
        largest = keyword(schema, "maxItems", int)
        closed = bool(listed_items) and (other_items is False or (largest is not None and largest <= len(listed_items)))
        items = [self.schema(item, resolver) for item in listed_items]
        items += [] if closed else [self.schema(other_items, resolver)]  # a missing schema for the other items allows anything
        return reduce(either, items)
