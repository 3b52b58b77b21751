"""A run, step by step: between two `yield`s nothing else happens, at each one anything may.

A `yield` gives the kill point that was reached, or nothing between two of them. Each member of `Broken` is one thing done wrong.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from framework.core.rules import refusals
from framework.core.rules.protocol import BRANCH, Position, Range, Snapshot, TableState, TopicState, Verdict, next_range, verdict
from tests.model.catalog import AnswerLost, Invalid, Metadata, Refused, Span, Table, merged, state, written

if TYPE_CHECKING:
    from tests.model.world import Actor, World

LIMIT = 3  # messages of a batch
TRIES = 5


class Broken(Enum):
    ANY_MAIN = "rows are staged on whatever main is then, beside the position that was seen"
    ONTO_ANYTHING = "what was refused is put onto whatever is there by then"
    POSITION_AFTERWARDS = "the position is set by a second commit"
    SWEEP_PUBLISHED = "bad rows are swept without asking which batch was published last"
    NO_ROLL_FORWARD = "nobody brings over the bad rows of a batch that died behind its commit"
    LATE_ACCEPTANCE = "so does the transaction that moves the position"
    MAIN_ALONE = "where main's parents are gone, its own sequence number alone says whether it was rolled back"
    ACCEPT_BLINDLY = "accepting does not ask whether the table is still as it was when it was refused"
    FORGET_FIRST = "bad rows that are read again are removed before the position goes back"
    FORGET_ONCE = "they are removed behind it, by who accepts alone: the position does not say so"
    FORGET_BY_OFFSET = "they are found by the offsets of the partitions that the position names"
    FORGET_ANY_TABLE = "they are removed by their batches alone, though those may be another table's by now"
    FORGET_REPLAYED = "whose they are is asked, and then they are removed from whatever came between"
    NO_NUMBER = "the position in a staged snapshot's summary does not say which batch it is"
    LOOK_FIRST = "the topic is looked at before the table"
    UNFENCED = "bad rows of an attempt that seems dead are swept, though it can still be published"
    FENCED_AFTERWARDS = "the fence comes behind the sweep"
    FENCED_BY_MAIN = "whether an attempt can still be published is told by whether main is where it was when it began"
    FENCE_ON_MAIN = "the fence moves main, and so hides that another program has rolled it back"
    FENCE_UNASKED = "they are swept though the fence was refused"
    WITHDRAWN_UNFENCED = "an attempt gives up and takes its bad rows back, though an answer to its commit was lost"
    ASKED_BEFORE_FENCE = "which of them was published is asked before the fence alone"
    STAGE_ANYWHERE = "bad rows are staged beside a table's without asking whose bad rows those are"
    DROP_LEFTOVERS = "bad rows of a table that is gone are dropped by name"
    EMPTY_BLINDLY = "they are emptied without asking whose they are by now"
    EMPTY_FOR_OLD = "they are emptied for a table that was loaded before the transaction began"
    EMPTY_REPLAYED = "whose they are is asked, and then whatever came between is emptied"
    LOST_UNSEEN = "the first messages of a partition that the position does not know may be gone unnamed"
    OLDER_POSITION = "a compaction's snapshot says the position that was there when it began"
    SETTLE_BLINDLY = "the position moves to main behind a compaction, whatever else came between"
    SETTLE_LATE = "the same, on whatever was committed since that was asked"
    UNPINNED = "a position moves alone, in a catalog that compares nothing but branches and tags"
    EXPIRE_UNPINNED = "snapshots expire without main, there, though it may be at one of them by now"
    EXPIRE_UNJUDGED = "snapshots that were chosen before a rollback expire behind it"
    CLIENT_ALONE = "an attempt is dead once its command is, though the JVM that it shared still writes for it"
    AGAIN_COUNTED = "beginning again because another batch was published counts as a try"


class Ended(Exception):
    """A named error, which is not a refusal."""


class Leftovers(Exception):
    """The table is gone or new, and its predecessor's bad rows are still there."""


Steps = Generator[str, None, None]
Judging = Generator[str, None, "Verdict | None"]


def batch(world: World, me: Actor) -> Steps:
    """`batch.next_batch`"""
    tries = 0
    while tries < TRIES:
        attempt = me.attempt = world.name()
        judged = yield from _run(world, attempt)
        world.alive.discard(attempt)
        if judged is None or attempt in world.left:  # of a command that is dead, nothing begins again
            return
        tries += judged is not Verdict.AGAIN or world.broken is Broken.AGAIN_COUNTED
    raise Ended("table-busy")


def _run(world: World, me: str, has_swept: bool = False) -> Judging:
    """`attempt.Attempt.run`: None once it is over, else why it begins again."""
    early = world.topic
    if world.broken is Broken.LOOK_FIRST:
        yield ""
    table = yield from open_table(world)
    yield ""
    topic = early if world.broken is Broken.LOOK_FIRST else world.topic
    opened = state(table, world.owner)
    yield "opened"
    position = check(world, opened, topic)
    if world.broken is not Broken.NO_ROLL_FORWARD:
        yield from roll_forward(world, position, opened.uuid)
    if not has_swept and _dead(world, me, world.bad):  # before this run adds to them: runs may die each time
        yield from _sweep(world, me)
        return (yield from _run(world, me, has_swept=True))
    yield "rolled_forward"
    range_ = next_range(position, topic, LIMIT)
    if range_ is None:
        yield from _sweep(world, me)
        return None
    yield "ranged"
    yield "branched"
    draft = Draft(table)
    try:
        prepared = yield from _stage(world, me, draft, opened, position, topic, range_)
        judged = Verdict.RESTAGE if prepared is None else (yield from _publish(world, me, draft, opened, topic, prepared))
    except (Leftovers, Ended):
        yield from _withdraw(world, me, draft)
        raise
    if prepared is None or judged is not Verdict.DONE:
        yield from _withdraw(world, me, draft)
        return judged
    yield "published"
    if prepared.bad:
        yield from roll_forward(world, prepared, opened.uuid)
    yield "published_bad_rows"
    yield from _sweep(world, me)
    yield "swept"
    return None


def open_table(world: World) -> Generator[str, None, Metadata]:
    """`tables.open_table`"""
    table = world.table.now
    yield ""
    if table is None:
        if world.bad.now is not None:
            raise Leftovers
        yield from bear(world)
        table = world.table.current()
        yield ""
    bad = world.bad.now
    if bad is not None and bad.of != table.uuid:
        raise Leftovers
    return table


def bear(world: World) -> Steps:
    """`tables.bear`; what the topic has no longer is none of this table's."""
    topic = world.topic
    yield ""
    if world.table.now is None:
        world.births += 1
        begins = Position(attempt="born", batch=0, cluster=topic.cluster, topics=topic.topics, ends=dict(topic.starts))
        world.table.create(f"table{world.births}", begins=begins)
        world.skips(topic.topics["t"], {}, topic.starts)


def check(world: World, opened: TableState, topic: TopicState) -> Position:
    position = opened.position
    if world.broken is Broken.LOST_UNSEEN and position is not None and position.topics["t"] == topic.topics["t"]:
        topic = replace(topic, starts={each: first for each, first in topic.starts.items() if each in position.ends})
    if world.broken is Broken.MAIN_ALONE and position is not None and _gone_on(opened, position):
        opened = replace(opened, position=replace(position, snapshot=opened.main))
    return refusals.check(world.pipeline, opened, topic)


def _gone_on(opened: TableState, position: Position) -> bool:
    seen: int | None = opened.main
    while seen is not None and seen in opened.snapshots:
        seen = opened.snapshots[seen].parent
    return seen is not None and opened.snapshots[opened.main].sequence > position.sequence


class Draft:
    """`unpublished.Unpublished`: the table as the attempt has loaded it, and as it changes it; nobody else sees that."""

    def __init__(self, loaded: Metadata) -> None:
        self.base = self.new = loaded
        self.is_sent = False


def _stage(
    world: World, me: str, draft: Draft, opened: TableState, position: Position, topic: TopicState, range_: Range
) -> Generator[str, None, Position | None]:
    """The rows, of which nobody else knows, the bad rows on a branch of theirs, and the position that belongs to them."""
    number = position.batch + 1
    rows = tuple(
        Span(world.topic.topics["t"], partition, first, range_.ends[partition], number)
        for partition, first in range_.starts.items()
        if first < range_.ends[partition]
    )
    if any(row.first < world.topic.starts.get(row.partition, 0) for row in rows):
        raise Ended("messages-gone")
    yield ""
    to = Position(attempt=me, batch=number, cluster=topic.cluster, topics=topic.topics, ends=range_.ends)
    said = written(replace(to, batch=0) if world.broken is Broken.NO_NUMBER else to)
    if world.broken is Broken.ANY_MAIN:
        draft.base = world.table.current()
    draft.new = world.table.with_rows(draft.base, rows, me, said)
    tip = draft.new.snapshots[draft.new.main]
    yield "staged"
    bad = sum(map(world.bad_in, rows))
    if bad:
        world.bases[me] = draft.base
        staged_too = yield from _stage_bad_rows(world, me, opened, rows)
        if not staged_too:
            return None
        yield "staged_bad_rows"
    return replace(to, snapshot=tip.id, sequence=tip.sequence, bad=bad)


def _stage_bad_rows(world: World, me: str, opened: TableState, rows: tuple[Span, ...]) -> Generator[str, None, bool]:
    """`bad_rows.stage`; whether nothing came between."""
    if world.bad.now is None:
        yield ""
        world.births += 1
        world.bad.create(f"bad{world.births}", of=opened.uuid)
        yield ""
    base = world.bad.now
    if base is None:
        raise Ended("table-not-created")
    if base.of != opened.uuid and world.broken is not Broken.STAGE_ANYWHERE:
        raise Leftovers
    yield ""
    try:
        world.bad.branch(BRANCH + me, base.main)
    except (Refused, AnswerLost, Invalid):
        return False
    yield ""
    world.bad.append(BRANCH + me, rows, me)
    return True


def _publish(
    world: World, me: str, draft: Draft, opened: TableState, topic: TopicState, prepared: Position
) -> Generator[str, None, Verdict]:
    """`attempt.Attempt._publish`: DONE once it is published."""
    if world.topic.topics["t"] != topic.topics["t"]:
        return Verdict.AGAIN
    tip = draft.new.snapshots[prepared.snapshot]
    wanted = draft.new._replace(position=prepared, tag=prepared.snapshot)
    base = draft.base
    for left in reversed(range(TRIES)):
        yield "checked"
        try:
            draft.is_sent = True
            if world.broken is Broken.POSITION_AFTERWARDS:
                world.table.commit(base, draft.new)
                yield ""
                base, wanted = world.table.current(), world.table.current()._replace(position=prepared, tag=prepared.snapshot)
            world.table.commit(base, wanted)
        except (Refused, AnswerLost, Invalid):
            yield ""
            table = world.table.current()
            judged = _judged(world, me, opened, table, tip)
            if judged is not Verdict.PUBLISH:
                return judged
            if left == 0:
                break
            try:
                base, wanted = table, _onto(world, table, base, wanted)
            except Refused:  # it was fenced, or another snapshot was added
                return Verdict.RESTAGE
            continue
        return Verdict.DONE
    raise Ended("not-published")


def _judged(world: World, me: str, opened: TableState, table: Metadata, tip: Snapshot) -> Verdict:
    now = state(table, world.owner)
    if world.broken is Broken.ANY_MAIN:
        tip = replace(tip, parent=opened.main)
    if world.broken is Broken.ONTO_ANYTHING:
        return Verdict.DONE if now.position is not None and now.position.attempt == me else Verdict.PUBLISH
    return verdict(opened, now, me, tip)


def _onto(world: World, table: Metadata, base: Metadata, wanted: Metadata) -> Metadata:
    """`Unpublished.putOntoNow`: the same changes on newer metadata, if the branches and tags that they set are where they were."""
    if world.broken is Broken.ONTO_ANYTHING:
        return table._replace(
            main=wanted.main, tag=wanted.tag, position=wanted.position, snapshots={**table.snapshots, **wanted.snapshots}
        )
    return merged(table, base, wanted)


def roll_forward(world: World, position: Position, uuid: str) -> Steps:
    """`bad_rows.roll_forward`: brings over what the position's batch staged, and removes what its acceptance reads again."""
    forget = position.forget
    if world.broken in (Broken.FORGET_FIRST, Broken.FORGET_BY_OFFSET):
        forget = None
    for _ in range(TRIES):
        if not position.bad and forget is None:
            return
        if world.bad.now is None:
            return
        try:
            yield from _join(world, position.attempt)
            if forget is not None:
                yield from _delete_batches(world, uuid, *forget)
        except (Refused, AnswerLost):
            continue
        return
    raise Ended("bad-rows-not-published")


def _join(world: World, attempt: str) -> Steps:
    """`lake.join`"""
    yield ""
    base = world.bad.current()
    if BRANCH + attempt in base.branches:
        yield ""
        world.bad.join(base, BRANCH + attempt, attempt)


def _delete_batches(world: World, uuid: str, above: int, up_to: int) -> Steps:
    """The bad rows of these batches, if they are this table's. As no batch's number comes twice in a table, it may be done again,
    however late."""
    yield ""
    base = world.bad.current()
    if base.of == uuid or world.broken is Broken.FORGET_ANY_TABLE:
        yield ""
        base = world.bad.current() if world.broken is Broken.FORGET_REPLAYED else base
        remove(world, base, above, up_to)


def remove(world: World, base: Metadata, above: int, up_to: int) -> None:
    world.bad.rewrite(base, tuple(row for row in world.catalog.rows[base.main] if not above < row.batch <= up_to))


def remove_by_offset(world: World, ends: Mapping[str, int]) -> None:
    bad = world.bad.now
    if bad is not None:
        rows = world.catalog.rows[bad.main]
        kept = (row._replace(behind=min(row.behind, ends.get(row.partition, row.behind))) for row in rows)
        world.bad.rewrite(bad, tuple(row for row in kept if row.first < row.behind))


def _withdraw(world: World, me: str, draft: Draft) -> Steps:
    """`sweep.withdraw`: an attempt whose commit was never sent can take its bad rows back; another one needs a fence, too."""
    yield ""
    if world.bad.now is None or BRANCH + me not in world.bad.now.branches:
        return
    yield ""
    if not draft.is_sent or world.broken is Broken.WITHDRAWN_UNFENCED:
        _swept(world.bad, BRANCH + me)
    else:  # an answer may be lost
        yield from _sweep_bad_rows(world, [BRANCH + me], set())


def _sweep(world: World, me: str) -> Steps:
    """`sweep.sweep`: the branches of bad rows of dead attempts, once none of them can publish any more."""
    waiting = _dead(world, me, world.bad)
    if not waiting:
        return
    gone: set[str] = set()
    yield from _sweep_bad_rows(world, waiting, gone)
    yield ""
    gone.difference_update(world.bad.now.branches if world.bad.now is not None else ())
    world.dead.difference_update(name[len(BRANCH) :] for name in gone)


def _sweep_bad_rows(world: World, waiting: list[str], gone: set[str]) -> Steps:
    """Fences the attempts: a snapshot more, and no catalog takes theirs. After that the table says which of them was published."""
    yield ""
    table = world.table.now
    if table is None:
        return
    if world.broken is not Broken.SWEEP_PUBLISHED:
        waiting = [name for name in waiting if not _is_published(table, name)]
    if _can_publish(world, table, waiting) and world.broken not in (Broken.UNFENCED, Broken.FENCED_AFTERWARDS):
        yield ""
        try:
            _fence(world)
        except (Refused, AnswerLost, Invalid):
            if world.broken is not Broken.FENCE_UNASKED:
                return
    yield ""
    table = table if world.broken is Broken.ASKED_BEFORE_FENCE else world.table.now
    if table is None:
        return
    for name in waiting:
        is_published = _is_published(table, name)
        yield ""
        if (not is_published or world.broken is Broken.SWEEP_PUBLISHED) and _swept(world.bad, name):
            gone.add(name)
    if world.broken is Broken.FENCED_AFTERWARDS:
        yield ""
        with suppress(Refused, AnswerLost, Invalid):
            _fence(world)


def _fence(world: World) -> None:
    """`moves.fence`"""
    if world.broken is Broken.FENCE_ON_MAIN:
        world.table.append(None, ())
    else:
        world.table.fence()


def _can_publish(world: World, table: Metadata, waiting: list[str]) -> bool:
    """Whether one of the attempts may have begun on the newest snapshot: a later one would end it."""
    bad = world.bad.now
    for name in waiting:
        attempt, tip = name[len(BRANCH) :], None if bad is None else bad.branches.get(name)
        says = tip is not None and bad is not None and bad.snapshots[tip].attempt == attempt
        if not says:
            return True
        base = world.bases[attempt]
        if base.main == table.main if world.broken is Broken.FENCED_BY_MAIN else base.sequence >= table.sequence:
            return True
    return False


def _is_published(table: Metadata, name: str) -> bool:
    return table.position is None or BRANCH + table.position.attempt == name


def _dead(world: World, me: str, table: Table) -> list[str]:
    names = table.now.branches if table.now is not None else ()
    return [name for name in names if name != BRANCH + me and world.is_dead(name[len(BRANCH) :])]


def _swept(table: Table, name: str) -> bool:
    with suppress(Refused, AnswerLost, Invalid):
        table.sweep(name)
        return True
    return False
