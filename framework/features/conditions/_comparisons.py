"""Comparisons with a number, such as `> 10`."""

from __future__ import annotations

import operator
import re
from typing import Annotated

from framework.language.scalars import Scalar

_PATTERN = r"^\s*(<=|>=|<|>|=)\s*(\d[\d_]*)\s*$(?!\n)"
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
Comparison = Annotated[
    str,
    Scalar(noun="a comparison", code="bad-comparison", example="> 10", pattern=_PATTERN,
           rule="`<`, `<=`, `=`, `>=` or `>` and a whole number, such as `> 10`"),
]  # fmt: skip


def read(text: str) -> tuple[str, int]:
    """The operator and the number."""
    match = re.match(_PATTERN, text)
    assert match is not None, "the option's pattern was checked"
    return match[1], int(match[2].replace("_", ""))


def holds(comparison: tuple[str, int], count: float) -> bool:
    return bool(_OPERATORS[comparison[0]](count, comparison[1]))
