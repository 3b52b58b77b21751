"""Incidents of a Dagster project, told to whom an alert of the specs notifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from framework.base import iso_times
from framework.base.clock import utc_now
from framework.base.errors import SluiceError
from framework.base.home import environment_of
from framework.base.spelling import did_you_mean, the_names
from framework.plan import digest
from framework.plan.alert import Alert
from framework.plan.notice import Incident, Notice, NoticeContent, PartlySent
from framework.plan.topic import SecretStore

if TYPE_CHECKING:
    from framework.host.assets.incidents import DagsterIncident


def notified(name: str, specs: Path, env: str | None) -> dict[str, Callable[[DagsterIncident], None]]:
    """The functions that tell an incident to each item of an alert's `notify`. Raises SluiceError if nobody is notified. Where specs have
    problems, which may be the reason, the functions raise it."""
    from framework.host.plans import parts
    from framework.language import without_collection

    environment = environment_of(env)
    with without_collection():
        plan, problems, _ = parts(specs, environment)
    alerts: dict[str, Alert] = {document.name: document.value for document in plan.documents_of("alert")}
    if name in alerts and alerts[name].notices:
        send = partial(_send, alerts[name].recovered, environment, plan.secrets)
        return {digest.notice_id(notice): partial(send, notice) for notice in alerts[name].notices}
    trouble = _trouble(name, alerts)
    if not problems:
        raise trouble

    def tell(incident: DagsterIncident) -> None:
        raise trouble

    return {name: tell}


def _send(recovered: bool, environment: str, secrets: SecretStore, notice: Notice, incident: DagsterIncident) -> None:
    if incident.is_over and not recovered:
        return
    with suppress(PartlySent):  # sending it again would tell the others again
        notice.send(notice, content(incident, environment), secrets)


def _trouble(name: str, alerts: Mapping[str, Alert]) -> SluiceError:
    if name in alerts:
        return SluiceError(
            "nobody-is-told", f"the alert `{name}` has no `notify`", f"write who is told under `notify` of `{name}`"
        )
    otherwise = the_names("alert", alerts) if alerts else "the specs have no alerts"
    return SluiceError("unknown-alert", f"there is no alert `{name}`", did_you_mean(name, alerts, otherwise))


def content(incident: DagsterIncident, environment: str) -> NoticeContent:
    time = iso_times.text(utc_now().replace(microsecond=0))
    of_environment = "" if environment == "local" else f" ({environment})"
    document = {
        "environment": environment, "stage": "over" if incident.is_over else "began", "at": time, "key": incident.key,
        "title": incident.title, "text": incident.text, "run_id": incident.run_id, "asset": incident.asset, "check": incident.check,
    }  # fmt: skip
    return NoticeContent(
        title=f"{incident.title}{of_environment}", lines=tuple(incident.text.splitlines()), document=document,
        incidents=(Incident(key=f"dagster/{environment}/{incident.key}", summary=incident.title, is_over=incident.is_over),),
    )  # fmt: skip
