"""A sensor for a Dagster project of one's own: it tells of failed runs and of failed checks, also of checks that a sensor reported.

Dagster's own failure sensors see runs. A check that a sensor reports has none, and neither does a table that nobody loads.

*Guarantee* A failed run is told once. So is a check that fails, and once more when it passes again. What could not be sent is sent by a
later tick; twice only if the daemon dies between sending and noting it. What is known is the sensor's cursor, in Dagster's storage.
*Limit* A check is judged by its last result at each tick: one that fails and passes between two ticks is not told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dagster import (
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
from framework.host.assets import check_records, default_status as statuses, incidents
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.incidents import DagsterIncident
from framework.host.assets.notified import notified

_MOST = 100  # failed runs of one tick; the next one tells of the others


Tell = Callable[[DagsterIncident], object]


@dataclass(kw_only=True)
class _Memory:
    """The incidents that were told, and to which receivers. `cursor` is that of the last failed run, `runs` are those of which somebody
    has yet to be told, `checks` those that fail."""

    cursor: str | None = None
    runs: dict[str, list[str]] = field(default_factory=dict)
    checks: dict[str, list[str]] = field(default_factory=dict)


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
        self._context, self._receivers, self._warnings = context, receivers, warnings
        self._instance: DagsterInstance = context.instance
        self._memory = _read(context.cursor)
        self._told, self._failures = 0, 0

    def result(self) -> SensorResult:
        self._tell_runs()
        self._tell_checks()
        failures = (
            f"; {counted(self._failures, 'message')} could not be sent: the next tick tries again" if self._failures else ""
        )
        return SensorResult(
            cursor=json.dumps(asdict(self._memory)), skip_reason=SkipReason(f"{counted(self._told, 'message')} sent{failures}")
        )

    def _tell_runs(self) -> None:
        is_first = self._memory.cursor is None
        page = self._instance.fetch_run_status_changes(
            DagsterEventType.RUN_FAILURE, limit=1 if is_first else _MOST, cursor=self._memory.cursor, ascending=not is_first
        )
        self._memory.cursor = page.cursor or self._memory.cursor
        for record in () if is_first else page.records:
            self._memory.runs.setdefault(record.run_id, [])
        for run_id, told in list(self._memory.runs.items()):
            run = self._instance.get_run_by_id(run_id)
            if run is not None and _is_here(run, self._context):
                told += self._tell(incidents.of_run(self._instance, run), self._receivers.keys() - told)
            if run is None or not _is_here(run, self._context) or not self._receivers.keys() - told:
                del self._memory.runs[run_id]

    def _tell_checks(self) -> None:
        failing = {incident.key: incident for incident in self._failing()}
        for key, told in list(self._memory.checks.items()):
            if key not in failing:
                sent = self._tell(incidents.over(key), self._receivers.keys() & told)
                self._memory.checks[key] = [name for name in told if name in self._receivers and name not in sent]
                if not self._memory.checks[key]:
                    del self._memory.checks[key]
        for key, incident in failing.items():
            told = self._memory.checks.setdefault(key, [])
            told += self._tell(incident, self._receivers.keys() - told)

    def _failing(self) -> Iterator[DagsterIncident]:
        """The checks that fail. One that a run is going to evaluate, or whose run died, is as it was before."""
        for key, record in check_records.latest(self._instance, sorted(self._keys(), key=incidents.key_of)).items():
            evaluation = check_records.shown_evaluation(self._instance, record)
            if evaluation is None or evaluation.passed:
                continue
            if evaluation.severity is AssetCheckSeverity.WARN and not self._warnings:
                continue
            yield incidents.of_check(key, evaluation)

    def _keys(self) -> Iterator[AssetCheckKey]:
        repository = self._context.repository_def
        yield from repository.asset_graph.asset_check_keys if repository else ()

    def _tell(self, incident: DagsterIncident, names: Collection[str]) -> list[str]:
        """Tells an incident to these receivers. Returns those that were told."""
        told = []
        for name in sorted(names):
            try:
                self._receivers[name](incident)
            except Exception as error:  # of the project's own function, too
                self._context.log.error(f"{incident.title}: {error}", exc_info=not isinstance(error, SluiceError))
                self._failures += 1
            else:
                told.append(name)
        self._told += len(told)
        return told


def _read(cursor: str | None) -> _Memory:
    """The memory of a cursor. One that cannot be read is empty: then what fails is told once more."""
    with suppress(ValueError, TypeError):
        memory = _Memory(**json.loads(cursor or "{}"))
        if isinstance(memory.runs, dict) and isinstance(memory.checks, dict):
            return memory
    return _Memory()


def _is_here(run: DagsterRun, context: SensorEvaluationContext) -> bool:
    """Whether a run is of the sensor's code location. One that was started in this process has no origin."""
    origin, here = run.remote_job_origin, context.code_location_origin
    return origin is None or here is None or origin.repository_origin.code_location_origin.location_name == here.location_name
