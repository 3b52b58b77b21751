"""Hints for a value that a function over rows does not take: the measure to write instead."""

from __future__ import annotations

from framework.base.types import BOOLEAN, DOUBLE, STRING, Map, is_numeric
from framework.sql.expressions import Checked
from framework.sql.suggested import cast, code, written


def suggest_for_argument(function: str, value: Checked, wants: str) -> str:
    """Returns the hint for an argument that a function over rows does not take. `wants` says in words what it takes."""
    sql = written(value)
    if wants == "a condition":
        test = f"{sql} <> 0" if is_numeric(value.type) else f"{sql} is not null"
        return f"write {code(f'count_if({test})')}"
    if wants == "a number" and value.type == STRING:
        return f"write {code(f'{function}({cast(value, DOUBLE)})')}"
    if wants == "a number" and value.type == BOOLEAN:
        return f"write {code(f'count_if({sql})')} for how many are true"
    if function == "approx_count_distinct":
        return f"write {code(f'count(distinct {sql})')}"
    if isinstance(value.type, Map):
        item = f"{function}({sql}['key'])"
        return f"take one of its values: {code(item)}"
    return f"write it over {wants}"
