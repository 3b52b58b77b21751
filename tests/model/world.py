"""A topic, a table with its bad rows, who works on them, all that may happen to them, and what must hold in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

from framework.base.errors import RefusedError
from framework.core.rules import refusals
from framework.core.rules.protocol import BRANCH, TopicState
from framework.plan import Pipeline
from tests.model import accepting, maintaining, steps
from tests.model.catalog import AnswerLost, Catalog, Invalid, Metadata, Refused, Span, Table, kept
from tests.model.steps import TRIES, Broken, Ended, Leftovers, Steps

_TOPIC = SimpleNamespace(kafka_name="t", cluster=SimpleNamespace(name="main"))
PIPELINE = cast(
    Pipeline,
    SimpleNamespace(
        name="trades",
        topic=_TOPIC,
        topics=(_TOPIC,),
        read_tables=(),
        select=None,
        computes_all=False,
        source_system="main",
        sources=("t",),
        table=SimpleNamespace(identifier="markets.trades"),
    ),
)
OWNER = refusals.owner(PIPELINE)
MANY = 10_000  # steps that nothing takes which ends


class Wrong(AssertionError):
    """Something happened that must never happen."""


class Actor:
    """A process: it runs batches or accepts, stops anywhere, and may go on much later."""

    def __init__(self, world: World, work: Callable[[World, Actor], Steps]) -> None:
        self.world = world
        self.work = work
        self.steps: Steps | None = None
        self.attempt = ""
        self.point = ""
        self.end: BaseException | None = None

    def go(self, count: int) -> int:
        """Takes steps; how many it took. One that was over begins again."""
        if self.steps is None:
            self.steps, self.end = self.work(self.world, self), None
        for taken in range(1, count + 1):
            try:
                self.point = next(self.steps)
                if self.point:
                    self.world.reached.add(self.point)
            except StopIteration:
                self.world.alive.discard(self.attempt)
                self.steps = None
                return taken
            except (Refused, AnswerLost, Invalid, Ended, Leftovers, RefusedError) as error:
                self.end = error
                self.crash()
                if str(error) == "table-busy" and self.work is steps.batch and self.world.disturbed < TRIES:
                    raise Wrong("a batch gives up, though only other batches came between") from None
                return taken
        return count

    def crash(self) -> None:
        self.world.dies(self.attempt)
        self.steps = None

    def leaves(self) -> None:
        """The command dies, and its JVM still does what it was told last."""
        assert self.steps is not None
        self.world.told.append((self.attempt, self.steps))
        self.world.left.add(self.attempt)
        self.steps = None
        if self.world.broken is Broken.CLIENT_ALONE:
            self.world.dies(self.attempt)


class World:
    def __init__(self, broken: Broken | None = None, beyond_limit: bool = False, merges: bool = False) -> None:
        self.broken = broken
        self.beyond_limit = beyond_limit
        self.pipeline, self.owner = PIPELINE, OWNER
        self.catalog = Catalog(merges)
        self.table, self.bad = Table(self.catalog, None), Table(self.catalog, None)
        self.topic = TopicState("kafka", {"t": "topic1"}, {"t/0": 0}, {"t/0": 3})
        self.topics = 1
        self.births = 0
        self.names = 0
        self.alive: set[str] = set()
        self.dead: set[str] = set()
        self.bases: dict[str, Metadata] = {}  # of attempts with bad rows, which say its last sequence number
        self.crashed: set[str] = set()
        self.left: set[str] = set()  # attempts whose command died before its JVM was done
        self.told: list[tuple[str, Steps]] = []  # what JVMs still do for commands that are dead
        self.old: set[str] = set()  # attempts that other machines take for dead, by their age
        self.disturbed = 0  # how often something happened that may come between a batch and its commit
        self.rolled_away: set[int] = set()
        self.by_hand: set[int] = set()  # snapshots of other programs
        self.settled: dict[str, dict[str, int]] = {}  # what the table held of topics that are gone
        self.skipped: set[tuple[str, str, int]] = set()  # messages that Kafka had no longer when a position went past them
        self.reached: set[str] = set()
        self.actors = {"a": Actor(self, steps.batch), "b": Actor(self, steps.batch), "c": Actor(self, steps.batch)}
        self.actors["m"] = Actor(self, maintaining.maintain)
        self.actors["r"] = Actor(self, accepting.go_back)
        self.actors["x"], self.actors["y"] = Actor(self, accepting.accept), Actor(self, accepting.accept)

    def name(self) -> str:
        self.names += 1
        made = f"n{self.names}"
        self.alive.add(made)
        return made

    def dies(self, attempt: str) -> None:
        if attempt in self.alive:
            self.alive.discard(attempt)
            self.dead.add(attempt)
            self.crashed.add(attempt)

    def is_dead(self, attempt: str) -> bool:
        return attempt in self.dead or attempt in self.old

    def bad_in(self, span: Span) -> int:
        """Every message with an odd offset is bad."""
        return span.behind // 2 - span.first // 2

    def skips(self, topic: str, before: Mapping[str, int], behind: Mapping[str, int]) -> None:
        """A person was told that these messages are never read, or the table was born when they were gone."""
        if topic == self.topic.topics["t"]:
            for partition, end in behind.items():
                gone = range(before.get(partition, 0), min(end, self.topic.starts.get(partition, 0)))
                self.skipped.update((topic, partition, offset) for offset in gone)

    def lineage(self) -> list[int]:
        return self.catalog.lineage(self.table.current().main)

    def is_rolled_back(self) -> bool:
        table = self.table.current()
        return table.position is not None and table.position.snapshot not in self.lineage()


def check(world: World) -> None:
    """Each message exactly once in the table and the bad rows; nothing that was rolled back is there again."""
    table = world.table.current()
    if table.main not in table.snapshots:
        raise Wrong("main is gone")
    lineage = set(world.lineage())
    if lineage & world.rolled_away:
        raise Wrong("a rollback was undone")
    bad = world.bad.now
    good_rows = world.catalog.rows[table.main]
    bad_rows = world.catalog.rows[bad.main] if bad is not None else ()
    for rows, kind, parity in ((good_rows, "row", 0), (bad_rows, "bad row", 1)):
        times: dict[tuple[str, str, int], int] = {}
        for topic, partition, first, behind, _ in rows:
            for offset in range(first + (first + parity) % 2, behind, 2):
                key = (topic, partition, offset)
                times[key] = times.get(key, 0) + 1
        for key, count in times.items():
            if count > 1:
                raise Wrong(f"{count} times the {kind} {key}")
        for topic, ends in {**world.settled, world.topic.topics["t"]: world.topic.ends}.items():
            for partition, end in ends.items():
                for offset in range(parity, end, 2):
                    if (topic, partition, offset) not in times and (topic, partition, offset) not in world.skipped:
                        raise Wrong(f"lost: the {kind} {(topic, partition, offset)}")


def swept(world: World) -> None:
    """Checks that a dead attempt's branch is removed at once, and all else a day later."""
    if world.crashed & set(_branches(world)):
        raise Wrong("a dead attempt's branch is left")
    if _branches(world):
        world.old.update(_branches(world))
        calm(world)
        if _branches(world):
            raise Wrong("a branch is left for ever")


def _branches(world: World) -> list[str]:
    tables = (world.table.current(), world.bad.now)
    return [name[len(BRANCH) :] for table in tables if table is not None for name in table.branches]


def calm(world: World) -> None:
    """Nothing disturbs: one process runs until nothing waits, and a person accepts what is refused."""
    world.catalog.answer = ""
    for _ in range(40):
        before = world.table.now
        if before is not None and before.main not in before.snapshots:
            raise Wrong("main is gone")
        runs = Actor(world, steps.batch)
        runs.go(MANY)
        if isinstance(runs.end, (RefusedError, Leftovers)):
            if isinstance(runs.end, RefusedError) and runs.end.accepts is None:
                restore(world)
                continue
            accepts = Actor(world, accepting.accept)
            accepts.go(MANY)
            if accepts.end is not None:
                raise Wrong(f"accepting fails: {accepts.end!r}")
        elif runs.end is not None:
            raise Wrong(f"a calm run fails: {runs.end!r}")
        elif world.table.now is before:
            return
    raise Wrong("a calm run does not come to an end")


def grow(world: World) -> bool:
    topic = world.topic
    first = min(topic.ends, key=lambda partition: (topic.ends[partition], partition))
    world.topic = TopicState(topic.cluster, topic.topics, topic.starts, {**topic.ends, first: topic.ends[first] + 2})
    return True


def add_partition(world: World) -> bool:
    topic = world.topic
    new = len(topic.ends)
    if new > 2:
        return False
    world.topic = TopicState(topic.cluster, topic.topics, {**topic.starts, f"t/{new}": 0}, {**topic.ends, f"t/{new}": 1})
    return True


def retain(world: World) -> bool:
    """Kafka drops all messages but the last of each partition."""
    topic = world.topic
    starts = {partition: max(topic.starts[partition], end - 1) for partition, end in topic.ends.items()}
    if starts == topic.starts:
        return False
    world.topic = TopicState(topic.cluster, topic.topics, starts, topic.ends)
    return True


def recreate(world: World) -> bool:
    """Replaces the topic by one of the same name, with another id and fewer messages or more."""
    table, old = world.table.now, world.topic
    if (
        table is not None
        and table.position is not None
        and not world.is_rolled_back()
        and table.position.topics["t"] == old.topics["t"]
    ):
        world.settled[old.topics["t"]] = dict(table.position.ends)
    world.topics += 1
    world.topic = TopicState(old.cluster, {"t": f"topic{world.topics}"}, {"t/0": 0}, {"t/0": 2 if world.topics % 2 else 7})
    return True


def expire(world: World) -> bool:
    if not world.beyond_limit and _would_hide_rollback(world):
        return False
    for table in (world.table, world.bad):
        if table.now is not None:
            table.expire()
    return True


def _would_hide_rollback(world: World) -> bool:
    """The one limit: rolled back, foreign commits on top, and now all goes that lies between them and the position."""
    table = world.table.now
    if table is None or table.position is None or not world.is_rolled_back():
        return False
    newer = [table.snapshots[at] for at in world.lineage() if at in table.snapshots]
    if not any(each.id in world.by_hand or each.compacts for each in newer):
        return False
    left = kept(table)
    oldest = next(at for at in world.lineage() if world.catalog.parents[at] not in left)
    return world.catalog.parents[oldest] is not None and table.snapshots[oldest].sequence > table.position.sequence


def rollback(world: World) -> bool:
    table = world.table.now
    if table is None:
        return False
    back = table.snapshots[table.main].parent
    if back not in table.snapshots or back is None:
        return False
    world.rolled_away.add(table.main)
    world.settled.clear()
    world.table.now = table._replace(main=back)
    return True


def restore(world: World) -> bool:
    """A person takes a rollback back: main is again what the tag keeps."""
    table = world.table.now
    if table is None or table.position is None or table.position.snapshot not in table.snapshots or not world.is_rolled_back():
        return False
    world.table.now = table._replace(main=table.position.snapshot)
    world.rolled_away.difference_update(world.lineage())
    return True


def foreign(world: World) -> bool:
    if world.table.now is None:
        return False
    world.by_hand.add(_grow_by_hand(world.table))
    return True


def foreign_bad(world: World) -> bool:
    if world.bad.now is None:
        return False
    _grow_by_hand(world.bad)
    return True


def _grow_by_hand(table: Table) -> int:
    table.catalog.answer = ""
    table.append(None, ())
    return table.current().main


def drop(world: World) -> bool:
    if world.table.now is None:
        return False
    world.table.now = None
    world.settled.clear()
    world.rolled_away.clear()
    return True


def drop_both(world: World) -> bool:
    if world.bad.now is None:
        return False
    drop(world)
    world.bad.now = None
    return True


def lose(world: World) -> bool:
    world.catalog.answer = "lost"
    return True


def refuse(world: World) -> bool:
    world.catalog.answer = "refused"
    return True


def delay(world: World) -> bool:
    world.catalog.answer = "late"
    return True


def arrive(world: World) -> bool:
    """A commit reaches the catalog, of which its sender has heard nothing."""
    if not world.catalog.under_way:
        return False
    with suppress(Refused, AnswerLost, Invalid):
        world.catalog.under_way.pop(0)()
    return True


def a_day_passes(world: World) -> bool:
    world.old.update(world.alive)
    return True


def written_late(world: World) -> bool:
    """A JVM does what a dead command told it, and is free again."""
    if not world.told:
        return False
    attempt, told = world.told.pop(0)
    with suppress(StopIteration, Refused, AnswerLost, Invalid, Ended, Leftovers, RefusedError):
        next(told)
    world.dies(attempt)
    return True


HAPPENINGS: dict[str, Callable[[World], bool]] = {
    "grow": grow, "partition": add_partition, "retain": retain, "recreate": recreate, "expire": expire, "rollback": rollback,
    "restore": restore, "foreign": foreign, "foreign-bad": foreign_bad, "drop": drop, "drop-both": drop_both,
    "lose": lose, "refuse": refuse, "delay": delay, "arrive": arrive, "day": a_day_passes, "late": written_late,
}  # fmt: skip
