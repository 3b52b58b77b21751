"""`build_sluice_alert_sensor`: it tells of failed runs and failed checks of a Dagster project, whichever library made them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetKey,
    DagsterInstance,
    Definitions,
    MaterializeResult,
    asset,
    build_sensor_context,
)

from framework.host.assets import project_alerts, telling
from sluice.dagster import DagsterIncident, SluiceError, build_sluice_alert_sensor
from tests.support.alerting import ORDERS, alert, mail_by
from tests.support.mail_server import mail_server
from tests.support.project import BASE
from tests.support.repository import ROOT
from tests.support.shop import NOWHERE

pytestmark = pytest.mark.slow


@asset(check_specs=[AssetCheckSpec("plausible", asset="report")])
def report():  # type: ignore[no-untyped-def]  # Dagster reads annotations, which are texts here
    if "REPORT" in os.environ:
        raise ValueError("it breaks")
    return MaterializeResult(check_results=[AssetCheckResult(check_name="plausible", passed=True)])


@asset
def broken_report() -> None:
    raise ValueError("no such column: price")


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as ephemeral_instance:
        yield ephemeral_instance


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a minute pass with each tick."""
    Ticks.count = 0
    # A receiver that failed rests for longer than a test.
    monkeypatch.setattr(telling, "utc_now", lambda: datetime(2026, 11, 30, tzinfo=timezone.utc) + timedelta(minutes=Ticks.count))


class Ticks:
    """The ticks of a sensor of a project with the assets above."""

    count = 0

    def __init__(self, instance: DagsterInstance, *arguments: Any, **options: Any) -> None:
        self.instance = instance
        self.sensor = build_sluice_alert_sensor(*arguments, **options)
        self.definitions = Definitions(assets=[report, broken_report], sensors=[self.sensor])
        self.cursor: str | None = None

    def __call__(self) -> str:
        """One tick. Returns what its page says."""
        Ticks.count += 1
        context = build_sensor_context(self.instance, cursor=self.cursor, repository_def=self.definitions.get_repository_def())
        result: Any = self.sensor.evaluate_tick(context)
        self.cursor = result.cursor
        return str(result.skip_message)

    def run(self, name: str) -> str:
        """A run of an asset. Returns its id."""
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(asset_selection=[AssetKey(name)], instance=self.instance, raise_on_error=False).run_id

    def check(self, passed: bool, severity: AssetCheckSeverity = AssetCheckSeverity.ERROR) -> None:
        """The result of a check as a sensor reports it, without a run."""
        evaluation = AssetCheckEvaluation(
            asset_key=AssetKey("report"),
            check_name="plausible",
            passed=passed,
            metadata={},
            severity=severity,
            description="7 rows",
        )
        self.instance.report_runless_asset_event(evaluation)


def test_a_failed_run_is_told_once(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick.run("broken_report")
    assert (tick(), incidents) == ("0 messages sent", []), "what failed before the sensor was turned on is old"
    run_id = tick.run("broken_report")
    tick.run("report")
    assert (tick(), tick()) == ("1 message sent", "0 messages sent")
    (incident,) = incidents
    assert (incident.run_id, incident.key, incident.is_over) == (run_id, f"run/{run_id}", False)
    assert incident.title == f"run {run_id[:8]} of __ASSET_JOB failed"
    assert incident.text == "broken_report: ValueError: no such column: price"


def test_the_first_failed_run_of_an_instance_is_told(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick()
    tick.run("broken_report")
    tick()
    assert len(incidents) == 1


def test_a_check_without_a_run_is_told_when_it_fails_and_when_it_passes_again(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick()
    tick.check(passed=False)
    assert (tick(), tick()) == ("1 message sent", "0 messages sent")
    tick.check(passed=False)
    assert tick() == "0 messages sent", "it still fails"
    tick.check(passed=True)
    assert (tick(), tick()) == ("1 message sent", "0 messages sent")
    assert [(incident.title, incident.text, incident.is_over) for incident in incidents] == [
        ("the check plausible of report fails", "7 rows", False),
        ("the check plausible of report passes again", "", True),
    ]
    assert {(incident.asset, incident.check, incident.key) for incident in incidents} == {
        ("report", "plausible", "check/report/plausible")
    }


def test_a_check_of_a_run_is_told(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick.check(passed=False)
    tick()
    tick.run("report")
    tick()
    assert [incident.is_over for incident in incidents] == [False, True]


def test_a_run_that_did_not_come_to_a_check_does_not_end_its_incident(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick()
    tick.check(passed=False)
    tick()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPORT", "breaks")  # before its check is evaluated
        tick.run("report")
    tick(), tick()
    assert [incident.title.partition(" ")[0] + " " * incident.is_over for incident in incidents] == ["the", "run"]
    tick.run("report")
    tick()
    assert [incident.is_over for incident in incidents] == [False, False, True]


def test_a_check_that_only_warns_now_is_over(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick.check(passed=False)
    tick()
    tick.check(passed=False, severity=AssetCheckSeverity.WARN)
    tick(), tick()
    assert [incident.title for incident in incidents] == [
        "the check plausible of report fails", "the check plausible of report only warns now",
    ]  # fmt: skip


def test_a_check_that_is_not_in_the_code_any_more_is_forgotten(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick.check(passed=False)
    tick()
    tick.definitions = Definitions(assets=[broken_report], sensors=[tick.sensor])
    tick()
    assert len(incidents) == 1 and json.loads(tick.cursor or "")["checks"] == {}


def test_a_tick_sends_for_twenty_seconds_and_the_next_one_goes_on(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick()
    for _ in range(4):
        tick.run("broken_report")
    seconds = iter([0, 5, 15, 25, 35, 0, 5, 10])  # at the beginning of a tick, and before each message
    monkeypatch.setattr(telling, "time", SimpleNamespace(monotonic=lambda: next(seconds)))  # a slow receiver would take as long
    assert [tick(), tick()] == ["2 messages sent", "2 messages sent"]
    assert len({incident.run_id for incident in incidents}) == 4


def test_of_many_runs_that_cannot_be_told_the_newest_are_kept(instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_alerts, "_KEPT", 2)  # as of two hundred
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, failing(1, incidents))
    tick()
    run_ids = [tick.run("broken_report") for _ in range(4)]
    tick()
    assert list(json.loads(tick.cursor or "")["runs"]) == run_ids[2:]
    tick()
    assert [incident.run_id for incident in incidents] == run_ids[2:]


def test_warnings_are_told_where_they_are_asked_for(instance: DagsterInstance) -> None:
    errors: list[DagsterIncident] = []
    warnings: list[DagsterIncident] = []
    ticks = Ticks(instance, errors.append), Ticks(instance, warnings.append, warnings=True)
    ticks[0].check(passed=False, severity=AssetCheckSeverity.WARN)
    assert [tick() for tick in ticks] == ["0 messages sent", "1 message sent"]
    assert (len(errors), len(warnings)) == (0, 1)


def failing(times: int, incidents: list[DagsterIncident]) -> Callable[[DagsterIncident], None]:
    """A receiver that fails so often."""
    tries: list[DagsterIncident] = []

    def tell(incident: DagsterIncident) -> None:
        tries.append(incident)
        if len(tries) <= times:
            raise ConnectionError("no network")
        incidents.append(incident)

    return tell


def test_what_could_not_be_sent_is_sent_by_a_later_tick(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, failing(3, incidents))
    tick()
    tick.run("broken_report")
    tick.check(passed=False)
    trouble = "0 messages sent; 1 message could not be sent: a later tick tries again"
    # It rests for 25 s, for 50 s, and for 100 s.
    assert [tick() for _ in range(6)] == [trouble, trouble, trouble, "0 messages sent", "2 messages sent", "0 messages sent"]
    assert {incident.key.partition("/")[0] for incident in incidents} == {"run", "check"} and len(incidents) == 2


def test_a_check_that_passes_before_it_could_be_told_is_not_told(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, failing(1, incidents))
    tick.check(passed=False)
    tick()
    tick.check(passed=True)
    assert (tick(), incidents) == ("0 messages sent", [])


def test_a_cursor_that_cannot_be_read_tells_once_more_what_fails(instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    tick = Ticks(instance, incidents.append)
    tick.check(passed=False)
    for cursor in (None, "no json", "[]", '{"colour": 1}', '{"runs": [], "checks": 3}', '{"pauses": []}'):
        tick.cursor = cursor
        assert tick() == "1 message sent"


def written(folder: Path, port: int, more: str = "") -> None:
    (folder / "main.yaml").write_text(f"{BASE.format(bootstrap=NOWHERE)}---{ORDERS}{mail_by(port)}{more}")


def test_an_alert_of_the_specs_names_who_is_told(spec_folder: Path, instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    with mail_server() as (box, port):
        written(spec_folder, port, alert("failing"))
        tick = Ticks(instance, incidents.append, alert="stopped", specs=spec_folder)
        tick()
        run_id = tick.run("broken_report")
        tick.check(passed=False)
        assert tick() == "4 messages sent"
    assert sorted(mail["Subject"] for mail in box.mails) == [
        f"run {run_id[:8]} of __ASSET_JOB failed", "the check plausible of report fails",
    ]  # fmt: skip
    assert "broken_report: ValueError: no such column: price" in str(box.mails[0]) and len(incidents) == 2


def test_one_receiver_that_is_away_holds_up_no_other(spec_folder: Path, instance: DagsterInstance) -> None:
    incidents: list[DagsterIncident] = []
    written(spec_folder, 1, alert("failing"))
    tick = Ticks(instance, incidents.append, alert="stopped", specs=spec_folder)
    tick.check(passed=False)
    for _ in range(2):
        assert tick().endswith("1 message could not be sent: a later tick tries again")
    assert len(incidents) == 1
    tick.check(passed=True)
    tick()
    assert [incident.is_over for incident in incidents] == [False, True]


@pytest.mark.parametrize(
    ("more", "name", "says"),
    [
        ("", "stopped", "unknown-alert: there is no alert `stopped`"),
        (alert("failing"), "stoped", "did you mean `stopped`?"),
        (alert("failing", notify="[]"), "stopped", "nobody-is-told: the alert `stopped` has no `notify`"),
    ],
)
def test_an_alert_that_tells_nobody_is_an_error_at_once(spec_folder: Path, more: str, name: str, says: str) -> None:
    written(spec_folder, 1, more)
    with pytest.raises(SluiceError) as raised:
        build_sluice_alert_sensor(alert=name, specs=spec_folder)
    assert says in f"{raised.value}\n{raised.value.hint}"


def test_broken_specs_do_not_end_the_load_of_a_project(spec_folder: Path, instance: DagsterInstance) -> None:
    written(spec_folder, 1, alert("lat"))
    tick = Ticks(instance, alert="stopped", specs=spec_folder)
    tick.check(passed=False)
    assert tick() == "0 messages sent; 1 message could not be sent: a later tick tries again"


def test_a_sensor_that_tells_nobody_is_refused() -> None:
    with pytest.raises(SluiceError, match="nobody to tell"):
        build_sluice_alert_sensor()


def test_the_code_in_the_docs_tells(instance: DagsterInstance, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "dagster.md").read_text(encoding="utf-8")
    (code,) = [
        block
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if "build_sluice_alert_sensor" in block
    ]
    names: dict[str, Any] = {}
    exec(code, names)
    names["tell"](DagsterIncident(key="k", title="the check fresh of a fails", text="late", is_over=True))
    assert capsys.readouterr().out == "over: the check fresh of a fails\nlate\n"
    (sensor,) = names["defs"].sensors
    assert sensor.name == "sluice_alerts" and str(sensor.default_status) == "DefaultSensorStatus.RUNNING"
