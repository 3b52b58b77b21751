"""What is too wide for each change: `make test-long` does the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, settings

EXAMPLES = int(os.environ.get("EXAMPLES", "3"))
"""Of each search in tables of Spark; for more of them: `EXAMPLES=50 pytest tests/test_accumulate.py -m long`."""


def few(all_: Iterable[Any], *quick: Any) -> list[Any]:
    """All of them as parameters, of which only the chosen ones are for each change."""
    values = list(all_)
    assert set(quick) <= set(values)
    return [
        value if value in quick else pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.long)
        for value in values
    ]


def searched(examples: int) -> settings:
    """How examples are drawn where each takes seconds: for each change the same few, and what fails is not made smaller."""
    phases = (Phase.explicit, Phase.generate)
    return settings(max_examples=examples, deadline=None, derandomize=examples < EXAMPLES, database=None, phases=phases)
