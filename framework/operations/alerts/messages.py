"""The messages of alerts: that incidents have begun, that they last, and that they are over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from framework.base import iso_times
from framework.base.amounts import counted, span
from framework.operations.alerts.memory import TableIncident
from framework.plan.alert import Alert
from framework.plan.notice import Incident, NoticeContent

Stage = Literal["began", "lasts", "over"]
_WORDS: dict[Stage, str] = {"began": "", "lasts": " still", "over": " is over"}


def content(alert: Alert, stage: Stage, incidents: Sequence[TableIncident], time: datetime) -> NoticeContent:
    """The content of one message about incidents of an alert. It has no value of a row."""
    tables = incidents[0].table if len(incidents) == 1 else counted(len(incidents), "table")
    environment = "" if alert.environment == "local" else f" ({alert.environment})"
    about = [line for incident in incidents for line in _lines(stage, incident, time)]
    document = {
        "alert": alert.name, "environment": alert.environment, "stage": stage, "at": iso_times.text(time), "doc": alert.doc or None,
        "incidents": [
            {
                "pipeline": incident.pipeline, "table": incident.table, "why": incident.why, "since": iso_times.of_seconds(incident.since),
                "over": None if incident.over is None else iso_times.of_seconds(incident.over),
            }
            for incident in incidents
        ],
    }  # fmt: skip
    return NoticeContent(
        title=f"{alert.name}{_WORDS[stage]}: {tables}{environment}",
        lines=(*about, *([alert.doc] if alert.doc and stage != "over" else [])),
        document=document,
        incidents=tuple(
            Incident(
                key=f"sluice/{alert.environment}/{alert.name}/{incident.pipeline}",
                summary=f"{alert.name}: {incident.table}: {incident.why}",
                is_over=stage == "over",
            )
            for incident in incidents
        ),
    )


def _lines(stage: Stage, incident: TableIncident, time: datetime) -> list[str]:
    began = iso_times.of_seconds(incident.since)
    if stage == "over" and incident.over is not None:
        return [f"{incident.table}: over after {span(incident.over - incident.since)}, since {began}; it was {incident.why}"]
    age = span(time.timestamp() - incident.since)
    return [f"{incident.table}: {incident.why}", f"  since {began}, {age}; `sluice status {incident.pipeline}` says more"]
