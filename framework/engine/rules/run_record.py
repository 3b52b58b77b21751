"""What this machine remembers of pipelines, one small file each below `.sluice/pipelines/`: who paused them, and why the last run failed.

Limit: runs that use the same `.sluice` folder go by it. No row depends on it: without these files all goes on as before.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from framework.errors import Paused, RefusedError, SetupError, SluiceError
from framework.home import home, private


@dataclass(frozen=True, kw_only=True)
class FailedRun:
    """Why the last run of a pipeline ended; `suspended` where a person must decide before it goes on."""

    at: str
    code: str
    message: str
    hint: str
    suspended: bool


@dataclass(frozen=True)
class RunRecord:
    paused: str | None = None  # since when
    failed: FailedRun | None = None
    failed_at: str | None = None  # a digest of all that the run that failed went by


def read(pipeline: str) -> RunRecord:
    try:
        said = json.loads(_path(pipeline).read_text(encoding="utf-8"))
        return RunRecord(said["paused"], said["failed"] and FailedRun(**said["failed"]), said.get("failed_at"))
    except (OSError, ValueError, KeyError, TypeError):  # none, or not one of ours
        return RunRecord()


def pause(pipeline: str) -> RunRecord:
    notes = read(pipeline)
    return notes if notes.paused else _asked(pipeline, replace(notes, paused=_now()))


def resume(pipeline: str) -> None:
    _asked(pipeline, replace(read(pipeline), paused=None))


def refuse_paused(pipeline: str) -> None:
    if since := read(pipeline).paused:
        raise Paused("pipeline-paused", f"{pipeline} is paused since {since}", f"`sluice resume {pipeline}` lets it go on")


def record_failure(pipeline: str, error: SluiceError) -> None:
    said = FailedRun(at=_now(), code=error.code, message=error.message, hint=error.hint, suspended=isinstance(error, RefusedError))
    _write(pipeline, replace(read(pipeline), failed=said))


def record_failed_inputs(pipeline: str, digest: str) -> None:
    """What the run went by that failed last (`engine/observe/same_failure.py`)."""
    _write(pipeline, replace(read(pipeline), failed_at=digest))


def record_success(pipeline: str) -> None:
    notes = read(pipeline)
    if notes.failed is not None:
        _write(pipeline, replace(notes, failed=None, failed_at=None))


def forget(pipeline: str) -> None:
    _write(pipeline, RunRecord())


def _asked(pipeline: str, notes: RunRecord) -> RunRecord:
    """Writes what somebody asked for, who has to know if it cannot be."""
    try:
        _put(pipeline, notes)
    except OSError as error:
        message = f"{_path(pipeline)} cannot be written: {error.strerror}"
        raise SetupError("note-not-written", message, "free space there, or correct who may write") from None
    return notes


def _write(pipeline: str, notes: RunRecord) -> None:
    with suppress(OSError):  # a full or read-only disk keeps no run from going on
        _put(pipeline, notes)


def _put(pipeline: str, notes: RunRecord) -> None:
    path = _path(pipeline)
    if notes == RunRecord():
        path.unlink(missing_ok=True)
        return
    private("pipelines")
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(asdict(notes)), encoding="utf-8")
    beside.replace(path)


def _path(pipeline: str) -> Path:
    return home() / "pipelines" / f"{pipeline}.json"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
