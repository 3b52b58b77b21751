"""Patterns of a JSON Schema, looked for in a text in time that grows with its length and no faster, whatever the pattern.

All places in the pattern are followed at once (Thompson's way), where Python's `re` tries one way after another: `^(a+)+$` on thirty
letters is a billion ways. What cannot be followed so (looking ahead or back, references to groups) is not judged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as codes
    import sre_parse as parser

_MOST_PLACES = 5_000  # of a pattern
_MOST_STEPS = 10_000_000  # places times characters: some seconds
_LONGEST = 10_000  # characters of a pattern

Test = Callable[[str], bool]
_CATEGORIES: dict[Any, Test] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda each: not each.isdecimal(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda each: not each.isspace(),
    codes.CATEGORY_WORD: lambda each: _is_word(each),
    codes.CATEGORY_NOT_WORD: lambda each: not _is_word(each),
}
_STARTS = (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING)
_ENDS = (codes.AT_END, codes.AT_END_STRING)
_EDGES = {codes.AT_BOUNDARY: True, codes.AT_NON_BOUNDARY: False}


class _Other(Exception):
    """A pattern that cannot be followed so."""


@dataclass
class _Place:
    """Where a pattern can be: it goes on to `next`, at once or behind a character that `test` takes, or if `at` holds there."""

    next: list[int] = field(default_factory=list)
    test: Test | None = None
    at: Any = None


def is_matched(pattern: str, text: str) -> bool | None:
    """Whether the pattern is somewhere in the text, as in JSON Schema; None: it is not judged."""
    places = _places(pattern)
    if places is None or len(places) * len(text) > _MOST_STEPS:
        return None
    here: set[int] = set()
    for index in range(len(text) + 1):
        here = _spread(places, here | {len(places) - 1}, text, index)
        if 0 in here:
            return True
        if index < len(text):
            here = {places[at].next[0] for at in here if (test := places[at].test) and test(text[index])}
    return False


def _spread(places: list[_Place], begins: Iterable[int], text: str, index: int) -> set[int]:
    """All that can be reached from there without a character."""
    reached = set(begins)
    waiting = list(reached)
    while waiting:
        place = places[waiting.pop()]
        if place.test is None and (place.at is None or _holds(place.at, text, index)):
            waiting += [each for each in place.next if each not in reached]
            reached.update(place.next)
    return reached


def _holds(at: Any, text: str, index: int) -> bool:
    if at in _EDGES:
        before, behind = (0 <= each < len(text) and _is_word(text[each]) for each in (index - 1, index))
        return (before != behind) is _EDGES[at]
    return index == (0 if at in _STARTS else len(text))


def _is_word(each: str) -> bool:
    return each.isalnum() or each == "_"


@lru_cache(maxsize=1024)
def _places(pattern: str) -> list[_Place] | None:
    """The first is the end, the last the beginning."""
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
    """From the end of a pattern to its beginning: each part is told what follows it, and gives where it begins."""

    def __init__(self) -> None:
        self.places = [_Place()]

    def add(self, place: _Place) -> int:
        if len(self.places) >= _MOST_PLACES:
            raise _Other
        self.places.append(place)
        return len(self.places) - 1

    def sequence(self, tree: Any, behind: int) -> int:
        for code, operand in reversed(list(tree)):
            behind = self.part(code, operand, behind)
        return behind

    def part(self, code: Any, operand: Any, behind: int) -> int:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, inner = operand
            return self.repeated(least, most, inner, behind)
        if code == codes.BRANCH:
            return self.add(_Place([self.sequence(each, behind) for each in operand[1]]))
        if code == codes.SUBPATTERN:
            _, more, fewer, inner = operand
            if more or fewer:
                raise _Other
            return self.sequence(inner, behind)
        if code == codes.AT and (operand in _STARTS or operand in _ENDS or operand in _EDGES):
            return self.add(_Place([behind], at=operand))
        return self.add(_Place([behind], _test(code, operand)))

    def repeated(self, least: int, most: Any, inner: Any, behind: int) -> int:
        if most == codes.MAXREPEAT:
            loop = self.add(_Place([behind]))
            self.places[loop].next.append(self.sequence(inner, loop))
            begin = loop
        else:
            begin = behind
            for _ in range(most - least):
                begin = self.add(_Place([self.sequence(inner, begin), behind]))
        for _ in range(least):
            begin = self.sequence(inner, begin)
        return begin


def _test(code: Any, operand: Any) -> Test:
    """Of one character."""
    if code == codes.ANY:
        return lambda each: each != "\n"
    if code == codes.LITERAL:
        return chr(operand).__eq__
    if code == codes.NOT_LITERAL:
        return chr(operand).__ne__
    if code == codes.IN:
        negated = any(kind == codes.NEGATE for kind, _ in operand)
        tests = tuple(_members(operand))
        return lambda each: any(test(each) for test in tests) is not negated
    raise _Other


def _between(low: str, high: str) -> Test:
    return lambda each: low <= each <= high


def _members(operand: Any) -> Iterator[Test]:
    for kind, value in operand:
        if kind == codes.RANGE:
            yield _between(*map(chr, value))
        elif kind == codes.CATEGORY:
            yield _CATEGORIES[value]
        elif kind != codes.NEGATE:
            yield _test(kind, value)
