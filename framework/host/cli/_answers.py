"""Rows as text: exact for other programs, aligned for people."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from typing import TYPE_CHECKING, Any

from framework.base.errors import visible

if TYPE_CHECKING:
    from framework.core.query.one_select import AnswerColumn

# The first characters of a formula in Excel, LibreOffice or Google Sheets.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_SPECIAL = frozenset(',"\r\n')


def csv(names: Sequence[str], rows: Iterable[Sequence[Any]], harmless: bool = False) -> Iterator[str]:
    """Rows as CSV. Null is empty, an empty text is two quotes. `harmless` puts a quote in front of each text that a spreadsheet would
    compute; other programs then read another text."""
    guard = _guarded if harmless else _text
    yield ",".join(_field(guard(name)) for name in names)
    for row in rows:
        yield ",".join("" if value is None else _field(guard(value)) for value in row)


def json(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as a JSON list, one object on each line."""
    line = "["
    for row in rows:
        yield line if line == "[" else f"{line},"
        line = _json(dict(zip(names, row, strict=True)))
    if line == "[":
        yield "[]"
    else:
        yield line
        yield "]"


def aligned(columns: Sequence[AnswerColumn], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as text in columns, numbers to the right."""
    from rich.cells import cell_len

    lines = [[column.name for column in columns], *_cells(rows)]
    widths = [max(map(cell_len, texts)) for texts in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        padded = (
            (" " * (width - cell_len(cell))).join(("", cell) if column.is_number else (cell, ""))
            for column, width, cell in zip(columns, widths, line, strict=True)
        )
        yield "  ".join(padded).rstrip()


def show(columns: Sequence[AnswerColumn], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; if it is too wide for the terminal, a block of lines for each row."""
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    cells = _cells(rows)
    widths = (max(map(cell_len, texts)) for texts in zip([column.name for column in columns], *cells, strict=True))
    if sum(widths) + 3 * len(columns) + 1 <= console.width:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            table.add_column(Text(column.name), justify="right" if column.is_number else "left", no_wrap=True)
        for row, line in zip(rows, cells, strict=True):
            table.add_row(*(Text(cell, style="dim" if value is None else "") for value, cell in zip(row, line, strict=True)))
        console.print(table)
        return
    widest = max(cell_len(column.name) for column in columns)
    for number, (row, line) in enumerate(zip(rows, cells, strict=True), 1):
        console.print(Text(f"row {number:,}", style="bold"))
        for column, value, cell in zip(columns, row, line, strict=True):
            padding = " " * (2 + widest - cell_len(column.name))
            printed_line = Text.assemble((f"  {column.name}{padding}", "cyan"), (cell, "dim" if value is None else ""))
            console.print(printed_line, soft_wrap=True)


def _cells(rows: Iterable[Sequence[Any]]) -> list[list[str]]:
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: Any) -> str:
    """A value as text that prints on one line."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="backslashreplace")
    return visible(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return _json(value) if isinstance(value, (list, dict, bool)) else str(value)


def _guarded(value: Any) -> str:
    text = _text(value)
    return f"'{text}" if isinstance(value, str) and text.lstrip(" ").startswith(_FORMULA) else text


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if not text or _SPECIAL.intersection(text) else text


def _json(value: Any) -> str:
    return dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value as JSON; types that JSON does not have become text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _text(key): _plain(item) for key, item in value.items()}
    return value
