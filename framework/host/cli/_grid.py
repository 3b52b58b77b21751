"""Tables on the terminal: aligned columns that fit; plain text without a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.base.amounts import span

_WIDE = 200  # characters of a line without a terminal
_BETWEEN = 2
_NARROWEST = 12  # characters that a folded column keeps


@dataclass(frozen=True)
class GridColumn:
    """A column. If not all fit, those of the highest rank are left out first, those of rank 0 never; then one that `folds` is folded."""

    name: str
    rank: int = 0
    right: bool = False
    folds: bool = False


def console() -> Console:
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    return Console(width=width, highlight=False, markup=False, emoji=False)


def grid(columns: Sequence[GridColumn], rows: Iterable[Sequence[Text | str]], width: int) -> Table:
    cells = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = [max([cell_len(column.name), *(_width(row[index]) for row in cells)]) for index, column in enumerate(columns)]
    indices = list(range(len(columns)))
    while (
        _wide(widths, indices) > width
        and (candidate := max(indices, key=lambda index: (columns[index].rank, index)))
        and columns[candidate].rank
    ):
        indices.remove(candidate)
    too_wide = max(0, _wide(widths, indices) - width)
    for index in (index for index in indices if columns[index].folds):
        narrower = max(min(widths[index], _NARROWEST), widths[index] - too_wide)
        too_wide -= widths[index] - narrower
        widths[index] = narrower
    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0), header_style="bold")
    for index in indices:
        justify: Literal["left", "right"] = "right" if columns[index].right else "left"
        table.add_column(columns[index].name, justify=justify, overflow="fold", width=widths[index])
    for row in cells:
        table.add_row(*(row[index] for index in indices))
    return table


def _wide(widths: Sequence[int], indices: Sequence[int]) -> int:
    return sum(widths[index] + _BETWEEN for index in indices) - _BETWEEN


def _width(cell: Text) -> int:
    return max((cell_len(line) for line in cell.plain.splitlines()), default=0)


def ago(seconds: float | None) -> str:
    return "–" if seconds is None else f"{span(seconds)} ago"


def one_line(text: str, width: int) -> str:
    """The printable part of a text, on one line."""
    printable = "".join(character if character.isprintable() else "�" for character in text[: width + 1])
    return printable if len(text) <= width else f"{printable[: width - 1]}…"
