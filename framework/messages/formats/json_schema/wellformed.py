"""Reads the text of a JSON Schema as a document in which every keyword has a form that JSON Schema knows.

A registry may accept malformed schemas. A keyword of another form has no effect in most validators, so it is left out, wherever a
schema can stand. An enum, a const, a default or an example is no schema and stays unchanged.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from framework.messages.schemas.versions import Unsupported

_CHECK_REGISTRY = "see what the registry has"
_ONE = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
_SEVERAL = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
_NAMED = frozenset(("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"))
_TEXTS = frozenset(("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "$ref", "$schema", "id"))
_ADDRESSES = frozenset(("$dynamicRef", "$id", "$ref", "$schema", "id"))
_ANCIENT = frozenset(("disallow", "extends"))  # of draft 3; the schemas in them are not read here
_LISTS_ARE_PREFIXES = "2020-12"  # the first draft in which `items` is no list


def document(text: str) -> Any:
    """Returns the schema of a text: an object or a truth value."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise Unsupported(f"the text is not JSON: {error}", _CHECK_REGISTRY) from None
    except RecursionError:
        raise Unsupported("the text is nested too deep", _CHECK_REGISTRY) from None
    if not isinstance(schema, (dict, bool)):
        raise Unsupported("the text is not a JSON Schema: it is neither an object nor a boolean", _CHECK_REGISTRY)
    draft = schema.get("$schema") if isinstance(schema, dict) else None
    try:
        return _schema(schema, isinstance(draft, str) and _LISTS_ARE_PREFIXES in draft)
    except RecursionError:
        raise Unsupported("the text is nested too deep", _CHECK_REGISTRY) from None


def _schema(schema: Any, modern: bool) -> Any:
    if isinstance(schema, bool):
        return schema
    result: dict[str, Any] = {}
    for name, value in schema.items():
        checked_value = _keyword(name, value, modern)
        if checked_value is not None:
            result[name] = checked_value
    if modern and isinstance(result.get("items"), list):
        result["prefixItems"] = result.pop("items")
        if "additionalItems" in result:
            result["items"] = result.pop("additionalItems")
    return result


def _keyword(name: str, value: Any, modern: bool) -> Any:
    """Returns the value of a keyword without malformed parts; None if the keyword is to be left out."""
    if name in _TEXTS:
        return _text(name, value)
    if name in _NAMED:
        return _named(name, value, modern) if isinstance(value, dict) else None
    if name in _SEVERAL and isinstance(value, list):
        return [_schema(item, modern) if _is_schema(item) else {} for item in value]
    if name in _ONE:
        return _schema(value, modern) if _is_schema(value) else None
    return None if name in _ANCIENT or name in _SEVERAL else value


def _named(name: str, value: dict[str, Any], modern: bool) -> dict[str, Any]:
    """Returns the schemas by their names, without malformed ones. Dependencies may also be lists of names."""
    result: dict[str, Any] = {}
    for key, inner in value.items():
        if _is_schema(inner):
            result[key] = _schema(inner, modern)
        elif name == "dependencies" and isinstance(inner, list) and all(isinstance(item, str) for item in inner):
            result[key] = inner
        elif name == "properties":
            result[key] = {}  # a property all the same
    return result


def _text(name: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    if name in _ADDRESSES:
        try:
            urlsplit(value)
        except ValueError:
            if name in ("$ref", "$dynamicRef"):
                raise Unsupported(f"`{name}` is `{value[:80]}`, which is no address", _CHECK_REGISTRY) from None
            return None
    return value


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))
