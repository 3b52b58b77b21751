"""The state of each pipeline, the reasons, and the next step: from its progress and from the record of its last run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from framework.base import iso_times
from framework.base.clock import Clock, utc_now
from framework.base.errors import CatalogAway, KafkaAway, NoTopic, SluiceError, SourceMissing
from framework.base.patience import KAFKA, KAFKA_GLANCE
from framework.core.maintain.due import Due, behind_a_run
from framework.core.rules import attempts, journal, work
from framework.core.rules.journal import CHECKED, FailedRun, RunRecord
from framework.core.rules.protocol import BORN, Position
from framework.core.rules.work import Work
from framework.core.run import leases
from framework.operations.observe.export_states import ExportState, export_states
from framework.operations.observe.followers import FollowerState, follower_states
from framework.operations.observe.progress import PipelineProgress, newest_event_in, read_progress, table_progress
from framework.plan import Pipeline, Plan

State = Literal["pending", "syncing", "caught up", "paused", "suspended", "failing"]

_UNANSWERED = (CatalogAway, KafkaAway, NoTopic)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """The reason why a pipeline is suspended or failing. `time`: when a run ended with it, None where it is current. `unanswered`: Kafka
    or the catalog does not answer now, which rarely concerns one table alone."""

    code: str
    message: str
    hint: str
    do: str
    suspended: bool
    time: datetime | None = None
    unanswered: bool = False


@dataclass(frozen=True, kw_only=True)
class Status:
    """A pipeline at one moment. `fresh` is None where the spec has no `fresh_within`, or nothing has landed yet."""

    pipeline: Pipeline
    progress: PipelineProgress
    time: datetime
    state: State
    reasons: tuple[Reason, ...]
    paused: datetime | None
    newest_event: datetime | None
    fresh: bool | None
    maintenance: tuple[Due, ...] = ()  # the maintenance that the next run does
    followers: tuple[FollowerState, ...] = ()
    exports: tuple[ExportState, ...] = ()
    streamed_by: str | None = None  # the process of this machine that keeps the table up to date
    waited: Mapping[str, float] = field(default_factory=dict)  # seconds, by partition, where the process has looked before
    is_lag_known: bool = True  # what waits for it, and for the tables that it reads

    @property
    def bad(self) -> bool:
        """Whether a person must act."""
        return self.state in ("suspended", "failing") or any(follower.failed for follower in self.followers)

    @property
    def work(self) -> Work | None:
        """The work of all batches of the table; None where there is no table, or it cannot be read."""
        table = self.progress.table_metadata
        return work.read(table.properties) if table else None

    @property
    def is_late(self) -> bool | None:
        """Whether the table is late; None where it would be if anything waited, and nobody knows whether it does."""
        if self.progress.catalog_away or (self.fresh is False and not self.is_lag_known):
            return None
        return self.fresh is False

    def age(self, moment: datetime | None) -> float | None:
        """The age of a moment, in seconds."""
        return None if moment is None else max(0.0, (self.time - moment).total_seconds())


def statuses(
    plan: Plan, pipelines: Iterable[Pipeline], patience: float = KAFKA_GLANCE, clock: Clock = utc_now, maintenance: bool = True
) -> tuple[Status, ...]:
    """The statuses of pipelines; with `maintenance`, also what is due of that, for which lists of files are read."""
    chosen_pipelines = tuple(pipelines)
    progresses = _progress(plan, chosen_pipelines, patience)
    current_time = clock()
    full_statuses = []
    for pipeline in chosen_pipelines:
        status = _status(plan, pipeline, progresses, current_time)
        due = behind_a_run(pipeline, current_time) if maintenance and not status.progress.trouble else ()
        full_statuses.append(replace(status, maintenance=due))
    return tuple(full_statuses)


def status_of(plan: Plan, pipeline: Pipeline) -> Status:
    """The status of one pipeline, without what maintenance is due."""
    return _status(plan, pipeline, _progress(plan, (pipeline,), KAFKA), utc_now())


def status_by_catalog(pipeline: Pipeline) -> Status:
    """The status of one pipeline without what waits for it: no Kafka is asked."""
    progress, record = table_progress(pipeline), journal.read(pipeline.journal_name)
    latest_event = None if progress.trouble else newest_event_in(pipeline, progress.table_metadata)
    return status_from(pipeline, progress, record, latest_event, utc_now())


def _progress(plan: Plan, chosen_pipelines: tuple[Pipeline, ...], patience: float) -> Mapping[str, PipelineProgress]:
    """The progress by name of the chosen pipelines, and of all pipelines that write the tables which these read."""
    needed_pipelines = {
        needed_pipeline.name: needed_pipeline
        for pipeline in chosen_pipelines
        for needed_pipeline in (pipeline, *_upstream(plan, pipeline))
    }
    return dict(zip(needed_pipelines, read_progress(plan, needed_pipelines.values(), patience), strict=True))


def _upstream(plan: Plan, pipeline: Pipeline) -> Iterator[Pipeline]:
    """The pipelines that write what this one reads, the nearest first."""
    for table in pipeline.read_tables:
        writer = plan.pipeline(table.pipeline)
        if writer:
            yield writer
            yield from _upstream(plan, writer)


def _status(plan: Plan, pipeline: Pipeline, progresses: Mapping[str, PipelineProgress], current_time: datetime) -> Status:
    progress, record = progresses[pipeline.name], journal.read(pipeline.journal_name)
    waits_before = any(progresses[writer.name].lag != 0 for writer in _upstream(plan, pipeline))
    latest_event, followers = None, tuple[FollowerState, ...]()
    if not progress.catalog_away:
        with suppress(SluiceError):  # `progress` could not read it either, and has the error
            latest_event = newest_event_in(pipeline, progress.table_metadata)
            followers = tuple(follower_states(pipeline, progress.table_metadata, record))
    status = status_from(pipeline, progress, record, latest_event, current_time, waits_before)
    lags = [progress.lag, *(progresses[writer.name].lag for writer in _upstream(plan, pipeline))]
    return replace(
        status, followers=followers, exports=tuple(export_states(plan, pipeline, current_time)),
        streamed_by=leases.owner(pipeline.journal_name), is_lag_known=None not in lags,
    )  # fmt: skip


def status_from(
    pipeline: Pipeline,
    progress: PipelineProgress,
    record: RunRecord,
    newest_event: datetime | None,
    current_time: datetime,
    waits_before: bool = False,
) -> Status:
    """The status from its parts. `waits_before`: whether messages wait in the topics before the table that the pipeline reads."""
    reasons = tuple(_reasons(pipeline, progress, record.failed))
    state = _state(progress, record, reasons)
    fresh = None
    if pipeline.fresh_within and _has_landed(progress.position):
        age = (current_time - progress.committed).total_seconds() if progress.committed else None
        fresh = (progress.lag == 0 and not waits_before) or (age is not None and age <= pipeline.fresh_within)
    paused = iso_times.read(record.paused) if record.paused else None
    return Status(
        pipeline=pipeline,
        progress=progress,
        time=current_time,
        state=state,
        reasons=reasons,
        paused=paused,
        newest_event=newest_event,
        fresh=fresh,
    )


def _state(progress: PipelineProgress, record: RunRecord, reasons: tuple[Reason, ...]) -> State:
    if record.paused:
        return "paused"
    if reasons:
        return "suspended" if any(reason.suspended for reason in reasons) else "failing"
    if not _has_landed(progress.position):
        return "pending"
    return "syncing" if progress.lag else "caught up"


def _has_landed(position: Position | None) -> bool:
    return position is not None and position.attempt != BORN


def _reasons(pipeline: Pipeline, progress: PipelineProgress, failed: FailedRun | None) -> Iterator[Reason]:
    trouble = progress.trouble
    # A table whose source table does not exist yet is only pending.
    if trouble and not (isinstance(trouble, SourceMissing) and not _has_landed(progress.position)):
        failure = FailedRun.from_error(trouble, "")
        yield replace(_reason(pipeline, failure, answers=False), unanswered=failure.is_a(CatalogAway, KafkaAway))
    if failed and not (trouble and trouble.code == failed.code) and not _is_over(progress, failed):
        yield replace(_reason(pipeline, failed, answers=trouble is None), time=iso_times.read(failed.at))


def _reason(pipeline: Pipeline, failed: FailedRun, answers: bool) -> Reason:
    """The reason for a failure. `answers`: whether Kafka and the catalog answer now."""
    return Reason(
        code=failed.code,
        message=failed.message,
        hint=failed.hint,
        do=_next_step(pipeline, failed, answers),
        suspended=failed.suspended,
    )


def _is_over(progress: PipelineProgress, failed: FailedRun) -> bool:
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
