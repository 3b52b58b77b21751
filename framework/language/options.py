"""Declare an option once, on a dataclass field. Help, defaults, hints and JSON Schema follow from the declaration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from framework.base.errors import Problem, Where
from framework.language import components
from framework.language.node import NOWHERE, YamlNode
from framework.language.scalars import Name

_REQUIRED: Any = object()


@dataclass(frozen=True, kw_only=True)
class Option:
    """The declaration of an option, apart from its type."""

    doc: str
    example: str = ""
    at_least: float | str | None = None
    at_most: float | str | None = None
    later: tuple[str, ...] = ()
    aka: tuple[str, ...] = ()
    in_this_version: bool = True
    instead: str = ""  # what to do instead, for an option that this version lacks


@dataclass(frozen=True)
class OptionGroup:
    """Options read from a map, with the place of each."""

    exactly_one: ClassVar[bool] = False  # exactly one of the options must be given
    besides: ClassVar[tuple[str, ...]] = ()  # options that may be given with that one
    short: ClassVar[str | None] = None  # the option that a scalar in place of the map gives
    only_key: ClassVar[str | None] = None  # a map with this one key, whose value is a map, is read as this class
    in_example: ClassVar[tuple[str, ...]] = ()  # options that its example has although they are not required
    partly: ClassVar[bool] = False  # the good options are still checked if others are bad
    known_by: ClassVar[str | None] = None  # of several possible classes, a map with the option of this name is read as this one
    # The words for the class and its options in digests of plans (`framework.plan.digest`). A digest has an option that is not named
    # here only if it is given.
    in_digest: ClassVar[str] = ""

    node: YamlNode = field(default=NOWHERE, compare=False, repr=False, kw_only=True)
    # Options that could not be read, or only in part.
    gaps: frozenset[str] = field(default=frozenset(), compare=False, repr=False, kw_only=True)

    def place(self, *path: str | int) -> Where:
        return self.node.place(*path)

    def key_place(self, *path: str | int) -> Where:
        return self.node.key_place(*path)

    def problems(self) -> Iterable[Problem]:
        """Problems of several options, such as two that exclude each other."""
        return ()

    def servers(self) -> Iterable[str | None]:
        """Addresses of servers that these options name, `host:port` or URLs; None for an option that is not given."""
        return ()


@dataclass(frozen=True)
class Document(OptionGroup):
    """A document. Its first key is its kind, and the value of that key is its name."""

    name: Name


@dataclass(frozen=True)
class StepDocument:
    """One item of `steps`: the step's name, and its options as the step's file declares them."""

    name: Name
    value: Any
    node: YamlNode = field(default=NOWHERE, compare=False, repr=False)

    def place(self, *path: str | int) -> Where:
        """The place of the step's value, or of a part of it."""
        return self.node.place(self.name, *path)

    def key_place(self, *path: str | int) -> Where:
        """The place of a key in the step's value; without a path, of the step's name."""
        return self.node.key_place(self.name, *path)


@dataclass(frozen=True)
class StepName:
    """Marks a type whose values are the names of the `components` of one kind, such as `steps`. `noun` is the word for one of them, such
    as `step`; `later` are names that have no file yet."""

    components: str
    noun: str
    later: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComponentOptions:
    """Marks a map with the options of one of the `components`, such as `followers`. The file of each declares them as `Options`,
    `known_by` the file's name. `but` are components that are left out, as are those without options."""

    components: str
    but: tuple[str, ...] = ()

    def declared(self) -> tuple[type[OptionGroup], ...]:
        files = components.current().named(self.components).load_all()
        return tuple(file.Options for name, file in files.items() if name not in self.but and hasattr(file, "Options"))


@dataclass(frozen=True)
class ComponentName:
    """Marks a text that is the name of one of the `components`, such as `formats`, whose file has the attribute `having`; or one of
    `besides`. The `does` of each attribute completes the option's help."""

    components: str
    having: str
    besides: tuple[str, ...] = ()

    def declared(self) -> dict[str, Any]:
        modules = components.current().named(self.components).load_all()
        return {name: getattr(module, self.having) for name, module in modules.items() if hasattr(module, self.having)}

    def values(self) -> tuple[str, ...]:
        return (*self.declared(), *self.besides)

    def help(self, doc: str) -> str:
        does = {name: attribute.does for name, attribute in self.declared().items() if hasattr(attribute, "does")}
        return f"{doc.removesuffix('.')}: {'; '.join(f'`{name}` {text}' for name, text in does.items())}." if does else doc


@dataclass(frozen=True)
class RestOfOptions:
    """Marks a field that holds the map's other options: those of the component that the option `by` names, whose file declares them
    as `Options`."""

    by: str

    def declared(self, named: ComponentName) -> dict[str, type[OptionGroup]]:
        files = named.values()
        modules = components.current().named(named.components).load_all()
        return {name: module.Options for name, module in modules.items() if name in files}


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
    """A field with an option. `later` are values that this version lacks, `aka` are names that people try instead."""
    declaration = Option(doc=doc, example=example, at_least=at_least, at_most=at_most, later=tuple(later), aka=tuple(aka))
    metadata = {"option": declaration}
    if default is _REQUIRED:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def later(doc: str, instead: str = "remove it for now") -> Any:
    """A field with an option of the language that this version lacks."""
    return dataclasses.field(default=None, metadata={"option": Option(doc=doc, in_this_version=False, instead=instead)})
