"""What is too wide for each change: `make test-long` does the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(all_: Iterable[Any], *chosen: Any) -> list[Any]:
    """All of them as parameters, of which only the chosen ones are for each change."""
    values = list(all_)
    assert set(chosen) <= set(values)
    return [
        value if value in chosen else pytest.param(*(value if isinstance(value, tuple) else [value]), marks=pytest.mark.long)
        for value in values
    ]
