"""Accepting and going back, step by step, as `steps` has it for a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from framework.base.errors import RefusedError
from framework.core.rules import refusals
from framework.core.rules.protocol import TableState
from framework.core.rules.refusals import Acceptance
from tests.model.catalog import Invalid, state
from tests.model.steps import Broken, Ended, Leftovers, Steps, bear, check, open_table, remove, remove_by_offset, roll_forward

if TYPE_CHECKING:
    from tests.model.world import Actor, World


def accept(world: World, me: Actor) -> Steps:
    """`accept.refusal` and, when a person has said yes, `accept.accept`."""
    me.attempt = world.name()
    early = world.topic
    if world.broken is Broken.LOOK_FIRST:
        yield ""
    try:
        table = yield from open_table(world)
        yield ""
        opened = state(table, world.owner)
        check(world, opened, early if world.broken is Broken.LOOK_FIRST else world.topic)
    except Leftovers:
        yield ""
        yield from _begin_anew(world)
    except RefusedError as refused:
        yield ""
        if isinstance(refused.accepts, Acceptance):
            yield from _move(world, me.attempt, opened, refused.accepts)


def go_back(world: World, me: Actor) -> Steps:
    """`rollback.judged`, of the commit before main's, and `accept.move`."""
    me.attempt = world.name()
    table = world.table.now
    if table is None:
        return
    opened = state(table, world.owner)
    to = opened.snapshots[opened.main].parent
    if opened.position is None or to not in opened.snapshots or to is None:
        return
    back = refusals.going_back(world.pipeline, replace(opened, main=to), opened.position)
    if isinstance(back, str):
        return
    yield ""
    yield from _move(world, me.attempt, opened, Acceptance("", back, opened, main=to))


def _begin_anew(world: World) -> Steps:
    """`accept._begin_anew`: a new table first; then the bad rows' table is emptied and made its own in one commit."""
    if world.broken is Broken.DROP_LEFTOVERS:
        world.bad.now = None
    if world.table.now is None:
        yield from bear(world)
    yield ""
    old = world.table.now
    if world.broken is Broken.EMPTY_FOR_OLD:
        yield ""
    left = world.bad.now
    if left is None:
        return
    yield ""
    table = old if world.broken is Broken.EMPTY_FOR_OLD else world.table.now
    if table is not None and (left.of != table.uuid or world.broken is Broken.EMPTY_BLINDLY):
        yield ""
        world.bad.empty(world.bad.current() if world.broken is Broken.EMPTY_REPLAYED else left, table.uuid)


def _move(world: World, me: str, refused: TableState, accepts: Acceptance) -> Steps:
    """`accept._move`"""
    table = world.table.current()
    if table.position is None:
        raise Ended("table-busy")
    yield from roll_forward(world, table.position, table.uuid)
    yield ""
    base = table if world.broken is Broken.LATE_ACCEPTANCE else world.table.current()
    unseen = (base.uuid, base.main, base.position) != (refused.uuid, refused.main, refused.position)
    if unseen and world.broken is not Broken.ACCEPT_BLINDLY:
        raise Ended("table-busy")
    if accepts.main is not None and accepts.main not in base.snapshots:
        raise Invalid  # it has expired
    moved = replace(accepts.position, attempt=me, batch=accepts.position.batch + 1, bad=0)
    if moved.snapshot not in base.snapshots:
        moved = replace(moved, snapshot=base.main, sequence=base.snapshots[base.main].sequence)
    if moved.forget is not None and world.broken is Broken.FORGET_FIRST:
        remove(world, world.bad.current(), *moved.forget)
    yield ""
    base = world.table.current() if world.broken is Broken.LATE_ACCEPTANCE else base
    said = replace(moved, forget=None) if world.broken is Broken.FORGET_ONCE else moved
    new = base._replace(position=said, tag=moved.snapshot, main=base.main if accepts.main is None else accepts.main)
    if world.broken is not Broken.UNPINNED:
        new = world.table.pinned(new)
    if world.catalog.answer == "late":  # the ledger below is of moves that are done by now
        world.catalog.answer = "lost"
    try:
        world.table.commit(base, new)
    finally:
        done = world.table.now is not None and world.table.now.position is said
        if done and accepts.main not in (None, base.main):
            world.rolled_away.add(base.main)
            world.settled.clear()
        if done and refused.position is not None:
            before = refused.position.ends if refused.position.topics["t"] == moved.topics["t"] else {}
            world.skips(moved.topics["t"], before, moved.ends)
    if moved.forget is not None and world.broken is Broken.FORGET_BY_OFFSET:
        remove_by_offset(world, moved.ends)
    yield ""
    yield from roll_forward(world, moved, base.uuid)
