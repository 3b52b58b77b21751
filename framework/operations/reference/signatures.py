"""The forms of functions for people: the arguments and the result of each."""

from __future__ import annotations

from framework.sql import functions
from framework.sql.signatures import table


def forms(name: str) -> list[str]:
    """The forms of a function, such as `substring(text, number, number?) string`, or three dots where no signature can state its type."""
    return [signature.text for signature in table().get(name, ())] or [f"{name}(…)"]


def all_forms() -> list[str]:
    names = functions.names() - functions.ALIASES.keys()
    return [form for name in sorted(names) if " " not in name for form in forms(name)]
