"""Sweeps dead attempts: deletes their branches, and the files that only those had.

A batch has no branch of the pipeline's table, which hears of it by the publishing commit alone. Rebuilds and `sluice forget` have one, and
so had the batches of older versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from framework.core.iceberg import moves, removal
from framework.core.iceberg.jvm_state import attempting, attempts_of, last_sequence
from framework.core.iceberg.lake import TableStore
from framework.core.rules import attempts, protocol
from framework.core.rules.protocol import Position, TableState
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline


def is_due(lake: TableStore, opened: TableState) -> bool:
    """Whether attempts over the table have died, as far as that is known without a request, or this process has not looked yet."""
    names = {*attempts_of(opened.branches), *attempts.of(opened.uuid)}
    return opened.uuid not in lake.swept or any(map(attempts.is_dead, names))


def sweep(lake: TableStore, pipeline: Pipeline) -> bool:
    """Deletes the branches of dead attempts, those of side tables last. Returns whether there were any."""
    sides = _sides(lake, pipeline)
    waiting = {name for side in sides for name in _dead(side)}
    table = lake.load(pipeline.table.identifier)
    if table is None:
        return False
    lake.swept.add(str(table.uuid()))
    dead = {*_dead(table), *filter(attempts.is_dead, attempts.of(str(table.uuid())))}
    if not dead and not waiting:
        return False
    swept = {name for name in dead if not _with_branch([table], name) or _swept(lake, table, name)}
    _sweep_sides(lake, pipeline, sides, waiting)
    left = [*_sides(lake, pipeline), lake.load(pipeline.table.identifier)]
    for name in swept | waiting:
        if not _with_branch(left, name):
            attempts.forget(name)
    return True


def withdraw(lake: TableStore, pipeline: Pipeline, attempt: str, may_be_published: bool) -> None:
    """Deletes the side branches of an attempt of this process that has ended, if the catalog allows it now. `may_be_published`: it has sent
    a commit, which may be done or still come."""
    sides = _with_branch(_sides(lake, pipeline), attempt)
    if sides and may_be_published:
        _sweep_sides(lake, pipeline, sides, {attempt})
    else:
        for side in sides:
            _swept(lake, side, attempt)
    if not sides or not _with_branch(_sides(lake, pipeline), attempt):
        attempts.forget(attempt)


def _sweep_sides(lake: TableStore, pipeline: Pipeline, sides: Sequence[Any], names: Collection[str]) -> None:
    """Deletes the side branches of attempts that were not published, once no catalog would take their commits any more."""
    table = lake.load(pipeline.table.identifier) if names else None
    if table is None:
        return
    names = [name for name in names if not _is_published(table, name)]
    if any(_may_be_published(table, sides, name) for name in names):
        try:
            moves.fence(lake, table)
        except (CommitRefused, CommitUnknown):
            return  # the next run sweeps them
        table = lake.load(pipeline.table.identifier)
    # Asked behind the fence: before it, an attempt that only seemed dead may have published.
    for name in names if table is not None else ():
        if not _is_published(table, name) and not _with_branch([table], name):
            for side in _with_branch(sides, name):
                _swept(lake, side, name)


def _is_published(table: Any, name: str) -> bool:
    """Whether the table's position is this attempt's, so that its side rows are still to be joined."""
    text = table.properties().get(protocol.POSITION)
    return text is None or Position.read(text).attempt == name


def _may_be_published(table: Any, sides: Iterable[Any], name: str) -> bool:
    """Whether the attempt may have begun on the table's newest snapshot. An attempt that began before has a snapshot with a number that is
    taken."""
    for side in _with_branch(sides, name):
        summary = side.snapshot(protocol.BRANCH + name).summary()
        base = summary.get(protocol.BASE) if summary.get(protocol.ATTEMPT) == name else None
        if base is None or int(base) >= last_sequence(table):
            return True
    return False


def _sides(lake: TableStore, pipeline: Pipeline) -> list[Any]:
    return [lake.find(side.identifier) for side in pipeline.table.side_tables]


def _with_branch(tables: Iterable[Any | None], attempt: str) -> list[Any]:
    return [table for table in tables if table is not None and table.snapshot(protocol.BRANCH + attempt) is not None]


def _dead(table: Any | None) -> list[str]:
    return [name for name in attempting(table) if attempts.is_dead(name)] if table is not None else []


def _swept(lake: TableStore, table: Any, name: str) -> bool:
    """Deletes the branch, and returns whether that was done. Another commit may come between; then the next run sweeps it."""
    with suppress(CommitRefused, CommitUnknown):
        removal.sweep(lake, table, name)
        return True
    return False
