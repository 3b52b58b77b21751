"""The forms of functions for people: what each takes, and what it gives."""

from __future__ import annotations

from framework.sql import functions
from framework.sql.grammar import parse
from framework.sql.signatures import table
from framework.sql.tree import Call, Cast


def forms(name: str) -> list[str]:
    """The forms of a function, such as `substring(text, number, number?) string`; one whose type no signature can say has three dots."""
    return [signature.text for signature in table().get(name, ())] or [f"{name}(…)"]


def called(sample: str) -> str:
    """The function of a sample call."""
    call = parse(sample)
    assert isinstance(call, Call | Cast), f"{sample} calls no function"
    return sample.partition("(")[0]


def others(shown: set[str]) -> list[str]:
    """The forms of all functions that have no example."""
    return [form for name in sorted(functions.names() - shown) if " " not in name for form in forms(name)]
