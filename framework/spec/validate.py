"""The check of a document against the schema of its kind, by jsonschema over nodes.

The keywords are the standard's, but a scalar is read by the type that is asked of it, never by how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from framework.errors import Problem
from framework.spec import extensions
from framework.spec.failure import Failure
from framework.spec.keys import beside
from framework.spec.messages import problems_of
from framework.spec.node import Node
from framework.spec.schema import MADE_OF, NULLABLE, schema_of
from framework.spec.shapes import NO_OPTION, BoundClass, UnionShape, record_shape


def check(cls: BoundClass, node: Node) -> Iterator[Problem]:
    """What is wrong with the shape of a document."""
    for error in _validator(cls, extensions.found(extensions.STEPS)).iter_errors(_instance(node)):
        shape, option = error.schema[MADE_OF]
        path = [part.node.text if isinstance(part, Text) else part for part in error.absolute_path]
        is_key = "propertyNames" in error.absolute_schema_path
        yield from problems_of(
            Failure(keyword=str(error.validator), node=error.instance.node, shape=shape, option=option, path=path, is_key=is_key)
        )


class Text(str):
    """A scalar for the validator, which finds the way back to the node through it."""

    __slots__ = ("node",)
    node: Node


class Items(list[Any]):
    __slots__ = ("node",)
    node: Node


class Entries(dict[Any, Any]):
    __slots__ = ("node",)
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
    if isinstance(instance, Entries) and not beside(schema[MADE_OF][0], instance.node):
        for key, value in instance.items():
            inner = properties.get(key)
            if inner is not None and not (value.node.is_null and inner.get(NULLABLE)):
                yield from validator.descend(value, inner, path=key, schema_path=key)


def _any_of(validator: Any, alternatives: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    """As in the standard, but what fails is told of the alternative that was meant."""
    fitting = [each for each in alternatives if _form(each) == instance.node.kind]
    shape = schema[MADE_OF][0]
    if isinstance(shape, UnionShape):
        meant = shape.fitting(instance.node)
        fitting = [each for each in fitting if each[MADE_OF][0] in meant]
    choice = instance.node.kind == "scalar" and isinstance(shape, UnionShape)
    if len(fitting) == 1 and not choice:
        yield from validator.descend(instance, fitting[0])
    elif not any(validator.evolve(schema=each).is_valid(instance) for each in fitting):
        yield ValidationError("no alternative fits")


def _form(schema: dict[str, Any]) -> str:
    return {"object": "map", "array": "list"}.get(schema.get("type", ""), "scalar")


def _enumerated(_validator: Any, values: Any, instance: Any, _schema: Any) -> Iterable[ValidationError]:
    node = instance.node
    allowed = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    if node.kind != "scalar" or node.is_null or node.text not in allowed:
        yield ValidationError("not one of these")


def _type(_validator: Any, name: str, instance: Any, _schema: Any) -> Iterable[ValidationError]:
    if not _TYPES[name](instance):
        yield ValidationError("not of this type")


def _minimum(_validator: Any, bound: float, instance: Any, _schema: Any) -> Iterable[ValidationError]:
    if instance.node.is_number and float(instance) < bound:
        yield ValidationError("too small")


def _maximum(_validator: Any, bound: float, instance: Any, _schema: Any) -> Iterable[ValidationError]:
    if instance.node.is_number and float(instance) > bound:
        yield ValidationError("too large")


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda instance: isinstance(instance, dict),  # the keywords ask this of schemas, too
    "array": lambda instance: isinstance(instance, list),
    "string": lambda instance: isinstance(instance, Text) and not instance.node.is_null,
    "integer": lambda instance: isinstance(instance, Text) and instance.node.is_whole,
    "number": lambda instance: isinstance(instance, Text) and instance.node.is_number,
    "boolean": lambda instance: isinstance(instance, Text) and instance.node.is_bool,
}
_checker = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {name: lambda _, instance, test=test: test(instance) for name, test in _TYPES.items()}
)
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "type": _type,
        "properties": _properties,
        "anyOf": _any_of,
        "enum": _enumerated,
        "minimum": _minimum,
        "maximum": _maximum,
    },
    type_checker=_checker,
)


@cache
def _validator(cls: BoundClass, _steps: extensions.Found) -> Any:
    return _Validator(schema_of(record_shape(cls), NO_OPTION))
