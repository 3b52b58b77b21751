"""docs/types.md as tests read it: the column type of each type of a schema."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "types.md"


def rows(heading: str) -> dict[str, str]:
    """The column types of a section's table by the first cell of each row."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| `")]
    return {row_cells[0].strip("`"): row_cells[1].strip("`") for row_cells in cells}
