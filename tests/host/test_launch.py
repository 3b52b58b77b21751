"""The options of a run from the launchpad."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framework.base.errors import SluiceError
from framework.host.assets.launch import Launch, until
from framework.plan import Pipeline

pytestmark = pytest.mark.slow  # it loads Dagster

PIPELINE = cast(Pipeline, SimpleNamespace(name="trades", topics=(SimpleNamespace(kafka_name="t"),)))
TIME = "2026-01-05T10:00:00Z"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"until": TIME, "until_offsets": {"t/0": 1}}, "there are both `until` and `until_offsets`"),
        ({"until_offsets": {"t/x": 1}}, "`t/x` is no partition that trades reads"),
        ({"until_offsets": {"t/00": 1}}, "`t/00` is no partition that trades reads"),
        ({"until_offsets": {"t": 1}}, "`t` is no partition that trades reads"),
        ({"until_offsets": {"u/0": 1}}, "`u/0` is no partition that trades reads"),
        ({"until_offsets": {"t/0": -1}}, "`t/0: -1` is not an offset"),
        ({"until": "soon"}, "`until: soon` is not a time"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SluiceError) as refused:
        until(PIPELINE, Launch.model_validate(options))
    assert refused.value.message == says and refused.value.hint


def test_a_run_has_an_end_or_none() -> None:
    assert until(PIPELINE, Launch.model_validate({})) is None
    assert until(PIPELINE, Launch.model_validate({"until_offsets": {"t/0": 0, "t/12": 5}})) == {"t/0": 0, "t/12": 5}
    assert until(PIPELINE, Launch.model_validate({"until": TIME})) == datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
