"""Where the parts of a text of several lines stand in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator

Piece = tuple[int, int, int]
"""A part of the text that the file has unchanged: its index in the text, its number of lines below the text's place, and its
column."""

_BLOCKS = ("|", ">")


def pieces(written: str, text: str, style: str | None, column: int) -> tuple[Piece, ...]:
    """The pieces of a text, which the file has as `written` from `column` on; none if the two differ by more than ends of
    lines."""
    lines = [line.rstrip("\r") for line in written.split("\n")]
    parts = _of_block(lines, text) if style in _BLOCKS else _of_quotes(lines, style, column)
    text_pieces: list[Piece] = []
    index = 0
    for line_count, indent, part in parts:
        if not part:
            continue
        while not text.startswith(part, index):
            if text[index : index + 1] not in (" ", "\n"):
                return ()
            index += 1
        text_pieces.append((index, line_count, indent))
        index += len(part)
    return tuple(text_pieces) if not text[index:].strip() else ()


def _of_block(lines: list[str], text: str) -> Iterator[tuple[int, int, str]]:
    first_line = next((line for line in lines[1:] if line.strip()), "")
    indent = _spaces(first_line) - _spaces(text.lstrip("\n"))
    for line_count, line in enumerate(lines[1:], 1):
        yield line_count, indent + 1, line[indent:]


def _of_quotes(lines: list[str], style: str | None, column: int) -> Iterator[tuple[int, int, str]]:
    properties = re.match(r"([&!]\S+[ \t]+)*", lines[0])
    first_start = (properties.end() if properties else 0) + (1 if style else 0)
    lines[-1] = lines[-1][: len(lines[-1]) - (1 if style else 0)]
    for line_count, line in enumerate(lines):
        start = first_start if line_count == 0 else _spaces(line)
        part = line[start:] if line_count == len(lines) - 1 else line[start:].rstrip()
        yield from _of_line(line_count, start + (column if line_count == 0 else 1), part, style)


def _of_line(line_count: int, column: int, part: str, style: str | None) -> Iterator[tuple[int, int, str]]:
    """The pieces of one line. Between single quotes, two quotes stand for one."""
    sections = part.split("''") if style == "'" else [part]
    for index, section in enumerate(sections):
        yield line_count, column, section if index == 0 else f"'{section}"
        column += len(section) + (1 if index == 0 else 2)


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
