"""A value of a file: its text and its place, not yet converted to a type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from framework.base.errors import Where
from framework.language.places import Piece

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})\Z")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?\Z")


# Not frozen, although nothing changes a node: a frozen one takes four times as long to create, and a large folder has 100,000.
@dataclass(eq=False, slots=True)
class YamlNode:
    """A scalar, a list or a map. A scalar keeps its exact text, and its option decides how the text is read."""

    kind: Literal["scalar", "list", "map"]
    where: Where
    text: str = ""
    _: KW_ONLY
    quoted: bool = False
    items: tuple[YamlNode, ...] = field(default=(), repr=False)
    entries: tuple[tuple[YamlNode, YamlNode], ...] = field(default=(), repr=False)
    whole: bool = True  # False: some keys of this map were dropped and reported
    secret: str | None = None  # the name in ${secret:NAME}
    expanded: bool = False  # the text came from ${var:…}
    unknown: bool = False  # a reference in it could not be expanded and was reported
    text_at: int | None = 0  # columns from its place to its text; None: the file's text differs, by escapes or references
    pieces: tuple[Piece, ...] = ()  # of a text of several lines

    def get(self, key: str) -> YamlNode | None:
        return next((value for name, value in self.entries if name.text == key), None)

    def place(self, *path: str | int) -> Where:
        """The place of the value at this path. A missing part of the path has the place of its parent."""
        return self._walk(path)[1].where

    def key_place(self, *path: str | int) -> Where:
        """The place of the key of the value at this path."""
        return self._walk(path)[0].where

    def inside(self, text: str, offset: int) -> Where:
        """The place of an offset of a text of this scalar, if the file has the text unchanged; else the place of the scalar."""
        where = self.where
        if self.pieces and text in self.text:
            index = self.text.index(text) + offset
            start, line_count, column = next((piece for piece in reversed(self.pieces) if piece[0] <= index), self.pieces[0])
            return Where(where.file, where.line + line_count, column + max(0, index - start))
        if self.text_at is None or "\n" in text:
            return where
        return Where(where.file, where.line, where.column + self.text_at + offset)

    def _walk(self, path: tuple[str | int, ...]) -> tuple[YamlNode, YamlNode]:
        key = value = self
        for part in path:
            child = next(value._children(part), None)
            if child is None:
                break
            key, value = child
        return key, value

    def _children(self, part: str | int) -> Iterator[tuple[YamlNode, YamlNode]]:
        if isinstance(part, str):
            return ((key, value) for key, value in self.entries if key.text == part)
        return iter([(self.items[part], self.items[part])] if -len(self.items) <= part < len(self.items) else [])

    def scalars(self) -> Iterator[YamlNode]:
        """All scalars of the node."""
        if self.kind == "scalar":
            yield self
        for part in (*self.items, *(part for entry in self.entries for part in entry)):
            yield from part.scalars()

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and not self.quoted and not self.expanded and self.text in _NULLS

    @property
    def is_whole(self) -> bool:
        return self.kind == "scalar" and (self.expanded or not self.quoted) and _WHOLE.match(self.text) is not None

    @property
    def is_number(self) -> bool:
        return self.kind == "scalar" and (self.expanded or not self.quoted) and _NUMBER.match(self.text) is not None

    @property
    def is_bool(self) -> bool:
        return self.kind == "scalar" and (self.expanded or not self.quoted) and self.text in ("true", "false")


NOWHERE = YamlNode("map", Where("", 0, 0))
