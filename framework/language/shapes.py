"""The shapes of an option's value, derived from its type hint once."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, Union

from framework.language import extensions
from framework.language.node import YamlNode
from framework.language.options import ComponentName, ComponentOptions, Document, Option, OptionGroup, RestOfOptions, StepName
from framework.language.scalars import BOOL, NUMBER, TEXT, WHOLE, Scalar
from framework.plan.secret import SecretRef

NO_OPTION = Option(doc="")
BoundClass: TypeAlias = Any  # a subclass of OptionGroup, which mypy considers unhashable as the key of a cache


@dataclass(frozen=True, eq=False)
class Shape:
    form: typing.ClassVar[Literal["scalar", "list", "map", "any"]] = "any"


@dataclass(frozen=True, eq=False)
class ScalarShape(Shape):
    form = "scalar"
    scalar: Scalar
    json: Literal["string", "integer", "number", "boolean"]
    secret: Literal["no", "may", "must"] = "no"


@dataclass(frozen=True, eq=False)
class EnumShape(Shape):
    form = "scalar"
    choices: Callable[[], tuple[str | int | bool, ...]]

    @property
    def values(self) -> tuple[str | int | bool, ...]:
        return self.choices()


@dataclass(frozen=True, eq=False)
class ListShape(Shape):
    form = "list"
    item: Shape
    length: int | None
    as_list: bool


@dataclass(frozen=True, eq=False)
class MapShape(Shape):
    form = "map"
    key: ScalarShape
    value: Shape


@dataclass(frozen=True, eq=False, kw_only=True)
class Slot:
    """An option of a record: the field that it fills, and the shape of its value."""

    field: str
    shape: Shape
    option: Option
    required: bool
    default: Any = None


@dataclass(frozen=True, eq=False)
class RecordShape(Shape):
    form = "map"
    cls: type[OptionGroup]
    slots: Mapping[str, Slot]  # by the YAML's name
    later: Mapping[str, Option]
    _: KW_ONLY
    name: str  # of the kind, for a document
    chosen: Chosen | None = None

    def named(self, node: YamlNode) -> RecordShape | None:
        """The options of the component that a map names, if it names one."""
        if self.chosen is None:
            return None
        option_name = self.chosen.by
        return self.chosen.records.get(next((value.text for key, value in node.entries if key.text == option_name), ""))

    def complete(self, node: YamlNode) -> RecordShape:
        """The shape with the options of the component that the map names, or of all components if it names none."""
        if self.chosen is None:
            return self
        component_shape = self.named(node)
        return dataclasses.replace(self, slots={**self.slots, **(component_shape.slots if component_shape else self.chosen.any)})


@dataclass(frozen=True, eq=False)
class Chosen:
    """Options of a map that depend on a component, which the map's option `by` names. They fill one field."""

    field: str
    by: str
    records: Mapping[str, RecordShape]

    @property
    def any(self) -> Mapping[str, Slot]:
        """The options of all components. Those that every component requires are required."""
        records = self.records.values()
        slots = {name: slot for record in records for name, slot in record.slots.items()}
        required_names = {
            name for name in slots if all(name in record.slots and record.slots[name].required for record in records)
        }
        return {name: dataclasses.replace(slot, required=name in required_names) for name, slot in slots.items()}


@dataclass(frozen=True, eq=False)
class FilesShape(Shape):
    """A map with one key, which is the name of a component, such as a step."""

    form = "map"
    files: StepName

    def slots(self) -> Mapping[str, Slot]:
        return _step_slots(extensions.extensions_of(self.files.components))

    def later(self) -> tuple[str, ...]:
        existing_names = extensions.find(self.files.components)
        return tuple(name for name in self.files.later if name not in existing_names)


@cache
def _step_slots(step_files: extensions.Extensions) -> Mapping[str, Slot]:
    return {
        name: _step_slot(name, shape_of(extension.written), extension.doc) for name, extension in step_files.extensions.items()
    }


def _step_slot(name: str, shape: Shape, doc: str) -> Slot:
    """The slot of a step. An empty list or map is an error."""
    return Slot(
        field=name,
        shape=shape,
        option=Option(doc=doc, at_least=1 if isinstance(shape, ListShape | MapShape) else None),
        required=True,
    )


@dataclass(frozen=True, eq=False)
class AnyShape(Shape):
    """Any value, kept as its node."""


@dataclass(frozen=True, eq=False)
class UnionShape(Shape):
    alternatives: tuple[Shape, ...]

    @property
    def known_by(self) -> tuple[str, ...]:
        """The options by which the alternatives are told apart."""
        return tuple(
            alternative.cls.known_by
            for alternative in self.alternatives
            if isinstance(alternative, RecordShape) and alternative.cls.known_by
        )

    def fitting(self, node: YamlNode) -> list[Shape]:
        """The alternatives of the node's form."""
        candidates = [alternative for alternative in self.alternatives if alternative.form == node.kind]
        only_key_shapes = [
            alternative for alternative in candidates if isinstance(alternative, RecordShape) and alternative.cls.only_key
        ]
        known_alternatives: list[Shape] = [
            alternative for alternative in candidates if isinstance(alternative, RecordShape) and alternative.cls.known_by
        ]
        if known_alternatives:
            return [alternative for alternative in known_alternatives if _is_known(alternative, node)] or known_alternatives
        return [alternative for alternative in only_key_shapes if _tells(alternative, node)] or [
            alternative for alternative in candidates if alternative not in only_key_shapes
        ]


def _is_known(shape: Shape, node: YamlNode) -> bool:
    return isinstance(shape, RecordShape) and any(key.text == shape.cls.known_by for key, _ in node.entries)


def _tells(shape: RecordShape, node: YamlNode) -> bool:
    return len(node.entries) == 1 and node.entries[0][0].text == shape.cls.only_key and node.entries[0][1].kind == "map"


_PLAIN = {
    str: ScalarShape(TEXT, "string"),
    int: ScalarShape(WHOLE, "integer"),
    float: ScalarShape(NUMBER, "number"),
    bool: ScalarShape(BOOL, "boolean"),
    SecretRef: ScalarShape(TEXT, "string", "must"),
    YamlNode: AnyShape(),
}


def item_option(option: Option) -> Option:
    """The option of each item of a list or map."""
    first_item = re.match(r"\[([\w.]+(\([^)]*\))?)[,\]]", option.example)
    return Option(doc="", example=first_item[1] if first_item else "", later=option.later)


def shape_of(hint: Any) -> Shape:
    if _is_bound(hint):
        return record_shape(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        marker = arguments[1]
        if isinstance(marker, ComponentName):
            return EnumShape(marker.values)
        if isinstance(marker, ComponentOptions):
            return UnionShape(tuple(map(shape_of, marker.declared())))
        return FilesShape(marker) if isinstance(marker, StepName) else ScalarShape(marker, "string")
    if origin is Literal:
        return EnumShape(lambda: arguments)
    if origin in (list, tuple):
        fixed = origin is tuple and arguments[-1] is not Ellipsis
        return ListShape(shape_of(arguments[0]), len(arguments) if fixed else None, origin is list)
    if origin is dict:
        key = shape_of(arguments[0])
        assert isinstance(key, ScalarShape)
        return MapShape(key, shape_of(arguments[1]))
    if origin in (Union, types.UnionType):
        return _union([argument for argument in arguments if argument is not type(None)])
    raise TypeError(f"an option cannot have the type {hint!r}")


def _is_bound(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, OptionGroup)


def _union(hints: list[Any]) -> Shape:
    if set(hints) == {str, SecretRef}:
        return ScalarShape(TEXT, "string", "may")
    if set(hints) == {int, float}:
        return _PLAIN[float]
    if len(hints) == 1:
        return shape_of(hints[0])
    shapes = [shape_of(hint) for hint in hints]
    return UnionShape(
        tuple(part for shape in shapes for part in (shape.alternatives if isinstance(shape, UnionShape) else (shape,)))
    )


_BOUND_FIELDS = {field.name for field in dataclasses.fields(OptionGroup)}


@cache
def record_shape(cls: BoundClass) -> RecordShape:
    """The shape of a class of options. A document's first key fills the field `name`."""
    hints = typing.get_type_hints(cls, include_extras=True)
    kind = cls.__name__.lower() if issubclass(cls, Document) else ""
    slots: dict[str, Slot] = {}
    later: dict[str, Option] = {}
    chosen = _chosen(hints)
    for field in dataclasses.fields(cls):
        option = field.metadata.get("option", NO_OPTION)
        name = field.name.rstrip("_")
        if not option.in_this_version:
            later[name] = option
        elif field.name == "name" and kind:
            slots[kind] = Slot(field="name", shape=shape_of(hints["name"]), option=option, required=True)
        elif field.name not in _BOUND_FIELDS and not (chosen and field.name == chosen.field):
            slots[name] = Slot(
                field=field.name,
                shape=shape_of(hints[field.name]),
                option=_completed(option, hints[field.name]),
                required=_is_required(field),
                default=_default(field),
            )
    chosen_names = chosen.any if chosen else ()
    return RecordShape(
        cls, slots, {name: option for name, option in later.items() if name not in chosen_names}, name=kind, chosen=chosen
    )


def _chosen(hints: Mapping[str, Any]) -> Chosen | None:
    marks = ((field, _mark(hint, RestOfOptions)) for field, hint in hints.items())
    field, options = next((pair for pair in marks if pair[1]), ("", None))
    if options is None:
        return None
    declared = options.declared(_mark(hints[options.by], ComponentName))
    return Chosen(field, options.by, {name: record_shape(cls) for name, cls in declared.items()})


def _mark(hint: Any, kind: type) -> Any:
    return next((argument for argument in typing.get_args(hint) if isinstance(argument, kind)), None)


def _completed(option: Option, hint: Any) -> Option:
    """The option with the help of the components that it may name. A component that exists is not among the later values."""
    marker = _mark(hint, ComponentName)
    if marker is None:
        return option
    later_values = tuple(name for name in option.later if name not in marker.values())
    return dataclasses.replace(option, doc=marker.help(option.doc), later=later_values)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    return None if field.default is dataclasses.MISSING else field.default
