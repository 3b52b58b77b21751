"""Searches a text for a pattern of a JSON Schema, in time that grows linearly with the text, whatever the pattern.

All places in the pattern are followed at once (Thompson's method), where Python's `re` tries one way after another: `^(a+)+$` on thirty
letters has a billion ways. A pattern that looks ahead or back, or refers to groups, cannot be followed so and is not judged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import (
        _constants as codes,  # type: ignore[attr-defined]
        _parser as parser,  # type: ignore[attr-defined]
    )
else:
    import sre_constants as codes
    import sre_parse as parser

_MOST_PLACES = 5_000  # in a pattern
_MOST_STEPS = 10_000_000  # places times characters: some seconds
_LONGEST = 10_000  # characters of a pattern

Test = Callable[[str], bool]
_CATEGORIES: dict[Any, Test] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda character: not character.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    codes.CATEGORY_WORD: lambda character: _is_word(character),
    codes.CATEGORY_NOT_WORD: lambda character: not _is_word(character),
}
_STARTS = (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING)
_ENDS = (codes.AT_END, codes.AT_END_STRING)
_EDGES = {codes.AT_BOUNDARY: True, codes.AT_NON_BOUNDARY: False}


class _Other(Exception):
    """A pattern whose places cannot all be followed at once."""


@dataclass
class _Place:
    """A place in a pattern. It leads to `next`: at once, behind a character that passes `test`, or where `assertion` holds."""

    next: list[int] = field(default_factory=list)
    test: Test | None = None
    assertion: Any = None


def is_matched(pattern: str, text: str) -> bool | None:
    """Whether the pattern matches somewhere in the text, as in JSON Schema; None if it is not judged."""
    places = _places(pattern)
    if places is None or len(places) * len(text) > _MOST_STEPS:
        return None
    current_places: set[int] = set()
    for index in range(len(text) + 1):
        current_places = _spread(places, current_places | {len(places) - 1}, text, index)
        if 0 in current_places:
            return True
        if index < len(text):
            current_places = {
                places[position].next[0] for position in current_places if (test := places[position].test) and test(text[index])
            }
    return False


def _spread(places: list[_Place], starts: Iterable[int], text: str, index: int) -> set[int]:
    """Returns the places that can be reached from `starts` without a character."""
    reachable = set(starts)
    waiting = list(reachable)
    while waiting:
        place = places[waiting.pop()]
        if place.test is None and (place.assertion is None or _holds(place.assertion, text, index)):
            waiting += [position for position in place.next if position not in reachable]
            reachable.update(place.next)
    return reachable


def _holds(assertion: Any, text: str, index: int) -> bool:
    if assertion in _EDGES:
        before, behind = (0 <= position < len(text) and _is_word(text[position]) for position in (index - 1, index))
        return (before != behind) is _EDGES[assertion]
    return index == (0 if assertion in _STARTS else len(text))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=1024)
def _places(pattern: str) -> list[_Place] | None:
    """Returns the places of a pattern, the first its end, the last its beginning; None if the pattern is not judged."""
    try:
        if len(pattern) > _LONGEST:
            return None
        tree = parser.parse(pattern)
        if tree.state.flags & ~re.UNICODE:
            return None
        builder = _Builder()
        builder.add(_Place([builder.sequence(tree, 0)]))
        return builder.places
    except (_Other, re.error, RecursionError, OverflowError, ValueError):
        return None


class _Builder:
    """Builds the places from the end of a pattern to its beginning: each part gets the place that follows it, and returns its own."""

    def __init__(self) -> None:
        self.places = [_Place()]

    def add(self, place: _Place) -> int:
        if len(self.places) >= _MOST_PLACES:
            raise _Other
        self.places.append(place)
        return len(self.places) - 1

    def sequence(self, tree: Any, next_place: int) -> int:
        for code, operand in reversed(list(tree)):
            next_place = self.part(code, operand, next_place)
        return next_place

    def part(self, code: Any, operand: Any, next_place: int) -> int:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            minimum, maximum, inner = operand
            return self.repeated(minimum, maximum, inner, next_place)
        if code == codes.BRANCH:
            return self.add(_Place([self.sequence(branch, next_place) for branch in operand[1]]))
        if code == codes.SUBPATTERN:
            _, added_flags, removed_flags, inner = operand
            if added_flags or removed_flags:
                raise _Other
            return self.sequence(inner, next_place)
        if code == codes.AT and (operand in _STARTS or operand in _ENDS or operand in _EDGES):
            return self.add(_Place([next_place], assertion=operand))
        return self.add(_Place([next_place], _test(code, operand)))

    def repeated(self, minimum: int, maximum: Any, inner: Any, next_place: int) -> int:
        if maximum == codes.MAXREPEAT:
            loop = self.add(_Place([next_place]))
            self.places[loop].next.append(self.sequence(inner, loop))
            begin = loop
        else:
            begin = next_place
            for _ in range(maximum - minimum):
                begin = self.add(_Place([self.sequence(inner, begin), next_place]))
        for _ in range(minimum):
            begin = self.sequence(inner, begin)
        return begin


def _test(code: Any, operand: Any) -> Test:
    """Returns the test for one character."""
    if code == codes.ANY:
        return lambda character: character != "\n"
    if code == codes.LITERAL:
        return chr(operand).__eq__
    if code == codes.NOT_LITERAL:
        return chr(operand).__ne__
    if code == codes.IN:
        negated = any(kind == codes.NEGATE for kind, _ in operand)
        tests = tuple(_members(operand))
        return lambda character: any(test(character) for test in tests) is not negated
    raise _Other


def _between(low: str, high: str) -> Test:
    return lambda character: low <= character <= high


def _members(operand: Any) -> Iterator[Test]:
    for kind, value in operand:
        if kind == codes.RANGE:
            yield _between(*map(chr, value))
        elif kind == codes.CATEGORY:
            yield _CATEGORIES[value]
        elif kind != codes.NEGATE:
            yield _test(kind, value)
