"""How an option is declared: once, on a dataclass field. Help, defaults, hints and JSON Schema follow from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from framework import components
from framework.errors import Problem, Where
from framework.spec.node import NOWHERE, Node
from framework.spec.scalars import Name

_REQUIRED: Any = object()


@dataclass(frozen=True, kw_only=True)
class Option:
    """What a field says about itself besides its type."""

    doc: str
    example: str = ""
    at_least: float | str | None = None
    at_most: float | str | None = None
    later: tuple[str, ...] = ()
    aka: tuple[str, ...] = ()
    in_this_version: bool = True


@dataclass(frozen=True)
class Bound:
    """Options read from a map. Knows where each of them was written."""

    exactly_one: ClassVar[bool] = False  # of its options, one must be given and no second
    short: ClassVar[str | None] = None  # the option that a scalar in place of the map stands for
    told_by: ClassVar[str | None] = None  # the only key, with a map, by which these are told from other maps in the same place
    partly: ClassVar[bool] = False  # what could be read of it is looked at although something in it could not

    node: Node = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    # Options that could not be read, or not all of what they say.
    gaps: frozenset[str] = field(default=frozenset(), compare=False, repr=False, kw_only=True)

    def place(self, *path: str | int) -> Where:
        return self.node.place(*path)

    def key_place(self, *path: str | int) -> Where:
        return self.node.key_place(*path)

    def problems(self) -> Iterable[Problem]:
        """What no single option shows, such as two options that exclude each other."""
        return ()


@dataclass(frozen=True)
class Kind(Bound):
    """A document. Its name stands behind the document's first key, which is its kind."""

    name: Name


@dataclass(frozen=True)
class WrittenStep:
    """One item of `steps`: its name, and its options as the step's own file declares them."""

    name: Name
    value: Any
    node: Node = field(default=NOWHERE, compare=False, repr=False)

    def place(self, *path: str | int) -> Where:
        """Where the step's value, or a part of it, stands."""
        return self.node.place(self.name, *path)

    def key_place(self, *path: str | int) -> Where:
        """Where a key in the step's value stands; without a path, the step's name."""
        return self.node.key_place(self.name, *path)


@dataclass(frozen=True)
class Files:
    """Marks a type whose values are named by the files of a package; `later` are names that have no file yet."""

    package: str
    noun: str
    later: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """Marks a text that is the name of a file in a package of components: one that has this attribute, or one of `besides`.
    What the attribute says as `does` completes the option's help."""

    package: str
    having: str
    besides: tuple[str, ...] = ()

    def components(self) -> dict[str, Any]:
        modules = components.load_all(self.package)
        return {name: getattr(module, self.having) for name, module in modules.items() if hasattr(module, self.having)}

    def values(self) -> tuple[str, ...]:
        return (*self.components(), *self.besides)

    def help(self, doc: str) -> str:
        does = {name: each.does for name, each in self.components().items() if hasattr(each, "does")}
        return f"{doc.removesuffix('.')}: {'; '.join(f'`{name}` {each}' for name, each in does.items())}." if does else doc


@dataclass(frozen=True)
class OptionsOf:
    """Marks a field that holds the map's other options: those of the component that the option `by` names, whose file declares them
    as `Options`."""

    by: str

    def declared(self, named: Named) -> dict[str, type[Bound]]:
        return {name: module.Options for name, module in components.load_all(named.package).items() if name in named.values()}


def option(
    doc: str,
    *,
    default: Any = _REQUIRED,
    example: str = "",
    at_least: float | str | None = None,
    at_most: float | str | None = None,
    later: Iterable[str] = (),
    aka: Iterable[str] = (),
) -> Any:
    """An option. `later` are values of the language that this version lacks, `aka` names that people try instead."""
    said = Option(doc=doc, example=example, at_least=at_least, at_most=at_most, later=tuple(later), aka=tuple(aka))
    metadata = {"option": said}
    if default is _REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def later(doc: str) -> Any:
    """An option that the language has and this version does not."""
    return dataclasses.field(default=None, metadata={"option": Option(doc=doc, in_this_version=False)})
