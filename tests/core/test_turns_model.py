"""A sender takes its turn, reads, starts its producer and asks: this order is right in every schedule, others are not."""

from __future__ import annotations

import pytest

from tests.model.turns import COMMITS, SENDS, UNFENCED, is_in_order, topics


def test_no_schedule_of_two_senders_puts_an_older_version_behind_a_newer_one() -> None:
    outcomes = list(topics(SENDS, SENDS, COMMITS))
    assert all(map(is_in_order, outcomes))
    assert [0, 1] in outcomes  # both sent
    assert [1] in outcomes  # one was refused


@pytest.mark.parametrize(
    "steps",
    [
        UNFENCED,
        ("end", "take", "read", "start", "ask", "send"),
        ("read", "take", "end", "start", "ask", "send"),
        ("take", "end", "read", "ask", "start", "send"),
        ("take", "read", "start", "ask", "send"),
        ("take", "end", "read", "start", "send"),
    ],
    ids=["unfenced", "ends before it takes", "reads before it takes", "asks before it starts", "ends nobody", "does not ask"],
)
def test_the_model_finds_the_schedule_that_another_order_gets_wrong(steps: tuple[str, ...]) -> None:
    assert not all(map(is_in_order, topics(steps, steps, COMMITS)))
