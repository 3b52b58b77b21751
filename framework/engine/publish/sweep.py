"""Takes away what dead attempts left: their branches, and the files that only those had."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from framework.engine.iceberg.jvm_state import attempting
from framework.engine.iceberg.lake import Lake
from framework.engine.rules import attempts, protocol
from framework.engine.rules.protocol import Position
from framework.engine.spark.java_errors import Refused, Unknown
from framework.model import Pipeline


def sweep(lake: Lake, pipeline: Pipeline) -> None:
    """Bad rows of a dead attempt go last: while its branch of the table is there, it may be alive after all and publish."""
    bad = lake.find(pipeline.table.bad_rows)
    waiting = _dead(bad)
    table = lake.load(pipeline.table.identifier)
    if table is None:
        return
    dead = _dead(table)
    if not dead and not waiting:
        return
    gone = {name for name in dead if _swept(lake, table, name)}
    # Loaded after the dead were found: who is dead, without a branch and not the last published one, will never be.
    table = lake.load(pipeline.table.identifier)
    if table is None:
        return
    said = table.properties().get(protocol.POSITION)
    for name in waiting:
        mine = said is None or Position.read(said).attempt == name
        if not mine and table.snapshot(protocol.BRANCH + name) is None and _swept(lake, bad, name):
            gone.add(name)
    bad = lake.find(pipeline.table.bad_rows)
    for name in gone:
        if bad is None or bad.snapshot(protocol.BRANCH + name) is None:
            attempts.forget(name)


def withdraw(lake: Lake, pipeline: Pipeline, attempt: str) -> None:
    """Takes away what a living attempt of this process has staged and will not publish, if it can be taken away now."""
    tables = lake.load(pipeline.table.identifier), lake.find(pipeline.table.bad_rows)
    left = [table for table in tables if table is not None and table.snapshot(protocol.BRANCH + attempt) is not None]
    gone = [_swept(lake, table, attempt) for table in left]
    if all(gone):
        attempts.forget(attempt)


def _dead(table: Any | None) -> list[str]:
    return [name for name in attempting(table) if attempts.is_dead(name)] if table is not None else []


def _swept(lake: Lake, table: Any, name: str) -> bool:
    """Another commit may come between; then it is for the next time."""
    with suppress(Refused, Unknown):
        lake.sweep(table, name)
        return True
    return False
