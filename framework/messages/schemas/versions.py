"""All versions of a schema together: the columns that hold every message of each of them, and the conflicts.

A version may add fields, leave some out, widen types and rename, at any depth. A field that is left out stays a column; one that
a later version has narrower keeps its type. A version that says another type is left out as a whole.
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
class Shape:
    """A field as one version has it. `inside` are the fields of the struct that its type is, be it in arrays or maps. `was` are
    older names of it; the same `number` is the same field, whatever its name."""

    name: str
    type: Type
    doc: str = ""
    _: KW_ONLY
    was: tuple[str, ...] = ()
    number: int | None = None
    inside: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Difference:
    """A change by a version that not every table allows."""

    version: Version
    kind: Literal["narrow", "retype"]
    path: Path
    _: KW_ONLY
    old: Type
    new: Type

    @property
    def what(self) -> str:
        return f"has `{'.'.join(self.path)}` as {self.new}, and before it was {self.old}"

    def __str__(self) -> str:
        return f"{self.version} {self.what}"


@dataclass(frozen=True)
class Fit:
    """A version whose messages become the columns; `names` are its fields that have another name there."""

    version: Version
    shapes: tuple[Shape, ...]
    names: Mapping[Path, str]


@dataclass(frozen=True)
class Merged:
    """The columns as fields with all names that they ever had; the versions that fit, and those that do not, with what is wrong."""

    shapes: tuple[Shape, ...]
    fits: tuple[Fit, ...]
    unfit: tuple[tuple[Version, str], ...]
    differences: tuple[Difference, ...]


@dataclass(kw_only=True)
class _Slot:
    """A column in the making."""

    name: str
    wraps: tuple[str, ...]  # array and map, from the outside
    leaf: Type  # of a struct only that it is one
    number: int | None = None
    doc: str = ""
    names: list[str] = field(default_factory=list)
    inside: list[_Slot] = field(default_factory=list)

    @property
    def type(self) -> Type:
        type_ = self.leaf
        if self.inside:
            type_ = Struct(tuple(Field(each.name, each.type) for each in self.inside))
        for wrap in reversed(self.wraps):
            type_ = Array(type_) if wrap == "array" else Map(STRING, type_)
        return type_

    def shape(self) -> Shape:
        was = tuple(name for name in self.names if name != self.name)
        return Shape(
            self.name, self.type, self.doc, was=was, number=self.number, inside=tuple(each.shape() for each in self.inside)
        )


def merge(versions: Iterable[tuple[Version, Sequence[Shape]]]) -> Merged:
    """In their order; those of other subjects, which have no number, behind the others and changing nothing."""
    slots: list[_Slot] = []
    taken: list[tuple[Version, Sequence[Shape], dict[Path, _Slot]]] = []
    unfit: list[tuple[Version, str]] = []
    differences: list[Difference] = []
    for version, shapes in sorted(versions, key=lambda each: (each[0].number is None, each[0].number or 0, each[0].id)):
        differing = list(_differences(version, slots, shapes, ()))
        wrong = next((f"it {each.what}" for each in differing if each.kind == "retype"), None)
        if version.number is None and wrong is None:
            wrong = next((f"`{'.'.join(path)}` is no column" for path in _new(slots, shapes, ())), None)
        if version.number is not None:
            differences += differing
        if wrong:
            unfit.append((version, wrong))
            continue
        places: dict[Path, _Slot] = {}
        _take(slots, shapes, (), places, learn=version.number is not None)
        taken.append((version, shapes, places))
    fits = tuple(
        Fit(version, tuple(shapes), {path: slot.name for path, slot in places.items() if slot.name != path[-1]})
        for version, shapes, places in taken
    )
    return Merged(tuple(slot.shape() for slot in slots), fits, tuple(unfit), tuple(differences))


def _pairs(slots: Sequence[_Slot], shapes: Sequence[Shape]) -> Iterator[tuple[_Slot | None, Shape]]:
    """Each field and the column that it is, found by its number, its older names, its name or an older name of the column."""
    called, numbered = _places((slot.name,) for slot in slots), _places((slot.number,) for slot in slots)
    ever = _places(slot.names for slot in slots)
    free = set(range(len(slots)))
    by_name: dict[str, _Slot] = {}
    ways: tuple[Callable[[Shape], Iterable[int]], ...] = (
        lambda shape: numbered.get(shape.number, ()) if shape.number is not None else (),
        lambda shape: (place for name in shape.was if name != shape.name for place in ever.get(name, ())),
        lambda shape: called.get(shape.name, ()),
        lambda shape: ever.get(shape.name, ()),
    )
    for places in ways:
        for shape in shapes:
            place = None if shape.name in by_name else min((each for each in places(shape) if each in free), default=None)
            if place is not None:
                by_name[shape.name] = slots[place]
                free.remove(place)
    return ((by_name.get(shape.name), shape) for shape in shapes)


def _places(keys: Iterable[Iterable[Any]]) -> dict[Any, list[int]]:
    """Where each key is."""
    places_: dict[Any, list[int]] = {}
    for place, each in enumerate(keys):
        for key in each:
            places_.setdefault(key, []).append(place)
    return places_


def _differences(version: Version, slots: Sequence[_Slot], shapes: Sequence[Shape], path: Path) -> Iterator[Difference]:
    for slot, shape in _pairs(slots, shapes):
        if slot is None:
            continue
        here = (*path, shape.name)
        wraps, leaf = _unwrapped(shape.type)
        if slot.wraps != wraps or bool(slot.inside) != bool(shape.inside):
            yield Difference(version, "retype", here, old=slot.type, new=shape.type)
        elif shape.inside:
            yield from _differences(version, slot.inside, shape.inside, here)
        elif slot.leaf != leaf and not widens(slot.leaf, leaf):
            yield Difference(version, "narrow" if widens(leaf, slot.leaf) else "retype", here, old=slot.type, new=shape.type)


def _new(slots: Sequence[_Slot], shapes: Sequence[Shape], path: Path) -> Iterator[Path]:
    for slot, shape in _pairs(slots, shapes):
        if slot is None:
            yield (*path, shape.name)
        else:
            yield from _new(slot.inside, shape.inside, (*path, shape.name))


def _take(slots: list[_Slot], shapes: Sequence[Shape], path: Path, places: dict[Path, _Slot], learn: bool) -> None:
    for slot_, shape in list(_pairs(slots, shapes)):
        wraps, leaf = _unwrapped(shape.type)
        slot = slot_ or _Slot(name=shape.name, wraps=wraps, leaf=leaf)
        if slot_ is None:
            slots.append(slot)
        if learn:
            slot.leaf = leaf if widens(slot.leaf, leaf) else slot.leaf
            slot.name = slot.name if shape.name in slot.names else shape.name
            slot.names += [name for name in (shape.name,) if name not in slot.names]
            slot.number, slot.doc = shape.number, shape.doc or slot.doc
        here = (*path, shape.name)
        places[here] = slot
        _take(slot.inside, shape.inside, here, places, learn)


def _unwrapped(type_: Type) -> tuple[tuple[str, ...], Type]:
    wraps: list[str] = []
    while isinstance(type_, (Array, Map)):
        wraps.append("array" if isinstance(type_, Array) else "map")
        type_ = type_.element if isinstance(type_, Array) else type_.value
    return tuple(wraps), type_ if not isinstance(type_, Struct) else Struct(())
