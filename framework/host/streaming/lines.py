"""A stream's events as lines: for people, or one JSON object each for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from framework.base import iso_times
from framework.base.amounts import counted
from framework.base.clock import utc_now
from framework.core.follow.follow import Followed
from framework.core.run import events as of_runs
from framework.core.stream import events
from framework.core.stream.events import StreamEvent
from framework.operations.metrics import in_words


def text_of(event: StreamEvent) -> str:
    """The text of an event for a person; empty where there is nothing to say."""
    match event:
        case events.Started(names):
            return (
                f"keeps {counted(len(names), 'table')} up to date: {', '.join(names)}" if names else "no pipeline has a schedule"
            )
        case events.Away(error):
            return f"{error.message}; what needs it waits"
        case events.Back(error, seconds):
            return f"it answers again after {seconds:.0f} s: {error.message}"
        case events.Rests(pipeline, error, seconds):
            return f"{pipeline.name}: {error}\n  tried again in {seconds:.0f} s"
        case events.Recovered(pipeline):
            return f"{pipeline.name}: goes on"
        case events.Changed(new, changed, gone):
            parts = {"new": new, "changed": changed, "gone": gone}
            texts = "; ".join(f"{word}: {', '.join(names)}" for word, names in parts.items() if names)
            return f"the specs changed: {texts or 'no pipeline is another one'}"
        case events.NotTaken(error):
            return f"the specs changed, and have problems; what runs goes on: {error}"
        case events.StandsBy(names, owner):
            return f"{owner} streams {', '.join(names)}: this one stands by"
        case events.TookOver(names):
            return f"took over: {', '.join(names)}"
        case of_runs.BatchDone(pipeline, batch):
            waiting = (f"{batch.waiting:,} waiting",) if batch.waiting else ()
            return ", ".join((f"{pipeline.name}: batch {batch.number}", *in_words(batch), f"{batch.seconds:.1f} s", *waiting))
        case of_runs.Maintained(_, done):
            return done.line
        case events.Aside(lines):
            return "\n".join(lines)
        case events.Unseen(error):
            return f"the stream cannot see what is new: {error}"
        case of_runs.Failed(follower=None):
            return ""  # as Rests or Away say
        case of_runs.Failed(pipeline, error, _):
            return f"{pipeline.name}: {error}"
        case of_runs.LeftOut(pipeline, reason):
            return f"{pipeline.name}: {reason}"
        case Followed():
            return event.line
        case _:
            return ""


def json_of(event: StreamEvent) -> str:
    """One line of JSON for an event that a person would read of; empty for others."""
    text = text_of(event)
    if not text:
        return ""
    fields = {"at": iso_times.text(utc_now()), "event": type(event).__name__, "message": text, **dict(_fields(event))}
    return json.dumps(fields)


def _fields(event: StreamEvent) -> Iterator[tuple[str, Any]]:
    for name, value in _parts(event).items():
        if value is not None:
            yield name, value


def _parts(event: StreamEvent) -> Mapping[str, Any]:
    pipeline = getattr(event, "pipeline", None)
    error = getattr(event, "error", None) or getattr(event, "reason", None)
    of_batch: Mapping[str, Any] = {}
    if isinstance(event, of_runs.BatchDone):
        batch = event.batch
        of_batch = {
            "batch": batch.number, "attempt": batch.attempt, "snapshot": batch.snapshot, "read": batch.read, "rows": batch.rows,
            "bad": batch.bad, "waiting": batch.waiting, "seconds": round(batch.seconds, 3),
        }  # fmt: skip
    return {
        "pipeline": pipeline and pipeline.name,
        "table": pipeline and pipeline.table.identifier,
        "code": error and error.code,
        "hint": error and error.hint,
        **of_batch,
    }
