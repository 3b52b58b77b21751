"""The tree of a select over tables. Its expressions are trees of `framework.sql.tree`, with functions over many rows among them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any

from framework.sql.tree import Lambda, Node


@dataclass(frozen=True)
class Order(Node):
    """A value by which rows are sorted, as in `value desc nulls last`; `words` are the words behind the value."""

    value: Node
    words: str


@dataclass(frozen=True)
class Edge(Node):
    """One end of a frame: `3 preceding`, `unbounded following`, `current row`; `words` are the words behind the value."""

    value: Node | None
    words: str


@dataclass(frozen=True)
class WindowFrame(Node):
    unit: str  # rows or range
    start: Edge
    end: Edge


@dataclass(frozen=True)
class Aggregate(Node):
    """A function over the rows of a group. `count(*)` has no arguments."""

    name: str
    arguments: tuple[Node, ...]
    distinct: bool
    where: Node | None


@dataclass(frozen=True)
class Ranked(Node):
    """A function that only a window has, such as `lag`."""

    name: str
    arguments: tuple[Node, ...]
    ignores_nulls: bool


@dataclass(frozen=True)
class Over(Node):
    """The function `of` over the rows of a window."""

    of: Aggregate | Ranked
    partition: tuple[Node, ...]
    order: tuple[Order, ...]
    frame: WindowFrame | None


@dataclass(frozen=True)
class SelectItem:
    """A column of a select. A star has no value; `of` is the table in front of it, `left_out` are names behind EXCEPT."""

    value: Node | None
    name: str | None
    text: str
    _: KW_ONLY
    offset: int
    of: str | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A table, a common table expression, or a select in parentheses, with the name that its columns have in front."""

    offset: int
    of: str | Query
    alias: str


@dataclass(frozen=True)
class Join:
    offset: int
    kind: str  # inner, left, right, full, cross, left semi, left anti
    _: KW_ONLY
    left: Source | Join
    right: Source
    on: Node | None
    using: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Select:
    offset: int
    items: tuple[SelectItem, ...]
    source: Source | Join
    where: Node | None
    groups: tuple[Node, ...]
    having: Node | None
    distinct: bool


@dataclass(frozen=True)
class Both:
    """Two selects with the same columns; `word` is union all, union, except or intersect."""

    offset: int
    word: str
    left: Select | Both | Query
    right: Select | Both | Query


@dataclass(frozen=True)
class Query:
    offset: int
    names: tuple[tuple[str, int, Query], ...]
    body: Select | Both | Query


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Returns the node with its parts changed."""

    def changed(value: Any) -> Any:
        if isinstance(value, Node):
            return change(value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    return replace(node, **{field.name: changed(getattr(node, field.name)) for field in fields(node)})


def shape(value: Any) -> Hashable:
    """Returns a value that is equal for equal expressions, wherever they stand and in whatever case names are written."""
    if isinstance(value, Node):
        parts = (getattr(value, field.name) for field in fields(value) if field.name != "offset")
        name = getattr(value, "name", None)
        return (
            type(value).__name__,
            *(shape(part.lower() if part is name and isinstance(part, str) else part) for part in parts),
        )
    return tuple(map(shape, value)) if isinstance(value, tuple) else value


def bound(node: Node, names: frozenset[str]) -> frozenset[str]:
    """Returns the names that are no columns inside a node: those outside of it, and a lambda's parameters."""
    return names | {parameter.lower() for parameter in node.parameters} if isinstance(node, Lambda) else names
