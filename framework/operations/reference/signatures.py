"""The forms of functions for people: what each takes, and what it gives."""

from __future__ import annotations

from framework.sql import functions
from framework.sql.signatures import table


def forms(name: str) -> list[str]:
    """The forms of a function, such as `substring(text, number, number?) string`; one whose type no signature can say has three dots."""
    return [signature.text for signature in table().get(name, ())] or [f"{name}(…)"]


def all_forms() -> list[str]:
    names = functions.names() - functions.ALIASES.keys()
    return [form for name in sorted(names) if " " not in name for form in forms(name)]
