"""Parameters that are too many for each change: `make test-long` runs the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, settings

EXAMPLES = int(os.environ.get("EXAMPLES", "3"))
"""Examples of each search in tables of Spark; for more: `EXAMPLES=50 pytest tests/features/test_accumulate.py -m long`."""


def few(all_: Iterable[Any], *quick: Any) -> list[Any]:
    """All values as parameters; only the quick ones run for each change."""
    values = list(all_)
    assert set(quick) <= set(values)
    return [
        value if value in quick else pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.long)
        for value in values
    ]


def searched(examples: int) -> settings:
    """Settings of examples that take seconds each: for each change the same few, and a failing one is not made smaller."""
    phases = (Phase.explicit, Phase.generate)
    return settings(max_examples=examples, deadline=None, derandomize=examples < EXAMPLES, database=None, phases=phases)
