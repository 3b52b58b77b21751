"""Whether two parts of plans are the same but for their places in the specs: a line that is added above moves all below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass


def same(first: object, second: object) -> bool:
    """Whether two values differ in nothing but places."""
    if type(first) is not type(second):
        return False
    if is_dataclass(first):
        names = [field.name for field in fields(first) if field.compare and field.name != "where"]
        return all(same(getattr(first, name), getattr(second, name)) for name in names)
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    return first == second
