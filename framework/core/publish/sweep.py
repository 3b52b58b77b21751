"""Sweeps dead attempts: deletes their branches, and the files that only those had."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from framework.core.iceberg import removal
from framework.core.iceberg.jvm_state import attempting
from framework.core.iceberg.lake import TableStore
from framework.core.rules import attempts, protocol
from framework.core.rules.protocol import Position
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline


def sweep(lake: TableStore, pipeline: Pipeline) -> None:
    """Deletes the branches of dead attempts. Branches of side tables are deleted last: while an attempt has a branch of the table, it
    may still be alive and publish."""
    sides = [lake.find(side.identifier) for side in pipeline.table.side_tables]
    waiting = {name for side in sides for name in _dead(side)}
    table = lake.load(pipeline.table.identifier)
    if table is None:
        return
    dead = _dead(table)
    if not dead and not waiting:
        return
    swept = {name for name in dead if _swept(lake, table, name)}
    # Loaded after the list of dead attempts: a dead attempt with no branch, other than the last published one, can never publish.
    table = lake.load(pipeline.table.identifier)
    if table is None:
        return
    text = table.properties().get(protocol.POSITION)
    for name in waiting:
        may_be_published = text is None or Position.read(text).attempt == name
        if not may_be_published and table.snapshot(protocol.BRANCH + name) is None:
            swept |= {name} if all(_swept(lake, side, name) for side in _with_branch(sides, name)) else set()
    sides = [lake.find(side.identifier) for side in pipeline.table.side_tables]
    for name in swept:
        if not _with_branch(sides, name):
            attempts.forget(name)


def withdraw(lake: TableStore, pipeline: Pipeline, attempt: str) -> None:
    """Deletes the branches of an attempt of this process that will not publish, if the catalog allows it now."""
    tables = [lake.load(pipeline.table.identifier), *(lake.find(side.identifier) for side in pipeline.table.side_tables)]
    swept = [_swept(lake, table, attempt) for table in _with_branch(tables, attempt)]
    if all(swept):
        attempts.forget(attempt)


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
