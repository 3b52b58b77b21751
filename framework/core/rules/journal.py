"""The record of each pipeline's runs on this machine, a small file in `.sluice/pipelines/`: since when it is paused, its last failure.

Here, a pipeline is named by its `journal_name`: each environment has records of its own, in a folder of its name.

Limit: only runs that use the same `.sluice` folder share it. No row depends on it: without these files, runs continue as before.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from framework.base import iso_times
from framework.base.clock import utc_now
from framework.base.errors import (
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
from framework.base.home import home, names, private, put, read as read_file
from framework.plan import Pipeline

_FOLDER = "pipelines"
# Errors that a check of the topic and the table raises as a run does: where it no longer raises them, neither does a run.
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
    def from_error(cls, error: SluiceError, time: str) -> FailedRun:
        return cls(
            at=time,
            code=error.code,
            message=error.message,
            hint=error.hint,
            suspended=isinstance(error, RefusedError),
            acceptable=error.accepts is not None,
            kind=error.kind,
        )

    def is_a(self, *kinds: type[SluiceError]) -> bool:
        return issubclass(kind_named(self.kind), kinds)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    paused: str | None = None  # since when
    failed: FailedRun | None = None
    failed_at: str | None = None  # digests of the inputs of the run that failed, and of its secrets
    followers: Mapping[str, FailedRun] = field(default_factory=dict)  # by their tags, those that failed last
    moved: str | None = None  # when a person last moved its position


def read(pipeline: str) -> RunRecord:
    try:
        fields = json.loads(read_file(file(pipeline)))
        followers = {
            tag: failed for tag, follower_fields in fields.get("followers", {}).items() if (failed := _failed(follower_fields))
        }
        return RunRecord(
            paused=fields["paused"], failed=_failed(fields["failed"]), failed_at=fields.get("failed_at"), followers=followers,
            moved=fields.get("moved"),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # none, or not one of ours
        return RunRecord()


def _failed(fields: Mapping[str, Any] | None) -> FailedRun | None:
    """The failed run from its fields; None for those of an older version, which did not record the kind: the next run finds out."""
    return FailedRun(**fields) if fields and "kind" in fields else None


def recorded() -> list[str]:
    """The pipelines that have a record, of all environments."""
    return [name for name in names(home() / _FOLDER) if read(name) != RunRecord()]


def pause(pipeline: str) -> RunRecord:
    return _changed_or_raise(pipeline, lambda record: record if record.paused else replace(record, paused=_now()))


def resume(pipeline: str) -> None:
    _changed_or_raise(pipeline, lambda record: replace(record, paused=None))


def refuse_paused(pipeline: Pipeline) -> None:
    if since := read(pipeline.journal_name).paused:
        raise paused(pipeline, since)


def paused(pipeline: Pipeline, since: str) -> Paused:
    name = pipeline.name
    return Paused("pipeline-paused", f"{name} is paused since {since}", f"`sluice resume {name}` resumes it")


def record_failure(pipeline: str, error: SluiceError) -> None:
    _change(pipeline, lambda record: replace(record, failed=FailedRun.from_error(error, _now())))


def record_follower(pipeline: str, tag: str, error: SluiceError | None) -> None:
    """Records the failure of a follower, or that it has caught up."""
    failures = {tag: FailedRun.from_error(error, _now())} if error else {}

    def change(record: RunRecord) -> RunRecord:
        other_failures = {other_tag: failure for other_tag, failure in record.followers.items() if other_tag != tag}
        return replace(record, followers={**other_failures, **failures})

    if error or tag in read(pipeline).followers:
        _change(pipeline, change)


def record_failed_inputs(pipeline: str, digest: str) -> None:
    """Records the inputs of the run that failed last (`framework/core/run/same_failure.py`)."""
    _change(pipeline, lambda record: replace(record, failed_at=digest))


def record_success(pipeline: str) -> None:
    if read(pipeline).failed is not None:
        _change(pipeline, lambda record: replace(record, failed=None, failed_at=None))


def record_moved(pipeline: str) -> None:
    """Records that a person moved the pipeline's position: whoever runs it all the time looks again."""
    _change(pipeline, lambda record: replace(record, moved=iso_times.text(utc_now())))


def forget(pipeline: str) -> None:
    _change(pipeline, lambda _record: RunRecord())


def _changed_or_raise(pipeline: str, change: Callable[[RunRecord], RunRecord]) -> RunRecord:
    """Changes a record as a person asked for; raises if it cannot be written."""
    try:
        return _changed(pipeline, change)
    except OSError as error:
        message = f"{file(pipeline)} cannot be written: {error.strerror}"
        raise SetupError("note-not-written", message, "free some space there, or correct its permissions") from None


def _change(pipeline: str, change: Callable[[RunRecord], RunRecord]) -> None:
    with suppress(OSError):  # a full or read-only disk stops no run
        _changed(pipeline, change)


def _changed(pipeline: str, change: Callable[[RunRecord], RunRecord]) -> RunRecord:
    """Changes a record, one process at a time: a pause is not lost where a run ends at the same moment."""
    path = file(pipeline)
    folder = os.open(private(str(path.parent)), os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems of networks lock no folder
            fcntl.flock(folder, fcntl.LOCK_EX)
        before = read(pipeline)
        after = change(before)
        if after == RunRecord():
            path.unlink(missing_ok=True)
        elif after != before:
            put(path, json.dumps(asdict(after)))
        return after
    finally:
        os.close(folder)


def file(pipeline: str) -> Path:
    return home() / _FOLDER / f"{pipeline}.json"


def _now() -> str:
    return iso_times.text(utc_now().replace(microsecond=0))
