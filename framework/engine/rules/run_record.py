"""The record of each pipeline's runs on this machine, a small file in `.sluice/pipelines/`: since when it is paused, its last failure.

Limit: only runs that use the same `.sluice` folder share it. No row depends on it: without these files, runs continue as before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from framework.errors import (
    NotOwned,
    OffsetsGone,
    Paused,
    RefusedError,
    RolledBack,
    SetupError,
    SluiceError,
    SourceMissing,
    TableRecreated,
    TopicRecreated,
    kind_named,
)
from framework.home import home, private, put

# Errors that a look at the topic and the table raises as a run does: where it no longer raises them, neither does a run.
CHECKED = (NotOwned, OffsetsGone, RolledBack, SourceMissing, TableRecreated, TopicRecreated)


@dataclass(frozen=True, kw_only=True)
class FailedRun:
    """The error of a pipeline's last run. `suspended`: a person must act before the next run; `acceptable`: `sluice accept` can settle it.
    `kind` is the name of the error's class."""

    at: str
    code: str
    message: str
    hint: str
    suspended: bool
    acceptable: bool
    kind: str

    @classmethod
    def of(cls, error: SluiceError, at: str) -> FailedRun:
        return cls(
            at=at,
            code=error.code,
            message=error.message,
            hint=error.hint,
            suspended=isinstance(error, RefusedError),
            acceptable=error.accepts is not None,
            kind=error.kind,
        )

    def is_a(self, *kinds: type[SluiceError]) -> bool:
        return issubclass(kind_named(self.kind), kinds)


@dataclass(frozen=True)
class RunRecord:
    paused: str | None = None  # since when
    failed: FailedRun | None = None
    failed_at: str | None = None  # a digest of the inputs of the run that failed
    followers: Mapping[str, FailedRun] = field(default_factory=dict)  # by their tags, those that failed last


def read(pipeline: str) -> RunRecord:
    try:
        fields = json.loads(_path(pipeline).read_text(encoding="utf-8"))
        followers = {tag: failed for tag, each in fields.get("followers", {}).items() if (failed := _failed(each))}
        return RunRecord(fields["paused"], _failed(fields["failed"]), fields.get("failed_at"), followers)
    except (OSError, ValueError, KeyError, TypeError):  # none, or not one of ours
        return RunRecord()


def _failed(fields: Mapping[str, Any] | None) -> FailedRun | None:
    """None of an older version, which did not record the kind: the next run finds out."""
    return FailedRun(**fields) if fields and "kind" in fields else None


def pause(pipeline: str) -> RunRecord:
    record = read(pipeline)
    return record if record.paused else _write_or_raise(pipeline, replace(record, paused=_now()))


def resume(pipeline: str) -> None:
    _write_or_raise(pipeline, replace(read(pipeline), paused=None))


def refuse_paused(pipeline: str) -> None:
    if since := read(pipeline).paused:
        raise Paused("pipeline-paused", f"{pipeline} is paused since {since}", f"`sluice resume {pipeline}` resumes it")


def record_failure(pipeline: str, error: SluiceError) -> None:
    _write(pipeline, replace(read(pipeline), failed=FailedRun.of(error, _now())))


def record_follower(pipeline: str, tag: str, error: SluiceError | None) -> None:
    """Records the failure of a follower, or that it has caught up."""
    record = read(pipeline)
    others = {each: failed for each, failed in record.followers.items() if each != tag}
    if error or len(others) < len(record.followers):
        _write(pipeline, replace(record, followers={**others, **({tag: FailedRun.of(error, _now())} if error else {})}))


def record_failed_inputs(pipeline: str, digest: str) -> None:
    """Records the inputs of the run that failed last (`engine/observe/same_failure.py`)."""
    _write(pipeline, replace(read(pipeline), failed_at=digest))


def record_success(pipeline: str) -> None:
    record = read(pipeline)
    if record.failed is not None:
        _write(pipeline, replace(record, failed=None, failed_at=None))


def forget(pipeline: str) -> None:
    _write(pipeline, RunRecord())


def _write_or_raise(pipeline: str, record: RunRecord) -> RunRecord:
    """Writes a record that a person asked for; raises if it cannot be written."""
    try:
        _put(pipeline, record)
    except OSError as error:
        message = f"{_path(pipeline)} cannot be written: {error.strerror}"
        raise SetupError("note-not-written", message, "free some space there, or correct its permissions") from None
    return record


def _write(pipeline: str, record: RunRecord) -> None:
    with suppress(OSError):  # a full or read-only disk stops no run
        _put(pipeline, record)


def _put(pipeline: str, record: RunRecord) -> None:
    path = _path(pipeline)
    if record == RunRecord():
        path.unlink(missing_ok=True)
        return
    private("pipelines")
    put(path, json.dumps(asdict(record)))


def _path(pipeline: str) -> Path:
    return home() / "pipelines" / f"{pipeline}.json"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
