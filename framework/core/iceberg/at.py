"""The snapshot of a table that a question about an earlier moment reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from framework.base import iso_times
from framework.base.errors import SluiceError
from framework.core.iceberg.main_line import main_line, own_batch
from framework.core.iceberg.metadata import Metadata


@dataclass(frozen=True)
class OfBatch:
    """The commit of the batch with this number."""

    number: int


Moment = datetime | int | OfBatch  # a time, the id of a snapshot, or a batch


def snapshot_at(table: Metadata, name: str, moment: Moment) -> int:
    """The snapshot with this id or of this batch, or the one that was main at this moment."""
    if isinstance(moment, OfBatch):
        return _of_batch(table, name, moment.number)
    if isinstance(moment, int):
        if moment in table.snapshots:
            return moment
        hint = f"`sluice history {name}` lists the snapshots that are there; a time works for several tables"
        raise SluiceError("no-such-snapshot", f"{name} has no snapshot {moment}", hint)
    return _at_moment(table, name, moment)


def _of_batch(table: Metadata, name: str, number: int) -> int:
    for snapshot in main_line(table):
        if own_batch(snapshot) == number:
            return int(snapshot["snapshot-id"])
    hint = f"`sluice history {name}` lists the batches that are there"
    raise SluiceError("no-such-snapshot", f"{name} has no batch {number}, or its snapshot has expired", hint)


def newest_until(table: Metadata, pipeline: str, name: str, time: datetime) -> int:
    """The newest snapshot that main still has and that was published at `time` or before it."""
    line = list(main_line(table))
    snapshot_id = next((int(snapshot["snapshot-id"]) for snapshot in line if table.published(snapshot) <= time), None)
    if snapshot_id is not None:
        return snapshot_id
    oldest = iso_times.text(table.published(line[-1]))
    message = (
        f"{name} has no snapshot of {iso_times.text(time)} or before; the oldest one is {line[-1]['snapshot-id']} of {oldest}"
    )
    hint = f"`sluice rollback {pipeline} --to {oldest}` goes back to that one; `sluice history {pipeline}` lists all"
    raise SluiceError("no-snapshot-then", message, hint)


def main_at(table: Metadata, time: datetime) -> int | None:
    """The snapshot that was main at `time`, by the log of main's moves, which has rollbacks, too. None if the log does not go back so
    far, or the snapshot has expired."""
    log = [(_time(entry["timestamp-ms"]), int(entry["snapshot-id"])) for entry in table.document.get("snapshot-log") or ()]
    snapshots = [snapshot for moment, snapshot in log if moment <= time]
    return snapshots[-1] if snapshots and snapshots[-1] in table.snapshots else None


def _at_moment(table: Metadata, name: str, moment: datetime) -> int:
    """The snapshot that was main at `moment`: by the log or, where expired snapshots have shortened it, by main's ancestors."""
    logged_id = main_at(table, moment)
    if logged_id is not None:
        return logged_id
    line = list(main_line(table))
    index = next((index for index, snapshot in enumerate(line) if table.published(snapshot) <= moment), 0)
    if index and line[index - 1].get("parent-snapshot-id") == line[index]["snapshot-id"]:
        return int(line[index]["snapshot-id"])
    if index:
        raise _in_gap(name, moment, *(iso_times.text(table.published(snapshot)) for snapshot in (line[index], line[index - 1])))
    log = list(table.document.get("snapshot-log") or ())
    since = f"; what is known begins at {iso_times.text(_time(log[0]['timestamp-ms']))}" if log else ""
    hint = f"`sluice history {name}` lists the snapshots that are there; `maintain` says how long they are kept"
    raise SluiceError(
        "no-snapshot-then", f"{name} was not there at {iso_times.text(moment)}, or its snapshot has expired{since}", hint
    )


def _in_gap(name: str, moment: datetime, older_time: str, newer_time: str) -> SluiceError:
    """The error for a moment whose snapshot has been thinned out."""
    message = f"the snapshot that {name} had at {iso_times.text(moment)} has expired"
    hint = f"the nearest ones that are there are of {older_time} and {newer_time}; `maintain` says which ones are kept"
    return SluiceError("no-snapshot-then", message, hint)


def _time(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)
