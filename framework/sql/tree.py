"""The parts of an expression's tree, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from framework import types


@dataclass(frozen=True)
class Node:
    offset: int

    def parts(self) -> tuple[Node, ...]:
        """The nodes right below."""
        return ()


@dataclass(frozen=True)
class Literal(Node):
    """`kind`: number, string, boolean, null, date, timestamp, timestamp_ntz or interval; `value` is what the `text` says."""

    kind: str
    text: str
    value: str


@dataclass(frozen=True)
class Column(Node):
    name: str


@dataclass(frozen=True)
class Member(Node):
    """`of.name`"""

    of: Node
    name: str

    def parts(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True)
class Item(Node):
    """`of[at]`"""

    of: Node
    at: Node

    def parts(self) -> tuple[Node, ...]:
        return (self.of, self.at)


@dataclass(frozen=True)
class Operation(Node):
    """An operator on its operands: one for `-`, `+`, `~`, `not`; any number for `and`, `or`; else two."""

    operator: str
    operands: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True)
class Call(Node):
    name: str
    arguments: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        return self.arguments


@dataclass(frozen=True)
class Cast(Node):
    operand: Node
    type: types.Type
    tries: bool

    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Case(Node):
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None

    def parts(self) -> tuple[Node, ...]:
        return (*(part for branch in self.branches for part in branch), *((self.otherwise,) if self.otherwise else ()))


@dataclass(frozen=True)
class In(Node):
    operand: Node
    options: tuple[Node, ...]

    def parts(self) -> tuple[Node, ...]:
        return (self.operand, *self.options)


@dataclass(frozen=True)
class Is(Node):
    """`what`: null, true or false."""

    operand: Node
    what: str

    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """Every node once with its level, though `x between …` and `case x when …` hold one node several times."""
    waiting = [(node, 1)]
    seen: set[int] = set()
    while waiting:
        node, level = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node, level
            waiting += [(part, level + 1) for part in node.parts()]
