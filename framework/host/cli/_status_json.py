"""The state of tables, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from framework.base import iso_times

if TYPE_CHECKING:
    from framework.operations.observe.followers import FollowerState
    from framework.operations.observe.status import Reason, Status


def document(environment: str, states: Sequence[Status]) -> dict[str, Any]:
    """The JSON document of `--json`."""
    moment = states[0].time if states else datetime.now(timezone.utc)
    return {"environment": environment, "at": iso_times.text(moment), "tables": [_table(status) for status in states]}


def _table(status: Status) -> dict[str, Any]:
    from framework.core.rules.protocol import parted

    watched, pipeline = status.progress, status.pipeline
    readable = not watched.catalog_away
    age = status.age(status.newest_event)
    return {
        "pipeline": pipeline.name,
        "table": watched.table,
        "catalog": pipeline.table.catalog.name,
        "state": status.state,
        "reasons": [_reason(reason) for reason in status.reasons],
        "paused_since": _time(status.paused),
        "streamed_by": status.streamed_by,
        "lag": {
            "records": watched.lag,
            "newest_event": _time(status.newest_event),
            "newest_event_seconds": None if age is None else round(age, 3),
            "newest_event_column": pipeline.event_time,
        },
        "last_commit": _time(watched.committed),
        "batch": watched.position.batch if watched.position else None,
        "rows": watched.rows if readable else None,
        "bad_rows": watched.bad_rows if readable else None,
        "bad_rows_waiting": watched.bad_waiting if readable else None,
        "files": watched.files if readable else None,
        "bytes": watched.bytes if readable else None,
        "freshness": {"within_seconds": pipeline.fresh_within, "fresh": status.fresh},
        "also": [_follower(follower) for follower in status.followers],
        "maintenance": [{"table": table.identifier, "says": table.words} for table in status.maintenance],
        "location": watched.location or None,
        "metadata_file": watched.metadata or None,
        "snapshot_id": None if watched.snapshot is None else str(watched.snapshot),
        "offsets": [
            {**dict(zip(("topic", "partition"), parted(offsets.partition), strict=True)),
             "position": offsets.next_offset, "end": offsets.end, "lag": offsets.waiting}
            for offsets in watched.offsets
        ],
        "metrics": _metrics(status),
    }  # fmt: skip


def _metrics(status: Status) -> dict[str, Any]:
    """The metrics of a table, with the sums of all its batches."""
    from framework.operations.metrics import values_of_table, values_of_work

    return {**values_of_table(status), **(values_of_work(status.work) if status.work else {})}


def _follower(follower: FollowerState) -> dict[str, Any]:
    failed = follower.failed
    return {
        "to": follower.follower.title, "state": follower.state, "rows_waiting": follower.rows, "code": failed and failed.code,
        "message": failed and failed.message, "hint": failed and failed.hint,
    }  # fmt: skip


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code, "message": reason.message, "hint": reason.hint, "do": reason.do,
        "suspended": reason.suspended, "at": _time(reason.time),
    }  # fmt: skip


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else iso_times.text(moment)
