"""Where the parts of a text of several lines stand in its file."""

from __future__ import annotations

from collections.abc import Iterator

Piece = tuple[int, int, int]
"""A part of the text that the file has as it is: where it begins in the text, how many lines below the text's place, and its column."""

_BLOCKS = ("|", ">")


def pieces(written: str, text: str, style: str | None, column: int) -> tuple[Piece, ...]:
    """The pieces of a text, which the file has as `written` from `column` on; none where they differ by more than the ends of lines."""
    lines = [line.rstrip("\r") for line in written.split("\n")]
    parts = _of_block(lines, text) if style in _BLOCKS else _of_quotes(lines, style, column)
    found: list[Piece] = []
    at = 0
    for below, indent, part in parts:
        if not part:
            continue
        while not text.startswith(part, at):
            if text[at : at + 1] not in (" ", "\n"):
                return ()
            at += 1
        found.append((at, below, indent))
        at += len(part)
    return tuple(found) if not text[at:].strip() else ()


def _of_block(lines: list[str], text: str) -> Iterator[tuple[int, int, str]]:
    first = next((line for line in lines[1:] if line.strip()), "")
    indent = _spaces(first) - _spaces(text.lstrip("\n"))
    for below, line in enumerate(lines[1:], 1):
        yield below, indent + 1, line[indent:]


def _of_quotes(lines: list[str], style: str | None, column: int) -> Iterator[tuple[int, int, str]]:
    quotes = 1 if style else 0
    lines[-1] = lines[-1][: len(lines[-1]) - quotes]
    yield 0, column + quotes, lines[0][quotes:].rstrip()
    for below, line in enumerate(lines[1:], 1):
        yield below, _spaces(line) + 1, line.strip()


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
