"""What a run and an acceptance do, step by step: between two `yield`s nothing else happens, at each one anything may.

A `yield` gives the kill point that was reached, or nothing between two of them. Each member of `Broken` is one thing done wrong.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from framework.engine import refusals
from framework.engine.protocol import BRANCH, Position, Range, Snapshot, TableState, TopicState, Verdict, next_range, verdict
from framework.engine.refusals import Acceptance
from framework.errors import RefusedError
from tests.model.catalog import AnswerLost, Invalid, Metadata, Refused, Span, staged, state, written

if TYPE_CHECKING:
    from tests.model.world import Actor, World

LIMIT = 3  # messages of a batch
TRIES = 3


class Broken(Enum):
    ONE_NAME = "one branch name for all attempts, made or replaced"
    ANY_MAIN = "the branch begins wherever main is then, and nobody looks at the staged parent"
    FAST_FORWARD_ALONE = "published by fast_forward alone, without asking whether main is still S0"
    POSITION_AFTERWARDS = "the position is set by a second commit"
    SWEEP_PUBLISHED = "bad rows are swept without asking which batch was published last"
    NO_ROLL_FORWARD = "nobody brings over the bad rows of a batch that died behind its commit"
    LATE_TRANSACTION = "the transaction begins, and loads the table anew, behind the verdict"
    SWEEP_WAITING = "bad rows are swept although the rows of the same attempt still can be published"
    ACCEPT_BLINDLY = "accepting does not ask whether the table is still as it was when it was refused"
    FORGET_FIRST = "bad rows that are read again are removed before the position goes back"
    FORGET_BY_OFFSET = "bad rows that are read again are found by the offsets of the partitions that the position names"
    LOOK_FIRST = "the topic is looked at before the table"
    DROP_LEFTOVERS = "bad rows of a table that is gone are dropped by name"


class Ended(Exception):
    """A named error, which is not a refusal."""


class Leftovers(Exception):
    """The table is gone or new, and its predecessor's bad rows are still there."""


Steps = Generator[str, None, None]
Asked = Generator[str, None, bool]


def batch(world: World, me: Actor) -> Steps:
    """`batch.next_batch`"""
    for _ in range(TRIES):
        me.attempt = world.name()
        if (yield from _run(world, me.attempt)):
            return
        world.alive.discard(me.attempt)


def _run(world: World, me: str) -> Asked:
    """`batch._Attempt.run`: whether it is over; if not, it begins again."""
    early = world.topic
    if world.broken is Broken.LOOK_FIRST:
        yield ""
    table = _open(world)
    yield ""
    topic = early if world.broken is Broken.LOOK_FIRST else world.topic
    opened = state(table, world.owner)
    yield "opened"
    position = refusals.check(world.pipeline, opened, topic)
    if world.broken is not Broken.NO_ROLL_FORWARD:
        yield from roll_forward(world, position)
    yield "rolled_forward"
    range_ = next_range(position, topic, LIMIT)
    if range_ is None:
        yield from _sweep(world, me)
        return True
    yield "ranged"
    opened = _branch(world, me, opened)
    yield "branched"
    made = yield from _stage(world, me, opened, position, topic, range_)
    if made is None or not (yield from _publish(world, me, opened, topic, made)):
        yield from _withdraw(world, me)
        return False
    yield "published"
    if made.bad:
        yield from roll_forward(world, made)
    yield "published_bad_rows"
    yield from _sweep(world, me)
    yield "swept"
    return True


def _open(world: World) -> Metadata:
    """`tables.open_table`"""
    if world.table.now is None:
        if world.bad.now is not None:
            raise Leftovers
        bear(world)
    table, bad = world.table.current(), world.bad.now
    if bad is not None and bad.of != table.uuid:
        raise Leftovers
    return table


def bear(world: World) -> None:
    topic = world.topic
    world.births += 1
    world.table.create(f"table{world.births}", begins=Position("born", 0, topic.cluster, topic.topic, dict(topic.starts), 0, 0))


def branch_of(world: World, attempt: str) -> str:
    return BRANCH if world.broken is Broken.ONE_NAME else BRANCH + attempt


def _branch(world: World, me: str, opened: TableState) -> TableState:
    table = world.table.current()
    if world.broken is Broken.ANY_MAIN:
        world.table.branch(BRANCH + me, table.main)
        return replace(opened, main=table.main, position=table.position)
    if world.broken is Broken.ONE_NAME and BRANCH in table.branches:
        world.table.sweep(BRANCH)
    world.table.branch(branch_of(world, me), opened.main)
    return opened


def _stage(
    world: World, me: str, opened: TableState, position: Position, topic: TopicState, range_: Range
) -> Generator[str, None, Position | None]:
    """The rows on the branch, the bad rows on theirs, and the position that belongs to them."""
    number = position.batch + 1
    rows = tuple(
        Span(world.topic.topic, partition, first, range_.ends[partition], number)
        for partition, first in range_.starts.items()
        if first < range_.ends[partition]
    )
    yield ""
    to = Position(me, number, topic.cluster, topic.topic, range_.ends, 0, 0)
    world.table.append(branch_of(world, me), rows, me, written(to))
    yield "staged"
    bad = sum(map(world.bad_in, rows))
    if bad:
        if world.bad.now is None:
            world.births += 1
            world.bad.create(f"bad{world.births}", of=opened.uuid)
        base = world.bad.current().main
        yield ""
        world.bad.branch(BRANCH + me, base)
        yield ""
        world.bad.append(BRANCH + me, rows, me)
        yield "staged_bad_rows"
    tip = staged(world.table.current(), branch_of(world, me))
    if tip is None or (tip.attempt != me and world.broken is not Broken.ONE_NAME):
        return None
    return replace(to, snapshot=tip.id, sequence=tip.sequence, bad=bad)


def _publish(world: World, me: str, opened: TableState, topic: TopicState, made: Position) -> Asked:
    """`batch._Attempt._publish`: whether it is published."""
    if world.topic.topic != topic.topic:
        return False
    for _ in range(TRIES):
        yield ""
        table = world.table.current()
        judged = _judged(world, me, opened, table)
        if judged is Verdict.DONE:
            return True
        if judged is not Verdict.PUBLISH:
            return False
        yield "checked"
        base = world.table.current() if world.broken is Broken.LATE_TRANSACTION else table
        try:
            new = world.table.fast_forwarded(base, branch_of(world, me))
            if world.broken is Broken.POSITION_AFTERWARDS:
                world.table.commit(base, new)
                world.published.add(me)
                yield ""
                base = new = world.table.current()
            if made.snapshot not in new.snapshots:
                raise Invalid
            new = new._replace(position=made, tag=made.snapshot)
            world.publishes(me, base, new)
        except (Refused, AnswerLost, Invalid):
            continue
        return True
    raise Ended("not-published")


def _judged(world: World, me: str, opened: TableState, table: Metadata) -> Verdict:
    now, tip = state(table, world.owner), staged(table, branch_of(world, me))
    if world.broken is Broken.ONE_NAME and tip is not None:
        tip = Snapshot(tip.id, opened.main, tip.sequence, me)
    if world.broken is Broken.ANY_MAIN and tip is not None:
        tip = replace(tip, parent=opened.main)
    if world.broken is Broken.FAST_FORWARD_ALONE:
        now = replace(now, main=opened.main)
    return verdict(opened, now, me, tip)


def roll_forward(world: World, position: Position) -> Steps:
    """`bad_rows.roll_forward`: brings over what the position's batch staged, and removes what its acceptance reads again."""
    forgets = world.forgets.get(position.attempt)
    if forgets is not None and world.broken not in (Broken.FORGET_FIRST, Broken.FORGET_BY_OFFSET):
        yield ""
        forget(world, *forgets)
    if not position.bad:
        return
    for _ in range(TRIES):
        base = world.bad.now
        if base is None or BRANCH + position.attempt not in base.branches:
            return
        yield ""
        try:
            world.bad.join(base, BRANCH + position.attempt, position.attempt)
        except Refused:
            continue
        return
    raise Ended("bad-rows-not-published")


def forget(world: World, uuid: str, above: int, up_to: int) -> None:
    """Removes the bad rows of these batches. As no batch's number comes twice in a table, it may be done again, however late."""
    bad = world.bad.now
    if bad is not None and bad.of == uuid:
        rows = world.catalog.rows[bad.main]
        kept = tuple(row for row in rows if not above < row.batch <= up_to)
        if kept != rows:
            world.bad.rewrite(bad, kept)


def _forget_by_offset(world: World, starts: dict[int, int]) -> None:
    bad = world.bad.now
    if bad is not None:
        rows = world.catalog.rows[bad.main]
        kept = (row._replace(behind=min(row.behind, starts.get(row.partition, row.behind))) for row in rows)
        world.bad.rewrite(bad, tuple(row for row in kept if row.first < row.behind))


def _withdraw(world: World, me: str) -> Steps:
    for table in (world.table, world.bad):
        yield ""
        if table.now is not None and branch_of(world, me) in table.now.branches:
            table.sweep(branch_of(world, me))


def _sweep(world: World, me: str) -> Steps:
    """`batch._Attempt._sweep`: the table's branches first; an attempt without one can publish nothing any more."""
    if world.broken is Broken.SWEEP_WAITING:
        yield from _sweep_bad_rows(world, me)
    swept = []
    for name in list(world.table.current().branches):
        attempt = name[len(BRANCH) :]
        if attempt != me and world.is_dead(attempt):
            yield ""
            world.table.sweep(name)
            swept.append(attempt)
    if world.broken is not Broken.SWEEP_WAITING:
        yield from _sweep_bad_rows(world, me)
    world.dead.difference_update(swept)


def _sweep_bad_rows(world: World, me: str) -> Steps:
    if world.bad.now is None:
        return
    dead = [name for name in world.bad.now.branches if name != BRANCH + me and world.is_dead(name[len(BRANCH) :])]
    if not dead:
        return
    yield ""
    table = world.table.current()
    for name in dead:
        last = table.position is not None and BRANCH + table.position.attempt == name
        if last and world.broken is not Broken.SWEEP_PUBLISHED:
            continue
        if name in table.branches and world.broken is not Broken.SWEEP_WAITING:
            continue
        yield ""
        world.bad.sweep(name)


def accept(world: World, me: Actor) -> Steps:
    """`accept.refusal` and, when a person has said yes, `accept.accept`."""
    me.attempt = world.name()
    topic = world.topic
    if world.broken is Broken.LOOK_FIRST:
        yield ""
    try:
        table = _open(world)
        yield ""
        topic = topic if world.broken is Broken.LOOK_FIRST else world.topic
        opened = state(table, world.owner)
        refusals.check(world.pipeline, opened, topic)
    except Leftovers:
        yield ""
        yield from _begin_anew(world)
    except RefusedError as refused:
        yield ""
        if isinstance(refused.accepts, Acceptance):
            yield from _move(world, me.attempt, opened, refused.accepts)


def _begin_anew(world: World) -> Steps:
    """The new table is born first; then its bad rows' table is emptied and made its own in one commit."""
    if world.broken is Broken.DROP_LEFTOVERS:
        world.bad.now = None
    elif world.bad.now is None:
        return
    if world.table.now is None:
        bear(world)
    yield ""
    table, bad = world.table.now, world.bad.now
    if table is not None and bad is not None and bad.of != table.uuid:
        yield ""
        world.bad.empty(bad, table.uuid)


def _move(world: World, me: str, refused: TableState, accepts: Acceptance) -> Steps:
    table = world.table.current()
    found = state(table, world.owner)
    unseen = (found.uuid, found.main, found.position) != (refused.uuid, refused.main, refused.position)
    if found.position is None or (unseen and world.broken is not Broken.ACCEPT_BLINDLY):
        raise Ended("table-busy")
    yield from roll_forward(world, found.position)
    back = refusals._newest_position(refused)
    if accepts.forget_bad_rows_from is not None and back is not None and refused.position is not None:
        if world.broken is Broken.FORGET_BY_OFFSET:
            _forget_by_offset(world, dict(accepts.forget_bad_rows_from))
        elif world.broken is Broken.FORGET_FIRST:
            forget(world, found.uuid, back.batch, refused.position.batch)
        else:
            world.forgets[me] = (found.uuid, back.batch, refused.position.batch)
    yield ""
    at = accepts.position.snapshot if accepts.position.snapshot in table.snapshots else found.main
    sequence = table.snapshots[at].sequence
    moved = replace(accepts.position, attempt=me, batch=found.position.batch + 1, bad=0, snapshot=at, sequence=sequence)
    base = world.table.current() if world.broken is Broken.LATE_TRANSACTION else table
    world.table.commit(base, base._replace(position=moved, tag=at))
    yield ""
    yield from roll_forward(world, moved)
