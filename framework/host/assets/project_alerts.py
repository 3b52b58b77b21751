"""A sensor for a Dagster project of one's own: it tells of failed runs and of failed checks, also of checks that a sensor reported.

Dagster's own failure sensors see runs. A check that a sensor reports has none, and neither does a table that nobody loads.

*Guarantee* A failed run is told once. So is a check that fails, and once more when it no longer does. What could not be sent is sent by a
later tick; twice only if the daemon dies between sending and noting it. What is known is the sensor's cursor, in Dagster's storage.
*Limit* A check is judged by its last result at each tick: one that fails and passes between two ticks is not told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckSeverity,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from framework.base.amounts import counted
from framework.base.errors import SluiceError
from framework.base.pauses import Pauses
from framework.host.assets import check_records, default_status as statuses, incidents
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.notified import notified
from framework.host.assets.telling import Tell, Telling

_MOST = 100  # failed runs of one tick; the next one tells of the others
_KEPT = 200  # failed runs that somebody has yet to be told of; older ones are given up


@dataclass(kw_only=True)
class _Memory:
    """The incidents that were told, and to which receivers. `cursor` is that of the last failed run, `runs` are those of which somebody
    has yet to be told, `checks` those that fail. `pauses`: of receivers that failed."""

    cursor: str | None = None
    runs: dict[str, list[str]] = field(default_factory=dict)
    checks: dict[str, list[str]] = field(default_factory=dict)
    pauses: Pauses = field(default_factory=dict)


def build_sluice_alert_sensor(
    tell: Tell | None = None,
    *,
    alert: str | None = None,
    specs: str | Path = "specs",
    env: str | None = None,
    warnings: bool = False,
    name: str = "sluice_alerts",
    minimum_interval_seconds: int = 30,
    default_status: DefaultStatus = "stopped",
) -> SensorDefinition:
    """A sensor that tells of failed runs and failed checks of its code location, whichever library made them.

    - `tell`: a function that is called with each `DagsterIncident`. If it raises, it is called again at the next tick.
    - `alert`: the name of an `alert` document; who is in its `notify` is told, in place of `tell` or beside it.
    - `specs`, `env`: the folder with the specs that have the alert, and the environment.
    - `warnings`: whether checks that fail with the severity WARN are told, too.
    """
    statuses.require_valid(default_status)
    if tell is None and alert is None:
        raise SluiceError(
            "nobody-is-told", "the sensor has nobody to tell", "give it a function, or `alert=` with an alert's name"
        )
    receivers = {**({"tell": tell} if tell else {}), **(notified(alert, Path(specs), env) if alert else {})}

    @sensor(
        name=name, minimum_interval_seconds=minimum_interval_seconds, default_status=statuses.of_sensors(default_status),
        description="Tells of failed runs and failed checks of this code location.",
    )  # fmt: skip
    def tell_all(context: SensorEvaluationContext) -> SensorResult:
        return _Tick(context, receivers, warnings).result()

    return tell_all


class _Tick:
    """One tick of the sensor."""

    def __init__(self, context: SensorEvaluationContext, receivers: Mapping[str, Tell], warnings: bool) -> None:
        self._context, self._warnings = context, warnings
        self._instance: DagsterInstance = context.instance
        self._memory = _read(context.cursor)
        self._telling = Telling(receivers, self._memory.pauses, context.log)

    def result(self) -> SensorResult:
        self._tell_runs()
        self._tell_checks()
        failures = counted(self._telling.failed, "message")
        trouble = f"; {failures} could not be sent: a later tick tries again" if self._telling.failed else ""
        return SensorResult(
            cursor=json.dumps(asdict(self._memory)),
            skip_reason=SkipReason(f"{counted(self._telling.sent, 'message')} sent{trouble}"),
        )

    def _tell_runs(self) -> None:
        runs, is_first = self._memory.runs, self._memory.cursor is None
        page = self._instance.fetch_run_status_changes(
            DagsterEventType.RUN_FAILURE, limit=1 if is_first else _MOST, cursor=self._memory.cursor, ascending=not is_first
        )
        self._memory.cursor = page.cursor or self._memory.cursor
        for record in () if is_first else page.records:
            runs.setdefault(record.run_id, [])
        for run_id, names in list(runs.items()):
            run = self._instance.get_run_by_id(run_id)
            is_here = run is not None and _is_here(run, self._context)
            if run is not None and is_here:
                names += self._telling.tell(incidents.of_run(self._instance, run), self._telling.names - set(names))
            if not is_here or self._telling.names <= set(names):
                del runs[run_id]
        for run_id in list(runs)[:-_KEPT]:
            del runs[run_id]

    def _tell_checks(self) -> None:
        checks = self._memory.checks
        evaluations = {incidents.key_of(key): evaluation for key, evaluation in self._evaluations()}
        for key, names in list(checks.items()):
            evaluation = evaluations.get(key)
            if evaluation is not None and not self._fails(evaluation):
                told_names = self._telling.tell(incidents.over(evaluation), names)
                names[:] = [name for name in names if name in self._telling.names and name not in told_names]
            if evaluation is None or (not self._fails(evaluation) and not names):
                del checks[key]  # also of a check that is not in the code any more
        for key, evaluation in evaluations.items():
            if self._fails(evaluation):
                names = checks.setdefault(key, [])
                names += self._telling.tell(incidents.of_check(evaluation), self._telling.names - set(names))

    def _fails(self, evaluation: AssetCheckEvaluation) -> bool:
        return not evaluation.passed and (self._warnings or evaluation.severity is not AssetCheckSeverity.WARN)

    def _evaluations(self) -> Iterator[tuple[AssetCheckKey, AssetCheckEvaluation]]:
        """The last evaluation of each check, also where a run has planned another one since and did not come to it."""
        repository = self._context.repository_def
        keys = sorted(repository.asset_graph.asset_check_keys if repository else (), key=incidents.key_of)
        for key, record in check_records.latest(self._instance, keys).items():
            evaluation = record.evaluation if check_records.is_judged(record) else check_records.last_judged(self._instance, key)
            if evaluation is not None:
                yield key, evaluation


def _read(cursor: str | None) -> _Memory:
    """The memory of a cursor. One that cannot be read is empty: then what fails is told once more."""
    with suppress(ValueError, TypeError):
        memory = _Memory(**json.loads(cursor or "{}"))
        if all(isinstance(part, dict) for part in (memory.runs, memory.checks, memory.pauses)):
            return memory
    return _Memory()


def _is_here(run: DagsterRun, context: SensorEvaluationContext) -> bool:
    """Whether a run is of the sensor's code location. One that a command started has no origin: then its assets say it."""
    origin, here, repository = run.remote_job_origin, context.code_location_origin, context.repository_def
    if origin is not None and here is not None:
        return origin.repository_origin.code_location_origin.location_name == here.location_name
    if repository is None:
        return True
    return repository.has_job(run.job_name) and (run.asset_selection or set()) <= set(repository.asset_graph.get_all_asset_keys())
