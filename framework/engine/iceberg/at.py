"""The snapshot of a table that a question about an earlier moment reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.rules import protocol
from framework.engine.rules.protocol import Position
from framework.errors import SluiceError


@dataclass(frozen=True)
class OfBatch:
    """The commit of the batch with this number."""

    number: int


Moment = datetime | int | OfBatch  # a time, or the id of a snapshot


def snapshot_at(table: Metadata, name: str, at: Moment) -> int:
    """The snapshot with this id or of this batch, or the one that was main at this moment."""
    if isinstance(at, OfBatch):
        return _of_batch(table, name, at.number)
    if isinstance(at, int):
        if at in table.snapshots:
            return at
        hint = f"`sluice history {name}` lists the snapshots that are there; a time works for several tables"
        raise SluiceError("no-such-snapshot", f"{name} has no snapshot {at}", hint)
    return _at_moment(table, name, at)


def _of_batch(table: Metadata, name: str, number: int) -> int:
    for each in table.ancestors():
        text = metadata.summary(each).get(protocol.POSITION)
        if text and Position.read(text).batch == number:
            return int(each["snapshot-id"])
    hint = f"`sluice history {name}` lists the batches that are there"
    raise SluiceError("no-such-snapshot", f"{name} has no batch {number}, or its snapshot has expired", hint)


def _at_moment(table: Metadata, name: str, at: datetime) -> int:
    """By the log of what main was, which has rollbacks, too; where expired snapshots have shortened it, by main's own line."""
    log = [(_time(each["timestamp-ms"]), int(each["snapshot-id"])) for each in table.document.get("snapshot-log") or ()]
    before = [snapshot for moment, snapshot in log if moment <= at and snapshot in table.snapshots]
    if before:
        return before[-1]
    line = list(table.ancestors())
    for place, each in enumerate(line):
        if table.published(each) > at:
            continue
        if place and line[place - 1].get("parent-snapshot-id") == each["snapshot-id"]:
            return int(each["snapshot-id"])
        break
    since = f"; what is known begins at {log[0][0]:%Y-%m-%dT%H:%M:%SZ}" if log else ""
    hint = f"`sluice history {name}` lists the snapshots that are there; `maintain` says how long they are kept"
    raise SluiceError(
        "no-snapshot-then", f"{name} was not there at {at:%Y-%m-%dT%H:%M:%SZ}, or its snapshot has expired{since}", hint
    )


def _time(milliseconds: float) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
