"""In which state each pipeline is, why, and what to do: from what was watched and from what the last run came to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from framework.engine.observe.progress import Progress, newest_event, read_progress
from framework.engine.rules import attempts, run_record
from framework.engine.rules.protocol import BORN, Position
from framework.engine.rules.run_record import FailedRun, RunRecord
from framework.errors import RefusedError
from framework.model import Pipeline, Plan
from framework.patience import KAFKA_GLANCE

State = Literal["pending", "syncing", "caught up", "paused", "suspended", "failing"]

# What a run would find as a look does: where a look does not find it any more, neither would a run.
_JUDGED_NOW = (
    *("rolled-back", "topic-recreated", "offsets-gone", "topic-shorter", "table-recreated", "table-not-ours", "table-of-another"),
    "source-missing",
)
_UNANSWERED = ("kafka-unreachable", "catalog-unreachable", "no-topic")


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a pipeline is suspended or failing; `at` is when a run ended so, None where it is so now."""

    code: str
    message: str
    hint: str
    do: str
    suspended: bool
    at: datetime | None = None

    @property
    def unanswered(self) -> bool:
        """Whether Kafka or the catalog does not answer now, which is seldom so of one table alone."""
        return self.at is None and self.code in ("kafka-unreachable", "catalog-unreachable")


@dataclass(frozen=True, kw_only=True)
class Status:
    """A pipeline at one moment. `fresh` is None where the spec has no `fresh_within`, or nothing has landed yet."""

    pipeline: Pipeline
    progress: Progress
    at: datetime
    state: State
    reasons: tuple[Reason, ...]
    paused: datetime | None
    newest_event: datetime | None
    fresh: bool | None

    @property
    def bad(self) -> bool:
        """Whether somebody must look at it."""
        return self.state in ("suspended", "failing")

    def age(self, moment: datetime | None) -> float | None:
        """In seconds."""
        return None if moment is None else max(0.0, (self.at - moment).total_seconds())


def statuses(plan: Plan, pipelines: Iterable[Pipeline], patience: float = KAFKA_GLANCE) -> tuple[Status, ...]:
    chosen = tuple(pipelines)
    seen = read_progress(plan, chosen, patience)
    now = datetime.now(timezone.utc)
    return tuple(
        judged(pipeline, each, run_record.read(pipeline.name), None if each.catalog_away else newest_event(pipeline), now)
        for pipeline, each in zip(chosen, seen, strict=True)
    )


def judged(pipeline: Pipeline, seen: Progress, noted: RunRecord, latest: datetime | None, now: datetime) -> Status:
    reasons = tuple(_reasons(pipeline, seen, noted.failed))
    state = _state(seen, noted, reasons)
    fresh = None
    if pipeline.fresh_within and _has_landed(seen.position):
        since = (now - seen.committed).total_seconds() if seen.committed else None
        fresh = seen.lag == 0 or (since is not None and since <= pipeline.fresh_within)
    paused = datetime.fromisoformat(noted.paused) if noted.paused else None
    return Status(pipeline=pipeline, progress=seen, at=now, state=state, reasons=reasons, paused=paused, newest_event=latest, fresh=fresh)


def _state(seen: Progress, noted: RunRecord, reasons: tuple[Reason, ...]) -> State:
    if noted.paused:
        return "paused"
    if reasons:
        return "suspended" if any(reason.suspended for reason in reasons) else "failing"
    if not _has_landed(seen.position):
        return "pending"
    return "syncing" if seen.lag else "caught up"


def _has_landed(position: Position | None) -> bool:
    return position is not None and position.attempt != BORN


def _reasons(pipeline: Pipeline, seen: Progress, failed: FailedRun | None) -> Iterator[Reason]:
    trouble = seen.trouble
    # Of a table that is made from another one that nobody has made yet, there is nothing to say but that it is pending.
    if trouble and not (trouble.code == "source-missing" and not _has_landed(seen.position)):
        suspended = isinstance(trouble, RefusedError)
        yield Reason(
            code=trouble.code,
            message=trouble.message,
            hint=trouble.hint,
            do=_then(pipeline, trouble.code, trouble.hint, suspended, False),
            suspended=suspended,
            at=None,
        )
    if failed and not (trouble and trouble.code == failed.code) and not _overtaken(seen, failed):
        at = datetime.fromisoformat(failed.at)
        do = _then(pipeline, failed.code, failed.hint, failed.suspended, trouble is None)
        yield Reason(code=failed.code, message=failed.message, hint=failed.hint, do=do, suspended=failed.suspended, at=at)


def _overtaken(seen: Progress, failed: FailedRun) -> bool:
    """Whether what the last run failed by is no more: the position was moved since, as `sluice accept` does, or a look tells."""
    if seen.trouble is None and failed.code in _JUDGED_NOW:
        return True
    position = seen.position
    # A second later: the note has no fractions, and the batch before the one that failed is no answer to it.
    return (
        position is not None
        and position.attempt != BORN
        and attempts.began(position.attempt) > datetime.fromisoformat(failed.at).timestamp() + 1
    )


def _then(pipeline: Pipeline, code: str, hint: str, suspended: bool, answers: bool) -> str:
    """What to do. `answers`: Kafka and the catalog do, now."""
    run = f"`sluice run {pipeline.name}`"
    if "`sluice accept" in hint:
        return f"decide: `sluice accept {pipeline.name}` asks before it does so, then {run} goes on; or undo what caused it"
    if suspended:
        return f"do what the hint says, then {run}"
    if code in _UNANSWERED:
        return f"it answers now: {run} goes on" if answers else f"once it is there, {run} goes on; nothing is lost"
    return f"{run} tries again"
