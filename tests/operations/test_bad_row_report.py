"""Bad rows of one kind: the common part of their reasons."""

from __future__ import annotations

import pyarrow as pa
import pytest

from framework.operations.observe.bad_row_report import _without_values

STEP = "`x: …` cannot be computed for this row"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("field `price`: wanted int, found 5", "field `price`: wanted int"),
        ("field `items[3].price`: wanted int, found 5", "field `items[].price`: wanted int"),
        (f"{STEP}: division by zero in a / b (a = 10, b = 0)", f"{STEP}: division by zero in a / b"),
        (f"{STEP}: division by zero in f(a) / (b = c) (b = 1)", f"{STEP}: division by zero in f(a) / (b = c)"),
        (f"{STEP}: 'abc' is not an integer in cast(s AS int) (s = 'abc')", f"{STEP}: is not an integer in cast(s AS int)"),
        (f"{STEP}: 10 does not fit decimal(2,1) in cast(a AS decimal(2,1)) (a = 10)",
         f"{STEP}: does not fit decimal(2,1) in cast(a AS decimal(2,1))"),
        (f"{STEP}: integer overflow in 1 + 2147483647", f"{STEP}: integer overflow in 1 + 2147483647"),
        (STEP, STEP),
        (None, None),
    ],
)  # fmt: skip
def test_a_reason_without_the_values_that_were_found(message: str | None, kind: str | None) -> None:
    assert _without_values(pa.array([message], pa.string())).to_pylist() == [kind]
