"""Searches of the protocol's model: the right protocol holds in every schedule, and each mistake in it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import pytest

from framework.core.rules.protocol import KILL_POINTS
from tests.model.search import (
    Schedule,
    changed,
    in_turns,
    left,
    maintained,
    mistaken,
    overtaken,
    play,
    rolled_back,
    scattered,
    search,
    stopped,
    taken_back,
    unanswered,
    woken,
)
from tests.model.steps import Broken
from tests.model.world import HAPPENINGS, Wrong
from tests.support.selection import few

SMALL = 4_000
LARGE = 60_000


IN_REST = {Broken.UNPINNED, Broken.EXPIRE_UNPINNED}  # done wrong where a catalog merges commits alone
SEARCHED_LONG = {Broken.NO_ROLL_FORWARD, Broken.EXPIRE_UNPINNED}
CATALOGS = pytest.mark.parametrize("merges", [False, True], ids=["compares all", "merges"])


def some() -> Iterator[Schedule]:
    return scattered(7, 8_000, without="r")


def many() -> Iterator[Schedule]:
    return scattered(7, 30_000, without="r")


# For each mistake: the schedules to search, the events that must happen in them, and the effect. "times the row" means doubled.
FINDS: dict[Broken, tuple[Callable[[], Iterator[Schedule]], set[str], str]] = {
    Broken.ANY_MAIN: (some, set(), "times the row"),
    Broken.ONTO_ANYTHING: (some, set(), "times the bad row"),
    Broken.POSITION_AFTERWARDS: (some, set(), "times the row"),
    Broken.SWEEP_PUBLISHED: (mistaken, {"a3"}, "lost: the bad row"),
    Broken.NO_ROLL_FORWARD: (stopped, {"a!"}, "lost: the bad row"),
    Broken.LATE_ACCEPTANCE: (some, {"rollback"}, "times the row"),
    Broken.MAIN_ALONE: (many, {"rollback", "foreign", "expire"}, "lost: the row"),
    Broken.ACCEPT_BLINDLY: (some, {"rollback"}, "times the row"),
    Broken.FORGET_FIRST: (some, {"rollback", "restore"}, "lost: the bad row"),
    Broken.FORGET_ONCE: (some, {"rollback"}, "times the bad row"),
    Broken.FORGET_BY_OFFSET: (some, {"rollback"}, "times the bad row"),
    Broken.FORGET_ANY_TABLE: (some, {"rollback", "drop"}, "lost: the bad row"),
    Broken.FORGET_REPLAYED: (many, {"rollback", "drop"}, "lost: the bad row"),
    Broken.NO_NUMBER: (some, {"rollback"}, "lost: the bad row"),
    Broken.LOOK_FIRST: (some, set(), "times the row"),
    Broken.UNFENCED: (mistaken, set(), "lost: the bad row"),
    Broken.FENCED_AFTERWARDS: (mistaken, set(), "lost: the bad row"),
    Broken.FENCED_BY_MAIN: (taken_back, set(), "lost: the bad row"),
    Broken.FENCE_ON_MAIN: (rolled_back, set(), "lost: the row"),
    Broken.FENCE_UNASKED: (mistaken, {"refuse"}, "lost: the bad row"),
    Broken.WITHDRAWN_UNFENCED: (unanswered, set(), "lost: the bad row"),
    Broken.ASKED_BEFORE_FENCE: (in_turns, set(), "lost: the bad row"),
    Broken.STAGE_ANYWHERE: (many, {"drop-both"}, "lost: the bad row"),
    Broken.DROP_LEFTOVERS: (some, {"drop"}, "lost: the bad row"),
    Broken.EMPTY_BLINDLY: (some, {"drop"}, "lost: the bad row"),
    Broken.EMPTY_FOR_OLD: (many, {"drop"}, "lost: the bad row"),
    Broken.EMPTY_REPLAYED: (some, {"drop"}, "lost: the bad row"),
    Broken.LOST_UNSEEN: (some, {"partition", "retain"}, "lost: the row"),
    Broken.OLDER_POSITION: (some, {"rollback"}, "lost: the row"),
    Broken.SETTLE_BLINDLY: (some, {"rollback"}, "lost: the row"),
    Broken.SETTLE_LATE: (some, set(), "times the row"),
    Broken.UNPINNED: (some, set(), "times the row"),
    Broken.EXPIRE_UNPINNED: (many, {"rollback"}, "main is gone"),
    Broken.EXPIRE_UNJUDGED: (maintained, {"rollback", "foreign"}, "lost: the row"),
    Broken.CLIENT_ALONE: (left, set(), "a dead attempt's branch is left"),
    Broken.AGAIN_COUNTED: (overtaken, set(), "a batch gives up"),
}


@pytest.mark.slow
@CATALOGS
def test_a_small_search(merges: bool) -> None:
    result = search(scattered(1, SMALL), merges=merges)
    assert result.wrong is None
    assert result.reached == set(KILL_POINTS)
    assert result.happened >= set(HAPPENINGS)


@pytest.mark.long
@CATALOGS
def test_a_hundred_thousand_schedules(merges: bool) -> None:
    result = search(
        chain(
            overtaken(),
            mistaken(),
            woken(),
            changed(),
            stopped(),
            left(),
            unanswered(),
            in_turns(),
            taken_back(),
            maintained(),
            scattered(2, LARGE),
        ),
        merges=merges,
    )
    assert result.wrong is None
    assert result.schedules >= 100_000


@pytest.mark.slow
@pytest.mark.parametrize("broken", few(Broken, *(set(Broken) - SEARCHED_LONG)), ids=lambda broken: broken.name.lower())
def test_what_is_broken_is_found(broken: Broken) -> None:
    schedules, needed, message = FINDS[broken]
    merges = broken in IN_REST
    result = search((schedule for schedule in schedules() if needed.issubset(schedule)), broken, merges)
    assert result.wrong is not None, f"{result.schedules} schedules, and none finds this: {broken.value}"
    shortest, problem = result.wrong
    assert message in problem, shortest
    play(shortest, merges=merges)  # it is not the schedule that is wrong


def test_a_foreign_commit_on_a_table_that_was_rolled_back() -> None:
    play(("rollback", "foreign"))
    play(("expire", "grow", "a*", "rollback", "foreign"))
    play(("grow", "a*", "rollback", "expire", "foreign"))


# Main's parent is expired, and main is younger than the position: this looks as if somebody else had committed twice and
# nothing had been rolled back.
@pytest.mark.xfail(raises=Wrong, strict=True, reason="what tells a rollback from expiry is gone with main's parent")
def test_a_rollback_and_a_foreign_commit_of_which_all_between_is_expired() -> None:
    play(("rollback", "foreign", "expire"), beyond_limit=True)
