"""One look at all alerts: which hold for which tables, and who is told.

*Guarantee* Whoever judges, a receiver is told once that a table's incident has begun and once that it is over, also after a restart and
where sending failed meanwhile; twice only if a process dies between sending and noting it. What cannot be known, as while a catalog does
not answer, neither begins an incident nor ends it.
*Cost* A look at the tables of alerts, as by `sluice status`; with `where`, a query of each.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framework.base.clock import Clock, utc_now
from framework.base.errors import SluiceError
from framework.base.patience import KAFKA
from framework.operations.alerts import memory as memories
from framework.operations.alerts.facts import facts_of, sums_of
from framework.operations.alerts.key_ends import KeyEnds
from framework.operations.alerts.memory import Memory, TableIncident
from framework.operations.alerts.messages import Stage, content
from framework.operations.observe.status import statuses
from framework.plan import Plan, digest
from framework.plan.alert import Alert, TableFacts, Verdict
from framework.plan.notice import Notice, PartlySent

_LONGEST = 20.0  # seconds in which a look begins to send: Dagster ends a sensor that takes much longer
_STAGES: tuple[Stage, ...] = ("over", "began", "lasts")  # an incident's end comes before the next one's beginning


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An alert on one table. `why` it holds; `unknown`: nobody can know now. `since`: the second since when it has held."""

    alert: Alert
    pipeline: str
    table: str
    why: str = ""
    since: float | None = None
    unknown: bool = False

    @property
    def holds(self) -> bool:
        return self.since is not None


@dataclass(kw_only=True)
class Judgement:
    """The outcome of a look: each alert on each table, who was told, in words, and notices that were not sent. With `elsewhere`, another
    process is judging, and nothing was done."""

    judged: list[Judged] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    failures: list[SluiceError] = field(default_factory=list)
    elsewhere: bool = False


def alerts_of(plan: Plan) -> tuple[Alert, ...]:
    """The alerts of a plan."""
    return tuple(document.value for document in plan.documents_of("alert"))


def judge(plan: Plan, clock: Clock = utc_now, sends: bool = True, patience: float = 0.0) -> Judgement:
    """Judges all alerts, and tells who is to be told if `sends`. Another process that judges is waited for so many seconds."""
    alerts = alerts_of(plan)
    if not alerts:
        return Judgement()
    with memories.turn(plan.environment, patience) as turn:
        if turn is None:
            return Judgement(elsewhere=True)
        memory, file = turn
        return _AlertsLook(plan, alerts, memory, file, clock).judgement(sends)


class _AlertsLook:
    """One look at alerts, with the memory of the ones before."""

    def __init__(self, plan: Plan, alerts: Sequence[Alert], memory: Memory, file: Path, clock: Clock) -> None:
        self._plan, self._alerts, self._memory, self._file = plan, alerts, memory, file
        self._time = clock()
        pipelines = {pipeline.name: pipeline for alert in alerts for pipeline in alert.pipelines}
        self._statuses = statuses(plan, pipelines.values(), KAFKA, clock, maintenance=False)
        self._result = Judgement()

    def judgement(self, sends: bool) -> Judgement:
        ends = KeyEnds(self._plan)
        facts = {status.pipeline.name: facts_of(status, self._memory, ends) for status in self._statuses}
        for alert in self._alerts:
            for pipeline in alert.pipelines:
                self._judge(alert, facts[pipeline.name])
        self._note()
        self._end_stale()
        memories.save(self._memory, self._file)
        began = time.monotonic()
        for alert in self._alerts if sends else ():
            for notice in alert.notices:
                if time.monotonic() - began < _LONGEST:  # the next look sends the rest
                    self._tell(alert, notice)
        self._end()
        self._memory.forget(self._time.timestamp())
        memories.save(self._memory, self._file)
        return self._result

    def _judge(self, alert: Alert, table: TableFacts) -> None:
        name, identifier = table.pipeline.name, table.pipeline.table.identifier
        moment = self._time.timestamp()
        incident = self._memory.open(alert.name, name)
        if incident is not None and memories.is_stale(incident, moment):
            incident.over, incident = incident.judged, None  # nobody knows what was meanwhile
        verdict = self._verdict(alert, table)
        if isinstance(verdict, str):
            if incident is None:
                incident = TableIncident(pipeline=name, table=identifier, since=moment, judged=moment, why=verdict)
                self._memory.incidents.setdefault(alert.name, []).append(incident)
            incident.why = verdict
        elif incident is not None and verdict is False:
            incident.over, incident = moment, None
        if incident is not None:
            incident.judged = moment
        self._result.judged.append(
            Judged(
                alert=alert, pipeline=name, table=identifier, why=incident.why if incident else "",
                since=incident.since if incident else None, unknown=verdict is None,
            )
        )  # fmt: skip

    def _verdict(self, alert: Alert, table: TableFacts) -> Verdict:
        """Why one of the alert's conditions holds; False if none does, None if that is unknown. All are asked, since some remember."""
        verdicts: list[Verdict] = []
        for condition in alert.conditions:
            try:
                verdicts.append(condition.judge(condition, table))
            except SluiceError as error:
                verdicts.append(None)
                self._result.failures.append(error)
        reasons = [verdict for verdict in verdicts if isinstance(verdict, str)]
        return "; ".join(reasons) if reasons else None if None in verdicts else False

    def _note(self) -> None:
        """Notes numbers for the next looks, of tables for which a condition asks for the past."""
        windows: dict[str, float] = {}
        for alert in self._alerts:
            for pipeline in alert.pipelines:
                of_alert = [condition.window for condition in alert.conditions]
                windows[pipeline.name] = max([windows.get(pipeline.name, 0.0), *of_alert])
        for status in self._statuses:
            window, sums = windows[status.pipeline.name], sums_of(status)
            if window and sums is not None:
                self._memory.note(status.pipeline.name, sums, self._time.timestamp(), window)

    def _end_stale(self) -> None:
        """Ends incidents of tables that nobody has judged for a day. Other judges may have other plans, such as one of specs with problems:
        what this plan does not name is theirs until then."""
        for alert in self._alerts:
            for incident in self._memory.incidents.get(alert.name, ()):
                if incident.over is None and memories.is_stale(incident, self._time.timestamp()):
                    incident.over = incident.judged

    def _tell(self, alert: Alert, notice: Notice) -> None:
        """Sends what a receiver has yet to be told, all tables of one stage in one message. A failure ends it until a later look."""
        id_ = digest.notice_id(notice)
        if self._memory.rests(id_, self._time.timestamp()):
            return
        untold = self._untold(alert, notice, self._memory.incidents.get(alert.name, ()))
        for stage in _STAGES:
            if incidents := untold.get(stage):
                message = content(alert, stage, incidents, self._time)
                try:
                    self._result.told.append(f"{message.title}: {notice.send(notice, message, self._plan.secrets)}")
                except PartlySent as error:
                    self._result.failures.append(error)
                except SluiceError as error:
                    self._result.failures.append(error)
                    self._memory.failed(id_, self._time.timestamp())
                    return
                self._memory.pauses.pop(id_, None)
                for incident in incidents:
                    self._note_told(incident, id_, stage)
                memories.save(self._memory, self._file)

    def _untold(self, alert: Alert, notice: Notice, incidents: Sequence[TableIncident]) -> Mapping[Stage, list[TableIncident]]:
        """The incidents that a receiver has yet to be told of, by what there is to tell. One that was over before it could be told is told
        once, in any case."""
        id_, stages = digest.notice_id(notice), dict[Stage, list[TableIncident]]()
        for incident in incidents:
            told = incident.told.get(id_)
            if incident.over is not None:
                if id_ not in incident.over_told and (alert.recovered or told is None):
                    stages.setdefault("over", []).append(incident)
            elif told is None:
                stages.setdefault("began", []).append(incident)
            elif alert.repeat_every is not None and self._time.timestamp() - told >= alert.repeat_every:
                stages.setdefault("lasts", []).append(incident)
        return stages

    def _note_told(self, incident: TableIncident, id_: str, stage: Stage) -> None:
        if stage == "over":
            incident.over_told.append(id_)
        else:
            incident.told[id_] = self._time.timestamp()

    def _end(self) -> None:
        """Forgets incidents that are over, once everybody knows."""
        for alert in self._alerts:
            incidents = self._memory.incidents.get(alert.name, ())
            self._memory.incidents[alert.name] = [incident for incident in incidents if not self._is_done(alert, incident)]

    def _is_done(self, alert: Alert, incident: TableIncident) -> bool:
        if incident.over is None:
            return False
        return not any(self._untold(alert, notice, [incident]) for notice in alert.notices)


def lines(judgement: Judgement) -> Iterator[str]:
    """The judgement in lines: who was told, and what could not be sent."""
    yield from judgement.told
    yield from (str(error) for error in judgement.failures)
