"""Where the parts of a text of several lines stand in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator

Piece = tuple[int, int, int]
"""A part of the text that the file has as it is: where it begins in the text, how many lines below the text's place, and its column."""

_BLOCKS = ("|", ">")


def pieces(written: str, text: str, style: str | None, column: int) -> tuple[Piece, ...]:
    """The pieces of a text, which the file has as `written` from `column` on; none where they differ by more than the ends of lines."""
    lines = [line.rstrip("\r") for line in written.split("\n")]
    parts = _of_block(lines, text) if style in _BLOCKS else _of_quotes(lines, style, column)
    placed: list[Piece] = []
    at = 0
    for below, indent, part in parts:
        if not part:
            continue
        while not text.startswith(part, at):
            if text[at : at + 1] not in (" ", "\n"):
                return ()
            at += 1
        placed.append((at, below, indent))
        at += len(part)
    return tuple(placed) if not text[at:].strip() else ()


def _of_block(lines: list[str], text: str) -> Iterator[tuple[int, int, str]]:
    first = next((line for line in lines[1:] if line.strip()), "")
    indent = _spaces(first) - _spaces(text.lstrip("\n"))
    for below, line in enumerate(lines[1:], 1):
        yield below, indent + 1, line[indent:]


def _of_quotes(lines: list[str], style: str | None, column: int) -> Iterator[tuple[int, int, str]]:
    named = re.match(r"([&!]\S+[ \t]+)*", lines[0])
    begins = (named.end() if named else 0) + (1 if style else 0)
    lines[-1] = lines[-1][: len(lines[-1]) - (1 if style else 0)]
    for below, line in enumerate(lines):
        first = begins if below == 0 else _spaces(line)
        part = line[first:] if below == len(lines) - 1 else line[first:].rstrip()
        yield from _of_line(below, first + (column if below == 0 else 1), part, style)


def _of_line(below: int, column: int, part: str, style: str | None) -> Iterator[tuple[int, int, str]]:
    """Between single quotes two of them are one."""
    quoted = part.split("''") if style == "'" else [part]
    for at, each in enumerate(quoted):
        yield below, column, each if at == 0 else f"'{each}"
        column += len(each) + (1 if at == 0 else 2)


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
