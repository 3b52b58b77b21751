"""Nodes of an expression's tree, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from framework.base import types


@dataclass(frozen=True)
class Node:
    offset: int


@dataclass(frozen=True)
class Literal(Node):
    """`kind`: number, string, boolean, null, date, timestamp, timestamp_ntz, or an interval's `months` or `time`; `value` is the value of
    the `text`."""

    kind: str
    text: str
    value: str


@dataclass(frozen=True)
class Column(Node):
    name: str


@dataclass(frozen=True)
class Member(Node):
    """A field of a struct, or a column with its table: `of.name`."""

    of: Node
    name: str


@dataclass(frozen=True)
class Item(Node):
    """An item of an array or a map: `of[at]`."""

    of: Node
    at: Node


@dataclass(frozen=True)
class Operation(Node):
    """An operator on its operands: one for `-`, `+`, `~`, `not`; any number for `and`, `or`; else two."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Lambda(Node):
    """`x -> x + 1`, `(k, v) -> v`: an argument of a function."""

    parameters: tuple[str, ...]
    body: Node


@dataclass(frozen=True)
class Cast(Node):
    operand: Node
    type: types.Type
    tries: bool


@dataclass(frozen=True)
class Case(Node):
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True)
class In(Node):
    operand: Node
    options: tuple[Node, ...]


@dataclass(frozen=True)
class Is(Node):
    """A test by IS; `what` is null, true or false."""

    operand: Node
    what: str


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """Yields every node once with its level; `x between …` and `case x when …` refer to one node several times."""
    waiting = [(node, 1)]
    visited: set[int] = set()
    while waiting:
        node, level = waiting.pop()
        if id(node) not in visited:
            visited.add(id(node))
            yield node, level
            waiting += [(part, level + 1) for part in children(node)]


def children(node: Node) -> Iterator[Node]:
    """Returns the nodes right under a node."""
    return _nodes(vars(node).values())


def _nodes(values: Iterable[object]) -> Iterator[Node]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from _nodes(value)
