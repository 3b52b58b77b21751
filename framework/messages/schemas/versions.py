"""Merges all versions of a schema into columns that hold every message of each of them, and finds the conflicts.

A version may add fields, leave some out, widen types and rename, at any depth. A field that is left out stays a column; one that
a later version has narrower keeps its type. A version that gives a field another type is left out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from framework.base.types import STRING, Array, Field, Map, Struct, Type, widens
from framework.plan.schema import Version

Path = tuple[str, ...]  # of fields' names; arrays and maps on the way have none


class Unsupported(Exception):
    """A schema that cannot become columns."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class ColumnShape:
    """A field as one version has it. `inside` are the fields of its struct, also where that is inside arrays or maps. Fields with the
    same `number` are one field, whatever their names."""

    name: str
    type: Type
    doc: str = ""
    _: KW_ONLY
    old_names: tuple[str, ...] = ()
    number: int | None = None
    inside: tuple[ColumnShape, ...] = ()


@dataclass(frozen=True)
class SchemaDifference:
    """A change by a version that not every table allows."""

    version: Version
    kind: Literal["narrow", "retype"]
    path: Path
    _: KW_ONLY
    old: Type
    new: Type

    @property
    def change(self) -> str:
        return f"has `{'.'.join(self.path)}` as {self.new}, and before it was {self.old}"

    def __str__(self) -> str:
        return f"{self.version} {self.change}"


@dataclass(frozen=True)
class Fit:
    """A version whose messages become the columns; `names` are the columns' names for its fields that have another name."""

    version: Version
    shapes: tuple[ColumnShape, ...]
    names: Mapping[Path, str]


@dataclass(frozen=True)
class Merged:
    """The columns as fields with all names that they ever had; the versions that fit, and those that do not, with the reason."""

    shapes: tuple[ColumnShape, ...]
    fits: tuple[Fit, ...]
    unfit: tuple[tuple[Version, str], ...]
    differences: tuple[SchemaDifference, ...]


@dataclass(kw_only=True)
class _Slot:
    """A column, as far as the versions read so far make it."""

    name: str
    wraps: tuple[str, ...]  # array and map, from the outside
    leaf: Type  # an empty struct for any struct
    number: int | None = None
    doc: str = ""
    names: list[str] = field(default_factory=list)
    inside: list[_Slot] = field(default_factory=list)

    @property
    def type(self) -> Type:
        type_ = self.leaf
        if self.inside:
            type_ = Struct(tuple(Field(slot.name, slot.type) for slot in self.inside))
        for wrap in reversed(self.wraps):
            type_ = Array(type_) if wrap == "array" else Map(STRING, type_)
        return type_

    def shape(self) -> ColumnShape:
        old_names = tuple(name for name in self.names if name != self.name)
        return ColumnShape(
            self.name,
            self.type,
            self.doc,
            old_names=old_names,
            number=self.number,
            inside=tuple(slot.shape() for slot in self.inside),
        )


def merge(versions: Iterable[tuple[Version, Sequence[ColumnShape]]]) -> Merged:
    """Merges the versions by their numbers. Versions of other subjects have no number, come last and change no column."""
    slots: list[_Slot] = []
    fitting: list[tuple[Version, Sequence[ColumnShape], dict[Path, _Slot]]] = []
    unfit: list[tuple[Version, str]] = []
    differences: list[SchemaDifference] = []
    for version, shapes in sorted(versions, key=lambda pair: (pair[0].number is None, pair[0].number or 0, pair[0].id)):
        version_differences = list(_differences(version, slots, shapes, ()))
        reason = next((f"it {difference.change}" for difference in version_differences if difference.kind == "retype"), None)
        if version.number is None and reason is None:
            reason = next((f"`{'.'.join(path)}` is no column" for path in _new(slots, shapes, ())), None)
        if version.number is not None:
            differences += version_differences
        if reason:
            unfit.append((version, reason))
            continue
        places: dict[Path, _Slot] = {}
        _take(slots, shapes, (), places, learn=version.number is not None)
        fitting.append((version, shapes, places))
    fits = tuple(
        Fit(version, tuple(shapes), {path: slot.name for path, slot in places.items() if slot.name != path[-1]})
        for version, shapes, places in fitting
    )
    return Merged(tuple(slot.shape() for slot in slots), fits, tuple(unfit), tuple(differences))


def _pairs(slots: Sequence[_Slot], shapes: Sequence[ColumnShape]) -> Iterator[tuple[_Slot | None, ColumnShape]]:
    """Pairs each field with its column, found by its number, its older names, its name or an older name of the column."""
    by_current_name, by_number = _places((slot.name,) for slot in slots), _places((slot.number,) for slot in slots)
    by_any_name = _places(slot.names for slot in slots)
    free_indexes = set(range(len(slots)))
    found_slots: dict[str, _Slot] = {}
    lookups: tuple[Callable[[ColumnShape], Iterable[int]], ...] = (
        lambda shape: by_number.get(shape.number, ()) if shape.number is not None else (),
        lambda shape: (index for name in shape.old_names if name != shape.name for index in by_any_name.get(name, ())),
        lambda shape: by_current_name.get(shape.name, ()),
        lambda shape: by_any_name.get(shape.name, ()),
    )
    for lookup in lookups:
        for shape in shapes:
            index = (
                None
                if shape.name in found_slots
                else min((candidate for candidate in lookup(shape) if candidate in free_indexes), default=None)
            )
            if index is not None:
                found_slots[shape.name] = slots[index]
                free_indexes.remove(index)
    return ((found_slots.get(shape.name), shape) for shape in shapes)


def _places(keys: Iterable[Iterable[Any]]) -> dict[Any, list[int]]:
    """Returns the indexes of the slots that have each key."""
    indexes: dict[Any, list[int]] = {}
    for index, names in enumerate(keys):
        for key in names:
            indexes.setdefault(key, []).append(index)
    return indexes


def _differences(
    version: Version, slots: Sequence[_Slot], shapes: Sequence[ColumnShape], path: Path
) -> Iterator[SchemaDifference]:
    for slot, shape in _pairs(slots, shapes):
        if slot is None:
            continue
        field_path = (*path, shape.name)
        wraps, leaf = _unwrapped(shape.type)
        if slot.wraps != wraps or bool(slot.inside) != bool(shape.inside):
            yield SchemaDifference(version, "retype", field_path, old=slot.type, new=shape.type)
        elif shape.inside:
            yield from _differences(version, slot.inside, shape.inside, field_path)
        elif slot.leaf != leaf and not widens(slot.leaf, leaf):
            yield SchemaDifference(
                version, "narrow" if widens(leaf, slot.leaf) else "retype", field_path, old=slot.type, new=shape.type
            )


def _new(slots: Sequence[_Slot], shapes: Sequence[ColumnShape], path: Path) -> Iterator[Path]:
    for slot, shape in _pairs(slots, shapes):
        if slot is None:
            yield (*path, shape.name)
        else:
            yield from _new(slot.inside, shape.inside, (*path, shape.name))


def _take(slots: list[_Slot], shapes: Sequence[ColumnShape], path: Path, places: dict[Path, _Slot], learn: bool) -> None:
    for existing_slot, shape in list(_pairs(slots, shapes)):
        wraps, leaf = _unwrapped(shape.type)
        slot = existing_slot or _Slot(name=shape.name, wraps=wraps, leaf=leaf)
        if existing_slot is None:
            slots.append(slot)
        if learn:
            slot.leaf = leaf if widens(slot.leaf, leaf) else slot.leaf
            slot.name = slot.name if shape.name in slot.names else shape.name
            slot.names += [name for name in (shape.name,) if name not in slot.names]
            slot.number, slot.doc = shape.number, shape.doc or slot.doc
        field_path = (*path, shape.name)
        places[field_path] = slot
        _take(slot.inside, shape.inside, field_path, places, learn)


def _unwrapped(type_: Type) -> tuple[tuple[str, ...], Type]:
    wraps: list[str] = []
    while isinstance(type_, (Array, Map)):
        wraps.append("array" if isinstance(type_, Array) else "map")
        type_ = type_.element if isinstance(type_, Array) else type_.value
    return tuple(wraps), type_ if not isinstance(type_, Struct) else Struct(())
