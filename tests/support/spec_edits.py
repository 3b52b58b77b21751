"""Edits of a spec at the place of a problem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from framework.base.errors import Problem


@dataclass
class Document:
    """The YAML of a file, and the node at the place of a problem, with the nodes around it."""

    nodes: list[Node]
    problem: Problem
    around: list[Node] = field(default_factory=list)  # from the document to the node
    key: ScalarNode | None = None  # of the pair at the place
    source: str = ""
    touched: tuple[str, ...] = ()  # the path of what was edited: keys, and numbers of items

    @classmethod
    def read(cls, text: str, problem: Problem) -> Document:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.BaseLoader) if node is not None]
        document = cls(nodes, problem)
        document.source = text
        if not document.around:
            raise Unclear("nothing is at the place")
        return document

    def copy(self) -> Document:
        return Document.read(self.source, self.problem)

    def __post_init__(self) -> None:
        place = (self.problem.where.line - 1, self.problem.where.column - 1)
        for root in self.nodes:
            if _start(root) <= place < _end(root) or (root is self.nodes[-1] and _start(root) <= place):
                self.around = [root]
                self._descend(root, place)

    def _descend(self, node: Node, place: tuple[int, int]) -> None:
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if _start(key) <= place < _end(key) or _start(value) <= place < _end(value) or _start(value) == place:
                    self.key = key
                    self.around.append(value)
                    if not _start(key) <= place < _end(key):
                        self._descend(value, place)
                    return
        elif isinstance(node, SequenceNode):
            for item in node.value:
                if _start(item) <= place < _end(item):
                    self.key = None
                    self.around.append(item)
                    self._descend(item, place)
                    return

    @property
    def node(self) -> Node:
        return self.around[-1]

    def maps(self) -> Iterator[MappingNode]:
        """The maps around the place, the nearest first."""
        yield from (node for node in reversed(self.around) if isinstance(node, MappingNode))

    def text(self) -> str:
        return yaml.serialize_all(self.nodes, Dumper=yaml.dumper.BaseDumper, width=10**6, allow_unicode=True, explicit_start=True)

    def path(self, node: Node) -> tuple[str, ...]:
        """The keys and the numbers of items that lead to a node."""
        return next((path for root in self.nodes for path in _paths(root, node, (self._name(root),))), ())

    def _name(self, root: Node) -> str:
        return str(self.nodes.index(root))

    def set(self, name: str, value: str) -> None:
        """Write `name: value` where the name is, in the nearest map; otherwise in the map at the place."""
        node = parsed(value)
        for mapping in self.maps():
            for index, (key, _) in enumerate(mapping.value):
                if key.value == name:
                    mapping.value[index] = (key, node)
                    self.touched = self.path(node)
                    return
        self.add(name, value)

    def add(self, name: str, value: str) -> None:
        mapping = self.node if isinstance(self.node, MappingNode) else next(self.maps())
        node = parsed(value)
        mapping.value.append((ScalarNode("tag:yaml.org,2002:str", name), node))
        self.touched = self.path(node)

    def replace(self, node: Node) -> None:
        """Put a node in place of the one at the place."""
        old_node, parent = self.node, self.around[-2] if len(self.around) > 1 else None
        self.touched = self.path(old_node)
        if isinstance(parent, MappingNode):
            parent.value = [(key, node if value is old_node else value) for key, value in parent.value]
        elif isinstance(parent, SequenceNode):
            parent.value = [node if item is old_node else item for item in parent.value]

    def remove(self, name: str = "") -> None:
        """Remove the pair or the item at the place, or the pair of this name in the nearest map that has it."""
        if name:
            for mapping in self.maps():
                if any(key.value == name for key, _ in mapping.value):
                    mapping.value = [(key, value) for key, value in mapping.value if key.value != name]
                    return
            raise Unclear(f"there is no {name}")
        parent = self.around[-2] if len(self.around) > 1 else None
        if isinstance(parent, MappingNode):
            parent.value = [(key, value) for key, value in parent.value if value is not self.node]
        elif isinstance(parent, SequenceNode):
            parent.value = [item for item in parent.value if item is not self.node]
        else:
            raise Unclear("a whole document")
        if (
            isinstance(parent, MappingNode)
            and self.nodes
            and any(parent is root for root in self.nodes)
            and self._is_first(parent)
        ):
            self.nodes = [root for root in self.nodes if root is not parent]

    def _is_first(self, root: MappingNode) -> bool:
        """Whether the first pair of a document, which says what it is, is gone."""
        return self.key is not None and (not root.value or _start(root.value[0][0]) > _start(self.key))

    def rename(self, old: str, new: str) -> None:
        """Write another word in place of the one at the place: a key, a value, or a word of an expression."""
        place = (self.problem.where.line - 1, self.problem.where.column - 1)
        if self.key is not None and _start(self.key) <= place < _end(self.key) and old in self.key.value:
            self.key.value = self.key.value.replace(old, new)
            self.touched = self.path(self.node)
            return
        node = self.node
        if not isinstance(node, ScalarNode):
            for key, _ in node.value if isinstance(node, MappingNode) else []:
                if key.value == old:
                    key.value = new
                    self.touched = (*self.path(node), new)
                    return
            raise Unclear(f"there is no {old}")
        pattern = rf"(?<![\w.]){re.escape(old)}(?!\w)"
        offset = place[1] - _start(node)[1] if place[0] == _start(node)[0] and node.style not in ("|", ">") else 0
        offset -= node.style in ("'", '"')
        match = re.compile(pattern).search(node.value, max(offset, 0)) or re.search(re.escape(old), node.value)
        if match is None:
            raise Unclear(f"there is no {old} in {node.value}")
        node.value = node.value[: match.start()] + new + node.value[match.end() :]
        self.touched = self.path(node)


class Unclear(Exception):
    """The rule does not fit the place."""


def _paths(node: Node, target: Node, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if node is target:
        yield path
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield from _paths(value, target, (*path, str(key.value)))
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.value):
            yield from _paths(item, target, (*path, str(number)))


def parsed(text: str) -> Node:
    node = yaml.compose(text, Loader=yaml.BaseLoader)
    assert node is not None, text
    return node


def _start(node: Node) -> tuple[int, int]:
    return node.start_mark.line, node.start_mark.column


def _end(node: Node) -> tuple[int, int]:
    return node.end_mark.line, node.end_mark.column
