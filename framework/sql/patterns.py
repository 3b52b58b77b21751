"""Constant patterns that cannot fail on a row: for LIKE, for regular expressions and for dates and times.

*Limit* Regular expressions are a part of Java's: valid everywhere, with neither a deep stack nor exponential time on a long text. A group
that varies is not repeated, and the ways in which the parts can vary are counted. Several repetitions of the same characters
(`.*,.*,.*`) still take a power of the text's length.
"""

from __future__ import annotations

import re

from framework.base.types import STRING
from framework.sql.faults import ExpressionError, refused
from framework.sql.pieces import Piece

MOST_REPEATS = 1000
MOST_WAYS = 1 << 20
_WAYS = 4  # the most ways counted for a repetition with an end; one without an end counts for two: people write many of them

_ATOM = re.compile(
    r"""\\[dDwWsSbB]|\\[^A-Za-z0-9]           # classes, boundaries, escaped marks
    |\[\^?(?:\\[dDwWsS]|\\[^A-Za-z0-9]|[^\]\[\\&^])+\]   # a set
    |[^\\\[\](){}?*+|]                        # a character, also . ^ $
    """,
    re.VERBOSE,
)
_ANY_CASE = "(?i)"
_REPEAT = re.compile(r"(?:[?*+]|\{([0-9]{1,4})(?:,([0-9]{0,4}))?\})\??")


def text(piece: Piece, noun: str) -> str:
    """Returns the value of a literal text, and refuses any other value."""
    if piece.type != STRING or piece.constant is None:
        raise refused(
            piece.offset,
            "sql-type",
            f"{noun} is a literal text here, so that it is checked before any row",
            "write it in single quotes",
        )
    return piece.constant


def like(piece: Piece) -> None:
    """Refuses a LIKE pattern in which a backslash stands before anything but %, _ or itself: Spark throws for it."""
    pattern = text(piece, "a LIKE pattern")
    if re.sub(r"\\[%_\\]", "", pattern).count("\\"):
        raise refused(
            piece.offset,
            "sql-type",
            "in a LIKE pattern a backslash stands before %, _ or another backslash",
            r"write '100\\%' for the text 100%",
        )


def regular(piece: Piece) -> int:
    """Returns the number of groups of a regular expression, which must be a literal."""
    return groups(text(piece, "a regular expression"), piece.offset)


def groups(pattern: str, offset: int) -> int:
    reader = _Regular(pattern, offset)
    reader.position = len(_ANY_CASE) if pattern.startswith(_ANY_CASE) else 0
    reader.alternatives(0)
    if reader.position < len(reader.pattern):
        raise reader.fault("a parenthesis closes nothing")
    return reader.groups


class _Regular:
    def __init__(self, pattern: str, offset: int) -> None:
        self.pattern = pattern
        self.offset = offset
        self.position = 0
        self.groups = 0

    def fault(self, problem: str) -> ExpressionError:
        return refused(
            self.offset,
            "sql-type",
            f"regular expression, character {self.position + 1}: {problem}",
            r"use characters, sets, \d \w \s, ( | ), and ? * + {n,m} after one of them",
        )

    def alternatives(self, depth: int) -> int:
        """Returns in how many ways the part read so far can vary in length or choice; 1 if it does not. To repeat a part that varies can
        take Java forever, or all its stack: Java tries all ways if none matches."""
        if depth > 10:
            raise self.fault("groups nest deeper than 10")
        ways = self.sequence(depth)
        while self.pattern.startswith("|", self.position):
            self.position += 1
            ways += self.sequence(depth)
        return ways

    def sequence(self, depth: int) -> int:
        ways = 1
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            inner, group = self.atom(depth)
            if self.position < len(self.pattern) and self.pattern[self.position] in "?*+{":
                is_optional, repeat_ways = self.repeat()
                if group and inner > 1 and not is_optional:
                    raise self.fault("a repeated group holds a choice or a repetition")
                inner = inner + 1 if is_optional else repeat_ways
            ways *= inner
            if ways > MOST_WAYS:
                raise self.fault(f"all that varies up to here can be tried in more than {MOST_WAYS:,} ways")
        return ways

    def atom(self, depth: int) -> tuple[int, bool]:
        if self.pattern[self.position] == "(":
            self.position += 1
            if self.pattern.startswith("?:", self.position):
                self.position += 2
            elif self.pattern.startswith("?", self.position):
                raise self.fault("of (?…) only (?:…) is allowed, and (?i) in front of all")
            else:
                self.groups += 1
            ways = self.alternatives(depth + 1)
            if not self.pattern.startswith(")", self.position):
                raise self.fault("a parenthesis is not closed")
            self.position += 1
            return ways, True
        match = _ATOM.match(self.pattern, self.position)
        if match is None:
            raise self.fault("this is not allowed, or needs a backslash")
        if match.group().startswith("["):
            self.ranges(match.group().removeprefix("[").removeprefix("^")[:-1])
        self.position = match.end()
        return 1, False

    def ranges(self, content: str) -> None:
        """Checks the ranges of a set: `-` makes a range of two plain characters, or stands at an end, or is escaped."""
        atoms = re.findall(r"\\.|.", content, re.DOTALL)
        for index in [index for index, atom in enumerate(atoms) if atom == "-" and 0 < index < len(atoms) - 1]:
            low, high = atoms[index - 1], atoms[index + 1]
            if len(low) > 1 or len(high) > 1 or "-" in (low, high) or low > high:
                raise self.fault("a range in a set goes from a lower to a higher character")

    def repeat(self) -> tuple[bool, int]:
        """Returns whether the repetition is at most once, and in how many ways it varies."""
        match = _REPEAT.match(self.pattern, self.position)
        if match is None:
            raise self.fault("a repetition is ?, *, +, {n}, {n,} or {n,m}")
        low, high = int(match[1] or 0), int(match[2] or match[1] or 0)
        if max(low, high) > MOST_REPEATS or low > high:
            raise self.fault(f"a repetition goes from a lower to a higher number, up to {MOST_REPEATS}")
        self.position = match.end()
        if self.position < len(self.pattern) and self.pattern[self.position] in "?*+{":
            raise self.fault("a repetition is itself repeated")
        is_endless = match.group()[0] in "*+" or match[2] == ""
        return match.group().startswith("?"), 2 if is_endless else min(_WAYS, high - low + 1)


def replacement(piece: Piece, groups: int) -> None:
    """Checks that `$1` names an existing group, and that a character follows a backslash."""
    for match in re.finditer(r"\\(.?)|\$(.?)", text(piece, "a replacement"), re.DOTALL):
        if match.group().startswith("\\") and not match[1]:
            raise refused(piece.offset, "sql-type", "the replacement ends with a backslash", r"write \\\\ for one")
        if match.group().startswith("$") and not (match[2].isascii() and match[2].isdigit() and int(match[2]) <= groups):
            raise refused(
                piece.offset,
                "sql-type",
                f"{match.group()} names no group: the pattern has {groups}",
                r"write \\$ for the sign itself",
            )


_RUN = re.compile(r"yyyy|yy|M{1,4}|d{1,2}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|S{1,6}|E{1,4}|a|XXX|X")
_PARTS = re.compile(r"'[^']+'|([A-Za-z])\1*|[-/ .:,_]")


def dates(piece: Piece, parsing: bool) -> str:
    """Returns a pattern of dates and times, which must be a literal that works for every row."""
    pattern = text(piece, "a pattern of dates")
    hint = "for example yyyy-MM-dd HH:mm:ss, dd/MM/yyyy, yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
    parts = [match.group() for match in _PARTS.finditer(pattern)]
    runs = [part for part in parts if part.isalpha()]
    names = [run[0] for run in runs]
    if "".join(parts) != pattern or not runs or not all(map(_RUN.fullmatch, runs)) or len(pattern) > 50:
        raise refused(piece.offset, "sql-type", f"'{pattern}' is not a pattern of dates that is allowed here", hint)
    if parsing and (len(set(names)) < len(names) or "E" in names):
        raise refused(piece.offset, "sql-type", f"'{pattern}' reads a part twice, or a weekday", hint)
    return pattern
