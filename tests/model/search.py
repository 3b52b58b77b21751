"""Schedules: which are tried, what becomes of each, and the shortest of those that go wrong."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, product

from tests.model.steps import Broken
from tests.model.world import HAPPENINGS, MANY, World, Wrong, arrive, calm, check, grow, swept, written_late

# "a5": actor a takes 5 steps; "a*": it goes on to its end; "a!": it dies; "a?": it dies, and its JVM does one more thing, "late".
# All else is a happening.
Schedule = tuple[str, ...]
_ACTORS = "abcxymr"
_WEIGHTS = {
    **{f"{actor}{count}": often for actor, often in zip(_ACTORS, (9, 8, 3, 3, 2, 4, 2), strict=True) for count in (1, 2, 3, 5, 8, 13)},
    **{f"{actor}*": 4 for actor in _ACTORS},
    **{f"{actor}!": 5 for actor in "abc"}, "a?": 4, "b?": 4, "late": 6, "x!": 2, "y!": 2, "m!": 2, "r!": 2,
    "grow": 10, "partition": 4, "recreate": 3, "expire": 8, "rollback": 12, "restore": 3, "foreign": 8, "foreign-bad": 5,
    "drop": 3, "drop-both": 2, "retain": 3, "lose": 10, "refuse": 6, "delay": 6, "arrive": 6, "day": 4,
}  # fmt: skip
_ALONE = tuple(each for each in HAPPENINGS if each not in ("partition", "late", "arrive"))
_STEPS = range(1, 30)  # more than one batch takes where nothing disturbs it


@dataclass
class Found:
    """The findings of a search."""

    schedules: int = 0  # distinct, by what took effect
    reached: set[str] = field(default_factory=set)
    happened: set[str] = field(default_factory=set)
    wrong: tuple[Schedule, str] | None = None


def play(
    schedule: Schedule, broken: Broken | None = None, beyond_limit: bool = False, merges: bool = False
) -> tuple[World, Schedule]:
    """Runs a schedule, then all that is calm; what took effect of it. Raises `Wrong`."""
    world = World(broken, beyond_limit, merges)
    world.actors["a"].go(MANY)
    effective = []
    for event in schedule:
        if _does(world, event):
            effective.append(event)
    # Who is still under way wakes up once all the others are done.
    calm(world)
    for actor in world.actors.values():
        if actor.steps is not None:
            actor.go(MANY)
    while written_late(world) or arrive(world):
        pass
    grow(world)
    calm(world)
    check(world)
    swept(world)
    return world, tuple(effective)


def _does(world: World, event: str) -> bool:
    happening = HAPPENINGS.get(event)
    if happening is not None:
        done = happening(world)
        world.disturbed += done and event != "grow"
        return done
    actor, what = world.actors[event[0]], event[1:]
    if what in ("!", "?"):
        if actor.steps is None:
            return False
        actor.crash() if what == "!" else actor.leaves()
    else:
        actor.go(MANY if what == "*" else int(what))
    return True


def scattered(seed: int, count: int, without: str = "") -> Iterator[Schedule]:
    """Anything, without what this actor does."""
    rng = random.Random(seed)
    weights = {event: weight for event, weight in _WEIGHTS.items() if event in HAPPENINGS or event[0] != without}
    events, cumulated = tuple(weights), tuple(accumulate(weights.values()))
    for _ in range(count):
        yield tuple(rng.choices(events, cum_weights=cumulated, k=rng.randint(4, 16)))


def stopped() -> Iterator[Schedule]:
    """One actor stops at every step, something happens, another stops at every step or ends; then each dies or goes on."""
    ends = (("a!", "b*"), ("a*", "b*"), ("a*", "b!"), ("b!", "a*"))
    for first, happens, second, last in product(_STEPS, _ALONE, (*_STEPS[::2], "*"), ends):
        yield ("grow", f"a{first}", happens, f"b{second}", *last)


def woken() -> Iterator[Schedule]:
    """One actor that found nothing to read stops, another works and stops at every step, and the first wakes for a while."""
    for first, second, happens, third in product(range(1, 5), _STEPS, (*_ALONE, "b!"), range(1, 5)):
        yield (f"a{first}", "grow", f"b{second}", happens, f"a{third}", "b*", "a*")


def mistaken() -> Iterator[Schedule]:
    """Schedules of two runs in which the one that works is taken for dead, though it is not."""
    for first, second, happens, third in product(range(1, 5), _STEPS, _ALONE, range(2, 16, 3)):
        yield (f"a{first}", "grow", f"b{second}", "day", happens, f"a{third}", "b*", "a*")


def overtaken() -> Iterator[Schedule]:
    """One actor, and another that is faster each time."""
    for first, second in product(_STEPS, _STEPS):
        yield ("grow", f"a{first}", *("b*", "grow", f"a{second}") * 6)


def changed() -> Iterator[Schedule]:
    """One actor, and two things that happen to its table at any two of its steps."""
    changes = ("foreign", "rollback", "restore", "expire", "recreate", "drop", "x*", "m*", "r*")
    for first, one, second, other in product(_STEPS[:14], changes, _STEPS[:14], changes):
        yield ("grow", f"a{first}", one, f"a{second}", other, "a*")


def left() -> Iterator[Schedule]:
    """A command dies at each step. Its JVM does the next thing later, after what happens and what another command does."""
    for first, happens, second in product(_STEPS, (*_ALONE, "b*"), (*_STEPS[::3], "*")):
        yield ("grow", f"a{first}", "a?", happens, f"b{second}", "late", "b*")


def in_turns() -> Iterator[Schedule]:
    """Schedules of two runs, of which one that is taken for dead publishes while the other sweeps."""
    for first, second, third, fourth in product(range(1, 5), _STEPS, _STEPS[:14], range(1, 4)):
        yield (f"a{first}", "grow", f"b{second}", "day", f"a{third}", f"b{fourth}", "a*", "b*")


def taken_back() -> Iterator[Schedule]:
    """Schedules in which main goes back to an older snapshot meanwhile, and returns."""
    for first, second, third, happens in product(range(1, 5), _STEPS, _STEPS[:14], ("restore", "foreign")):
        yield (f"a{first}", "grow", f"b{second}", "day", "rollback", f"a{third}", happens, "b*", "a*")


def rolled_back() -> Iterator[Schedule]:
    """A table that is rolled back under a run, and whose older snapshots expire then."""
    for first, second in product(_STEPS, (*_STEPS[::2], "*")):
        yield ("a*", "grow", f"a{first}", "rollback", f"a{second}", "expire", "a*")


def maintained() -> Iterator[Schedule]:
    """Schedules in which a person or another program rolls the table back while maintenance works, and maintenance continues."""
    for first, second, backs, happens in product(
        range(1, 4), range(1, 8), (("r*",), ()), ((), ("foreign",), ("foreign", "restore"))
    ):
        for third in (1, 2, "*"):
            yield (f"m{first}", "grow", "a*", f"m{second}", *backs, "rollback", *happens, f"m{third}", "m*")
            yield (f"m{first}", f"m{second}", *backs, "rollback", *happens, f"m{third}", "m*")


def unanswered() -> Iterator[Schedule]:
    """Each commit of one actor gets no answer, until it gives up; the first of them arrives later, while another works."""
    for first, steps, second in product(_STEPS, range(1, 4), (*_STEPS[::3], "*")):
        yield ("grow", f"a{first}", *("delay", f"a{steps}") * 6, "a*", f"b{second}", *("arrive",) * 6, "b*")


def search(schedules: Iterable[Schedule], broken: Broken | None = None, merges: bool = False) -> Found:
    """Stops at the first schedule that goes wrong."""
    found = Found()
    seen: set[Schedule] = set()
    for schedule in schedules:
        try:
            world, effective = play(schedule, broken, merges=merges)
        except Wrong:
            found.wrong = shortest(schedule, broken, merges)
            break
        seen.add(effective)
        found.reached |= world.reached
        found.happened.update(effective)
    found.schedules = len(seen)
    return found


def shortest(schedule: Schedule, broken: Broken | None, merges: bool = False) -> tuple[Schedule, str]:
    """Leaves out and shortens whatever is not needed for going wrong, and says what goes wrong then."""

    def fails(tried: Schedule) -> str:
        try:
            play(tried, broken, merges=merges)
        except Wrong as wrong:
            return str(wrong)
        return ""

    said = fails(schedule)
    smaller = True
    while smaller:
        smaller = False
        for tried in _smaller(schedule):
            saying = fails(tried)
            if saying:
                schedule, said, smaller = tried, saying, True
                break
    return schedule, said


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    for at, event in enumerate(schedule):
        yield schedule[:at] + schedule[at + 1 :]
        if event[1:].isdigit() and int(event[1:]) > 1:
            yield (*schedule[:at], f"{event[0]}{int(event[1:]) - 1}", *schedule[at + 1 :])
