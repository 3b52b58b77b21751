"""Expressions and their values for the row `ROW`, as Spark prints them, for the page on expressions; a test compares with Spark.

`operators.txt` and `functions.txt` have one per line, such as `abs(-2) => 2`, under titles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.base import type_text

ROW = {
    "symbol": ("string", "'ZVZZT'"),
    "quantity": ("int", "10"),
    "price": ("double", "2.5"),
    "at": ("timestamp", "timestamp'2026-01-31 10:15:30'"),
    "day": ("date", "date'2026-01-31'"),
    "tags": ("array<string>", "array('new', 'big', 'new')"),
    "place": ("struct<building:string,floor:int>", "named_struct('building', 'A', 'floor', 3)"),
    "codes": ("map<string,int>", "map('x', 1, 'y', 2)"),
}
"""Each column's type and value."""
COLUMNS = {name: type_text.parse(type) for name, (type, _) in ROW.items()}

OPERATORS, FUNCTIONS = (Path(__file__).with_name(f"{name}.txt") for name in ("operators", "functions"))


def samples(file: Path) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The expressions under each title, each with its value."""
    parts = [part.splitlines() for part in file.read_text(encoding="utf-8").strip().split("\n\n")]
    return {title: [(line.partition(" => ")[0], line.partition(" => ")[2]) for line in lines] for title, *lines in parts}


REFUSED = (
    "now()",
    "rand()",
    "sum(quantity)",
    "row_number()",
    "lag(price)",
    "current_user()",
    "explode(tags)",
    "(select 1)",
    "price -- per share",
)
