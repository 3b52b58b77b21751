"""The nodes of one part of a file, from the events of YAML's parser; the size of the result is limited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from framework.base.errors import Problem, Where
from framework.language.node import YamlNode
from framework.language.places import Piece, pieces
from framework.language.syntax import SECRET_NAME, short, span_from, unbalanced

MAX_DEPTH = 64
MAX_ALIASED = 10_000
MAX_REPEATED = 1 << 20  # characters that `*` repeats
MAX_VALUES = 20_000  # of one file, including what `*` repeats
MAX_ITEMS = 1_000  # of one list
MAX_KEYS = 2_000  # of one map
MAX_KEY = 255  # characters
MAX_REPAIRS = 20  # texts without quotes of one part
_PARSER: Any = yaml.CLoader if yaml.__with_libyaml__ else yaml.Loader


class Stop(Exception):
    """Raised to skip the rest of a document."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class Unquoted(Exception):
    """Raised for the text from `start` to `end`, which was meant as one scalar."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class Tree:
    """Builds the nodes of one part of a file from the parser's events."""

    def __init__(self, text: str, file: str, first_line: int, max_values: int, repaired: dict[int, str]) -> None:
        self.text = text
        self.file = file
        self.first_line = first_line
        self.max_values = max_values
        self.repaired = repaired
        self.problems: list[Problem] = []
        self.whole: list[YamlNode] = []
        self.anchors: dict[str, tuple[YamlNode, int, int, int] | None] = {}
        self.count = 0
        self.length = 0  # of all text
        self.aliased = 0
        self.repeated = 0
        self.hidden = False  # inside the value of a key that may hold a secret
        self.opened: list[int] = []  # where each [ and { that is still open stands
        self.last_scalar: tuple[int, int] | None = None  # the latest scalar inside them
        self.open_ended = 0  # texts whose end the search did not find
        self.events: Iterator[Any] = iter(_PARSER(text).get_event, None)

    def documents(self) -> list[YamlNode]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors = {}
                node, _ = self.build(next(self.events), 1, False)
                next(self.events)  # the document's end, which proves that it is whole
                if not node.is_null:
                    self.whole.append(node)
        return self.whole

    def where(self, event: Any) -> Where:
        mark = event.start_mark
        return Where(self.file, self.first_line + mark.line + 1, mark.column + 1)

    def build(self, event: Any, depth: int, in_flow: bool) -> tuple[YamlNode, int]:
        """The node of an event, and the node's height."""
        where = self.where(event)
        if depth > MAX_DEPTH:
            raise Stop(_too_deep(where))
        if isinstance(event, yaml.AliasEvent):
            return self.alias(str(event.anchor), where, depth)
        count_before, length_before = self.count, self.length
        self.count += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if self.count > self.max_values:
            raise Stop(too_many(where, f"{MAX_VALUES:,} values"))
        if isinstance(event, yaml.ScalarEvent):
            result = self.scalar(event, where, in_flow), 1
        else:
            result = self.collection(event, where, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = result[0], result[1], self.count - count_before, self.length - length_before
        if event.tag is not None:
            self.problems.append(Problem(
                where, "yaml-tag", f"YAML tags{'' if self.hidden else ' such as ' + _tag(event.tag)} are not used here",
                "remove it; text that starts with ! needs quotes",
            ))  # fmt: skip
            return YamlNode("scalar", where, unknown=True), 1
        return result

    def scalar(self, event: Any, where: Where, in_flow: bool) -> YamlNode:
        start = event.start_mark.index
        if start in self.repaired:
            return YamlNode("scalar", where, self.repaired[start], quoted=True)
        self.length += len(event.value)
        plain = event.style in (None, "")
        if in_flow:
            self.last_scalar = start, event.end_mark.index
            if plain and self.open_ended < MAX_REPAIRS and unbalanced(event.value):
                end = span_from(self.text, start)
                if end is not None and end > event.end_mark.index:
                    raise Unquoted(start, end)
                self.open_ended += end is None
        quotes = 0 if plain else 1
        is_unchanged = (
            event.start_mark.line == event.end_mark.line and event.end_mark.index - start == len(event.value) + 2 * quotes
        )
        text_at = quotes if is_unchanged else None
        return YamlNode("scalar", where, event.value, quoted=not plain, text_at=text_at, pieces=self.pieces(event, is_unchanged))

    def pieces(self, event: Any, is_unchanged: bool) -> tuple[Piece, ...]:
        """The places of the parts of a text; none if it is on one line and unchanged."""
        if is_unchanged:
            return ()
        written = self.text[event.start_mark.index : event.end_mark.index]
        return pieces(written, event.value, event.style, event.start_mark.column + 1)

    def collection(self, event: Any, where: Where, depth: int) -> tuple[YamlNode, int]:
        bracket = event.end_mark.index - 1
        # A pair in [] is a map without brackets of its own.
        has_brackets = event.flow_style and event.start_mark.index <= bracket and self.text[bracket] in "[{"
        if has_brackets:
            self.opened.append(bracket)
        builder = self.sequence if isinstance(event, yaml.SequenceStartEvent) else self.mapping
        result = builder(event, where, depth)
        if has_brackets:
            self.opened.pop()
        return result

    def sequence(self, event: Any, where: Where, depth: int) -> tuple[YamlNode, int]:
        items: list[YamlNode] = []
        height = 0
        for item in self.events:
            if isinstance(item, yaml.SequenceEndEvent):
                break
            node, item_height = self.build(item, depth + 1, bool(event.flow_style))
            if len(items) == MAX_ITEMS:
                raise Stop(_too_many_parts(where, f"list has over {MAX_ITEMS:,} items"))
            items.append(node)
            height = max(height, item_height)
        return YamlNode("list", where, items=tuple(items)), height + 1

    def mapping(self, event: Any, where: Where, depth: int) -> tuple[YamlNode, int]:
        entries: dict[str, tuple[YamlNode, YamlNode]] = {}
        height = 0
        whole = True
        for item in self.events:
            if isinstance(item, yaml.MappingEndEvent):
                break
            key, key_height = self.build(item, depth + 1, bool(event.flow_style))
            outer = self.hidden
            self.hidden = outer or SECRET_NAME.search(key.text[:MAX_KEY]) is not None
            value, value_height = self.build(next(self.events), depth + 1, bool(event.flow_style))
            self.hidden = outer
            height = max(height, value_height, key_height)
            problem = _key_problem(key, entries)
            if depth == 1 and key.text == next(iter(entries), None):
                # The kind appears a second time: a new document without a `---` before it.
                hint = "write `---` on a line above it"
                message = f"a new {short(key.text)} begins here, in the middle of another"
                self.problems.append(Problem(key.where, "no-separator", message, hint))
                self.whole.append(YamlNode("map", where, entries=tuple(entries.values()), whole=whole))
                where, entries, whole = key.where, {key.text: (key, value)}, True
            elif problem:
                self.problems.append(problem)
                whole = whole and key.text in entries
            elif len(entries) == MAX_KEYS:
                raise Stop(_too_many_parts(where, f"map has over {MAX_KEYS:,} keys"))
            else:
                entries[key.text] = key, value
        return YamlNode("map", where, entries=tuple(entries.values()), whole=whole), height + 1

    def alias(self, anchor: str, where: Where, depth: int) -> tuple[YamlNode, int]:
        if anchor not in self.anchors:
            message = f"`*{short(anchor)}` repeats the value marked `&{short(anchor)}`, and there is none above"
            message = "there is no anchor of this name above" if self.hidden else message
            self.problems.append(Problem(where, "unknown-anchor", message, "text that starts with * needs quotes"))
            return YamlNode("scalar", where, unknown=True), 1
        anchor_data = self.anchors[anchor]
        if anchor_data is None:
            raise Stop(
                Problem(where, "yaml-cycle", f"`*{short(anchor)}` is inside the value that it repeats", "write the value out")
            )
        node, height, size, length = anchor_data
        self.aliased += size
        self.repeated += length
        self.count += size
        self.length += length
        if self.count > self.max_values:
            raise Stop(too_many(where, f"{MAX_VALUES:,} values"))
        if self.aliased > MAX_ALIASED or self.repeated > MAX_REPEATED:
            limit = f"{MAX_ALIASED:,} values" if self.aliased > MAX_ALIASED else "1 MiB of text"
            raise Stop(Problem(
                where, "alias-limit", f"the `*` references of this document repeat more than {limit}",
                "write the values out, or use fewer",
            ))  # fmt: skip
        if depth + height - 1 > MAX_DEPTH:
            raise Stop(_too_deep(where))
        return node, height


def _tag(tag: str) -> str:
    return f"`{tag.replace('tag:yaml.org,2002:', '!!')[:40]}`"


def too_many(where: Where, limit: str) -> Problem:
    return Problem(where, "too-many-values", f"this file has over {limit}", "split it")


def _too_many_parts(where: Where, excess: str) -> Problem:
    return Problem(where, "too-many-values", f"this {excess}", "use fewer")


def _too_deep(where: Where) -> Problem:
    return Problem(where, "too-deep", f"this is nested over {MAX_DEPTH} levels deep", "use fewer levels of [] and {}")


def _key_problem(key: YamlNode, entries: dict[str, tuple[YamlNode, YamlNode]]) -> Problem | None:
    if key.unknown:
        return Problem(key.where, "bad-key", "a key must be plain text", "write the key out")
    if key.kind != "scalar" or key.is_null:
        description = {"list": "a list", "map": "a map", "scalar": "nothing"}[key.kind]
        return Problem(
            key.where, "bad-key", f"a key must be text, not {description}", "write `key: value`; text with : or {} needs quotes"
        )
    if len(key.text) > MAX_KEY or not key.text.isprintable():
        description = f"at most {MAX_KEY} characters" if len(key.text) > MAX_KEY else "only visible characters"
        return Problem(key.where, "bad-key", f"a key may have {description}", "write a short name on one line")
    if key.text == "<<" and not key.quoted:
        return Problem(key.where, "merge-key", "`<<` does not merge maps here", "write the keys out")
    if "${" in key.text:
        return Problem(key.where, "bad-reference", "a reference cannot be a key", "use `${…}` in values only")
    if key.text in entries:
        first_line = entries[key.text][0].where.line
        return Problem(
            key.where, "duplicate-key", f"`{key.text}` was already given on line {first_line}", "remove one of the two"
        )
    return None
