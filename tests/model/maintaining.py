"""Maintenance, step by step, as `steps` has it for a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from framework.core.rules import protocol
from tests.model.catalog import Metadata, kept, lineage, state, written
from tests.model.steps import Broken, Steps

if TYPE_CHECKING:
    from tests.model.world import Actor, World


def maintain(world: World, _me: Actor) -> Steps:
    """`maintain.maintain`, of the table: `compact.compact`, `compact.settle` and `expire.expire`."""
    yield ""
    if world.table.now is None:
        return
    before = world.table.current().position
    yield ""
    says = written(before) if before and world.broken is Broken.OLDER_POSITION else None
    world.table.compact(says)
    yield ""
    base = world.table.current()
    to = protocol.settled(state(base, world.owner))
    if world.broken is Broken.SETTLE_BLINDLY and base.position is not None:
        to = replace(base.position, snapshot=base.main, sequence=base.snapshots[base.main].sequence)
    if to is not None:
        yield ""
        base = world.table.current() if world.broken is Broken.SETTLE_LATE else base
        new = base._replace(position=to, tag=to.snapshot)
        world.table.commit(base, new if world.broken is Broken.UNPINNED else world.table.pinned(new))
    yield ""
    table = world.table.current()
    if world.is_rolled_back():
        return
    chosen = table.snapshots.keys() - _needed(table)
    yield ""
    base = world.table.current()
    if world.broken is not Broken.EXPIRE_UNJUDGED and world.is_rolled_back():
        return
    if world.catalog.merges:
        yield ""
    world.table.expire_only(base, chosen, pins=world.broken is not Broken.EXPIRE_UNPINNED)


def _needed(table: Metadata) -> set[int | None]:
    """The snapshots that a table keeps if it keeps as few as it can."""
    left = kept(table)
    return left | protocol.needed(list(lineage(table)), table.position, [each for each in left if each is not None])
