"""The state of each pipeline, the reasons, and the next step: from its progress and from the record of its last run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Literal

from framework.base import iso_times
from framework.base.errors import CatalogAway, KafkaAway, NoTopic, SluiceError, SourceMissing
from framework.base.patience import KAFKA, KAFKA_GLANCE
from framework.core.maintain.due import Due, behind_a_run
from framework.core.rules import attempts, run_record
from framework.core.rules.protocol import BORN, Position
from framework.core.rules.run_record import CHECKED, FailedRun, RunRecord
from framework.operations.observe.followers import FollowerState, follower_states
from framework.operations.observe.progress import Progress, newest_event, read_progress
from framework.plan import Pipeline, Plan

State = Literal["pending", "syncing", "caught up", "paused", "suspended", "failing"]

_UNANSWERED = (CatalogAway, KafkaAway, NoTopic)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a pipeline is suspended or failing. `at`: when a run ended so, None where it is so now. `unanswered`: Kafka or the catalog
    does not answer now, which is seldom so of one table alone."""

    code: str
    message: str
    hint: str
    do: str
    suspended: bool
    at: datetime | None = None
    unanswered: bool = False


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
    maintenance: tuple[Due, ...] = ()  # that the next run does
    followers: tuple[FollowerState, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether a person must act."""
        return self.state in ("suspended", "failing") or any(each.failed for each in self.followers)

    def age(self, moment: datetime | None) -> float | None:
        """In seconds."""
        return None if moment is None else max(0.0, (self.at - moment).total_seconds())


def statuses(plan: Plan, pipelines: Iterable[Pipeline], patience: float = KAFKA_GLANCE) -> tuple[Status, ...]:
    chosen = tuple(pipelines)
    read = _progress(plan, chosen, patience)
    now = _now()
    answers = []
    for pipeline in chosen:
        status = _status(plan, pipeline, read, now)
        idle = bool(status.progress.trouble)
        maintenance = () if idle else behind_a_run(pipeline, now)
        answers.append(replace(status, maintenance=maintenance))
    return tuple(answers)


def status_of(plan: Plan, pipeline: Pipeline) -> Status:
    """The status of one pipeline, without what maintenance is due."""
    return _status(plan, pipeline, _progress(plan, (pipeline,), KAFKA), _now())


def _progress(plan: Plan, chosen: tuple[Pipeline, ...], patience: float) -> Mapping[str, Progress]:
    """By name, with all pipelines that write what the chosen ones read."""
    asked = {each.name: each for pipeline in chosen for each in (pipeline, *_before(plan, pipeline))}
    return dict(zip(asked, read_progress(plan, asked.values(), patience), strict=True))


def _before(plan: Plan, pipeline: Pipeline) -> Iterator[Pipeline]:
    """The pipelines that write what this one reads, the nearest first."""
    for table in pipeline.source.tables if pipeline.source else ():
        before = plan.pipeline(table.pipeline)
        if before:
            yield before
            yield from _before(plan, before)


def _status(plan: Plan, pipeline: Pipeline, read: Mapping[str, Progress], now: datetime) -> Status:
    progress, record = read[pipeline.name], run_record.read(pipeline.recorded_as)
    waits_before = any(read[each.name].lag != 0 for each in _before(plan, pipeline))
    latest, followers = None, tuple[FollowerState, ...]()
    if not progress.catalog_away:
        with suppress(SluiceError):  # what `progress` could not read either, and says
            latest = newest_event(pipeline)
            followers = tuple(follower_states(pipeline, progress.now, record))
    return replace(status_from(pipeline, progress, record, latest, now, waits_before), followers=followers)


def status_from(
    pipeline: Pipeline,
    progress: Progress,
    record: RunRecord,
    newest_event: datetime | None,
    now: datetime,
    waits_before: bool = False,
) -> Status:
    """`waits_before`: whether anything waits before the table that is read, in the topics that come first."""
    reasons = tuple(_reasons(pipeline, progress, record.failed))
    state = _state(progress, record, reasons)
    fresh = None
    if pipeline.fresh_within and _has_landed(progress.position):
        age = (now - progress.committed).total_seconds() if progress.committed else None
        fresh = (progress.lag == 0 and not waits_before) or (age is not None and age <= pipeline.fresh_within)
    paused = iso_times.read(record.paused) if record.paused else None
    return Status(
        pipeline=pipeline,
        progress=progress,
        at=now,
        state=state,
        reasons=reasons,
        paused=paused,
        newest_event=newest_event,
        fresh=fresh,
    )


def _state(progress: Progress, record: RunRecord, reasons: tuple[Reason, ...]) -> State:
    if record.paused:
        return "paused"
    if reasons:
        return "suspended" if any(reason.suspended for reason in reasons) else "failing"
    if not _has_landed(progress.position):
        return "pending"
    return "syncing" if progress.lag else "caught up"


def _has_landed(position: Position | None) -> bool:
    return position is not None and position.attempt != BORN


def _reasons(pipeline: Pipeline, progress: Progress, failed: FailedRun | None) -> Iterator[Reason]:
    trouble = progress.trouble
    # A table whose source table does not exist yet is only pending.
    if trouble and not (isinstance(trouble, SourceMissing) and not _has_landed(progress.position)):
        now = FailedRun.of(trouble, "")
        yield replace(_reason(pipeline, now, answers=False), unanswered=now.is_a(CatalogAway, KafkaAway))
    if failed and not (trouble and trouble.code == failed.code) and not _is_over(progress, failed):
        yield replace(_reason(pipeline, failed, answers=trouble is None), at=iso_times.read(failed.at))


def _reason(pipeline: Pipeline, failed: FailedRun, answers: bool) -> Reason:
    """`answers`: Kafka and the catalog answer now."""
    return Reason(
        code=failed.code,
        message=failed.message,
        hint=failed.hint,
        do=_next_step(pipeline, failed, answers),
        suspended=failed.suspended,
    )


def _is_over(progress: Progress, failed: FailedRun) -> bool:
    """Whether the failure of the last run is over: the position was moved since, as by `sluice accept`, or this check passes."""
    if progress.trouble is None and failed.is_a(*CHECKED):
        return True
    position = progress.position
    # A second later: the record has no fractions, and the batch before the failed one does not end the failure.
    return (
        position is not None
        and position.attempt != BORN
        and attempts.began(position.attempt) > iso_times.read(failed.at).timestamp() + 1
    )


def _next_step(pipeline: Pipeline, failed: FailedRun, answers: bool) -> str:
    run = f"`sluice run {pipeline.name}`"
    if failed.acceptable:
        return f"decide: `sluice accept {pipeline.name}` asks before it acts, then {run} continues; or undo the cause"
    if failed.suspended:
        return f"do what the hint says, then {run}"
    if failed.is_a(*_UNANSWERED):
        return f"it answers now: {run} continues" if answers else f"once it answers, {run} continues; no message is lost"
    return f"{run} retries it"


def _now() -> datetime:
    return datetime.now(timezone.utc)
