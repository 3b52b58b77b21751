"""`sluice alerts`: judge the alerts of the specs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.base import iso_times
from framework.host.cli import _specs

if TYPE_CHECKING:
    from framework.operations.alerts.judge import Judged, Judgement

SECTION, ORDER = "see", 12
ALSO_CALLED = ("alarms", "warn")
_PATIENCE = 30.0  # seconds for another process that judges


@click.command()
@click.option("--no-send", is_flag=True, help="Tell nobody, and leave that to the next one who judges.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
def command(no_send: bool, as_json: bool, specs: Path, environment: str) -> None:
    """Judge the alerts of the specs, and tell who is to be told.

    Shows which hold for which tables, and why.

    For cron, each minute, where neither `sluice stream` nor Dagster's daemon runs: these judge alerts themselves. Whoever judges, an
    incident is told once, and that it is over once.

    --json: {environment, alerts, told, not_sent, elsewhere}; each of alerts has alert, pipeline, table, state (holds, fine or unknown), why
    and since. With `elsewhere`, another process was judging all the while, and nothing is known.

    Exit status: 0; 1 if an alert holds, a notice could not be sent, or the specs have problems; 2 wrong usage.

    Example: sluice alerts --no-send
    """
    from framework.operations.alerts.judge import judge

    plan = _specs.plan(specs, environment, tables=False)
    judgement = judge(plan, sends=not no_send, patience=_PATIENCE)
    if as_json:
        click.echo(json.dumps(_specs.hinted_in(_document(environment, judgement)), indent=2, ensure_ascii=False))
    else:
        _print(judgement)
    sys.exit(1 if judgement.failures or any(judged.holds for judged in judgement.judged) else 0)


def _print(judgement: Judgement) -> None:
    if judgement.elsewhere:
        click.echo("another process judges the alerts at this moment, as `sluice stream` does: it tells")
        return
    if not judgement.judged:
        click.echo("there are no alerts: a document `alert: NAME` with `when` and `notify` is one")
    for judged in judgement.judged:
        click.echo(f"{judged.alert.name}: {judged.table}: {_state(judged)}{_why(judged)}")
    for told in judgement.told:
        click.echo(told)
    for failure in judgement.failures:
        _specs.echo(str(failure), err=True)


def _state(judged: Judged) -> str:
    return "holds" if judged.holds else "unknown" if judged.unknown else "fine"


def _why(judged: Judged) -> str:
    return f", {judged.why} (since {iso_times.of_seconds(judged.since)})" if judged.since is not None else ""


def _document(environment: str, judgement: Judgement) -> dict[str, Any]:
    return {
        "environment": environment,
        "alerts": [
            {
                "alert": judged.alert.name, "pipeline": judged.pipeline, "table": judged.table, "state": _state(judged),
                "why": judged.why or None, "since": None if judged.since is None else iso_times.of_seconds(judged.since),
            }
            for judged in judgement.judged
        ],
        "elsewhere": judgement.elsewhere,
        "told": judgement.told,
        "not_sent": [{"code": error.code, "message": error.message, "hint": error.hint} for error in judgement.failures],
    }  # fmt: skip
