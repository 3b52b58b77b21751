"""Alerts: each incident is told once, and that it is over once, whoever judges and whatever fails meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from framework.base.errors import CatalogAway, SetupError, Transient
from framework.core.rules import journal
from framework.core.rules.journal import RunRecord
from framework.features.conditions._comparisons import holds, read
from framework.host.components import COMPONENTS
from framework.host.plans import parts
from framework.operations.alerts import memory as memories
from framework.operations.alerts.facts import facts_of
from framework.operations.alerts.judge import Judgement, judge
from framework.operations.alerts.key_ends import KeyEnds
from framework.operations.alerts.memory import Memory
from framework.operations.observe.progress import PipelineProgress
from framework.operations.observe.status import status_from
from framework.plan import Plan
from tests.support.alerting import ORDERS, alert, mail_by, pause
from tests.support.mail_server import Mailbox, mail_server
from tests.support.project import BASE, plan_for
from tests.support.shop import NOWHERE, sluice

pytestmark = pytest.mark.usefixtures("own_folder")
START = datetime(2026, 1, 5, 12, tzinfo=timezone.utc)


def specs(port: int, more: str = "", notify: str = "[{email: {to: [ops@example.com]}}]", name: str = "stopped") -> str:
    return ORDERS + mail_by(port) + alert("{paused_for: 1d}", f"doc: Call the desk.\n{more}", notify, name)


def planned(port: int, more: str = "") -> Plan:
    return plan_for(Path.cwd(), NOWHERE, specs(port, more))


def after(**age: float) -> Callable[[], datetime]:
    return lambda: START + timedelta(**age)


def look(plan: Plan, **age: float) -> Judgement:
    return judge(plan, after(**age))


def texts(box: Mailbox) -> list[tuple[str, list[str]]]:
    """The subjects of mails and their lines."""
    bodies = [cast(EmailMessage, mail.get_body()).get_content().strip().splitlines() for mail in box.mails]
    return [(mail["Subject"], body) for mail, body in zip(box.mails, bodies, strict=True)]


def test_each_condition_is_declared() -> None:
    for name in COMPONENTS.conditions.names():
        file = COMPONENTS.conditions.load(name)
        assert file.__doc__
        assert hasattr(file, "DOES") != hasattr(file, "Options")
        assert not hasattr(file, "Options") or file.Options.known_by == name


def test_an_incident_is_told_once_and_its_end_once() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port)
        assert look(plan, hours=23).told == []
        (told,) = look(plan, hours=25).told
        assert told == "stopped: shop.orders: mailed to ops@example.com"
        assert look(plan, hours=26).told == []
        assert {judged.table: judged.holds for judged in look(plan, hours=27).judged} == {"shop.orders": True, "shop.copy": False}
        journal.resume("orders")
        look(plan, hours=28)
        assert look(plan, hours=29).told == []
    assert texts(box) == [
        (
            "stopped: shop.orders",
            [
                "shop.orders: paused for 25 h",
                "  since 2026-01-06T13:00:00Z, 0 s; `sluice status orders` says more",
                "Call the desk.",
            ],
        ),
        ("stopped is over: shop.orders", ["shop.orders: over after 3 h, since 2026-01-06T13:00:00Z; it was paused for 27 h"]),
    ]
    assert memories.loaded(Path(".sluice/alerts/local.json")).incidents == {}


def test_one_message_tells_of_several_tables() -> None:
    pause("orders", "copy", since=START)
    with mail_server() as (box, port):
        look(planned(port), days=2)
    ((subject, lines),) = texts(box)
    assert subject == "stopped: 2 tables"
    assert [line for line in lines if line.startswith("shop.")] == ["shop.copy: paused for 2 d", "shop.orders: paused for 2 d"]


def test_it_is_told_again_as_often_as_the_alert_says() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port, "repeat_every: 4h\nrecovered: false")
        for hour in range(30, 40):
            look(plan, hours=hour)
        journal.resume("orders")
        look(plan, hours=41)
    assert [subject for subject, _ in texts(box)] == [
        "stopped: shop.orders", "stopped still: shop.orders", "stopped still: shop.orders",
    ]  # fmt: skip


def test_what_could_not_be_sent_is_sent_later_and_not_twice() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port)
    failed = look(plan, hours=48)  # no server is there
    assert [error.code for error in failed.failures] == ["mail-not-sent"] and failed.told == []
    assert look(plan, hours=48, seconds=5).failures == [], "it is not tried again at once"
    with mail_server(port=port) as (box, _):
        assert len(look(plan, hours=49).told) == 1
        assert look(plan, hours=50).told == []
    assert [subject for subject, _ in texts(box)] == ["stopped: shop.orders"]


def test_what_was_over_before_it_could_be_told_is_told_once() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port, "recovered: false")
    look(plan, hours=48)
    journal.resume("orders")
    look(plan, hours=51)
    with mail_server(port=port) as (box, _):
        look(plan, hours=52)
        look(plan, hours=53)
    ((subject, lines),) = texts(box)
    assert subject == "stopped is over: shop.orders" and "over after 3 h" in lines[0]


def test_who_was_told_is_not_told_again_for_another_who_could_not_be() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        notify = "[{email: {to: [ops@example.com, nobody@example.com]}}]"
        plan = plan_for(Path.cwd(), NOWHERE, specs(port, notify=notify))
        assert "does not take mail for nobody@example.com" in look(plan, hours=48).failures[0].message
        assert look(plan, hours=49).failures == []
    assert len(box.mails) == 1


def test_judges_with_different_specs_do_not_tell_by_turns() -> None:
    """Dagster may have the specs of its start, or a part of those with problems."""
    pause("orders", "copy", since=START)
    with mail_server() as (box, port):
        whole, part = planned(port), planned(port, "on: {table: shop.orders}")
        none = plan_for(Path.cwd(), NOWHERE, specs(port, name="other"))
        for hour in range(48, 54):
            look((whole, part, none)[hour % 3], hours=hour)
    assert sorted(subject for subject, _ in texts(box)) == ["other: 2 tables", "stopped: 2 tables"]


def test_only_one_process_judges_at_a_time() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port)
        with memories.turn("local"):
            assert look(plan, days=2).elsewhere
        assert not look(plan, days=2).elsewhere
    assert len(box.mails) == 1


def test_a_damaged_memory_is_begun_anew() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port)
        look(plan, days=2)
        Path(".sluice/alerts/local.json").write_text("{")
        look(plan, days=3)
    assert len(box.mails) == 2


def test_the_incident_of_a_table_that_nobody_judges_any_more_ends_after_a_day() -> None:
    pause("orders", "copy", since=START)
    with mail_server() as (box, port):
        look(planned(port), hours=48)
        for hour in (60, 71, 73, 74):
            look(planned(port, "on: {table: shop.orders}"), hours=hour)
    assert [subject for subject, _ in texts(box)] == ["stopped: 2 tables", "stopped is over: shop.copy"]


def test_an_incident_of_long_ago_does_not_hide_a_new_one() -> None:
    pause("orders", since=START)
    with mail_server() as (box, port):
        plan = planned(port)
        look(plan, hours=48)
        look(plan, days=30)
    assert [subject for subject, _ in texts(box)] == [
        "stopped: shop.orders",
        "stopped is over: shop.orders",
        "stopped: shop.orders",
    ]


def test_what_cannot_be_known_begins_and_ends_nothing(tmp_path: Path) -> None:
    plan = planned(1)
    (pipeline, _) = plan.pipelines
    away = CatalogAway("catalog-unreachable", "the catalog `lake` cannot be read", "")
    for trouble in (away, SetupError("no-secret", "there is no secret `lake`", "")):
        progress = PipelineProgress(pipeline=pipeline.name, table=pipeline.table.identifier, trouble=trouble, is_unread=True)
        facts = facts_of(status_from(pipeline, progress, RunRecord(), None, START), Memory(), KeyEnds(plan))
        assert facts.late is None and facts.followers is None
        assert facts.grown("rows", 600) is None and facts.counted("true", 600) is None


def test_messages_quote_no_value_of_a_row() -> None:
    plan = planned(1)
    (pipeline, _) = plan.pipelines
    progress = PipelineProgress(
        pipeline=pipeline.name, table=pipeline.table.identifier, trouble=Transient("select-failed", "The value 'jane'", "")
    )
    facts = facts_of(status_from(pipeline, progress, RunRecord(), None, START), Memory(), KeyEnds(plan))
    failing = COMPONENTS.conditions.load("failing").plan_condition(None, pipeline.where, [pipeline], None)
    assert failing.judge(failing, facts) == "failing: select-failed"


@contextmanager
def hook(*answers: int) -> Iterator[tuple[list[Any], str]]:
    """A real receiver of posts, which answers so, and then 200."""
    got: list[Any] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response([*answers, *[200] * len(got)][len(got) - 1])
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield got, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_slack_and_pagerduty_get_what_they_understand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PAGER", "R0UTE")
    pause("orders", "copy", since=START)
    with hook() as (got, address):
        notify = f"""
  - webhook: {{url: "{address}", format: slack}}
  - webhook: {{url: "{address}", format: pagerduty, routing_key: "${{secret:pager}}"}}
  - webhook: {{url: "{address}"}}"""
        plan = plan_for(Path.cwd(), NOWHERE, specs(1, notify=notify))
        look(plan, hours=48)
        slack, first, second, plain = got
        journal.resume("orders")
        look(plan, hours=49)
    assert slack["text"].startswith("*stopped: 2 tables*\nshop.copy: paused for 2 d")
    assert (first["event_action"], first["routing_key"], first["dedup_key"]) == ("trigger", "R0UTE", "sluice/local/stopped/copy")
    assert second["payload"]["summary"] == "stopped: shop.orders: paused for 2 d"
    assert (plain["stage"], len(plain["incidents"]), plain["incidents"][0]["over"]) == ("began", 2, None)
    over = [document for document in got[4:] if document.get("event_action") == "resolve"]
    assert [document["dedup_key"] for document in over] == ["sluice/local/stopped/orders"]


def test_the_command_says_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server() as (box, port):
        plan_for(Path.cwd(), NOWHERE, specs(port))
        fine = sluice("alerts")
        assert (fine.exit_code, fine.output) == (0, "stopped: shop.copy: fine\nstopped: shop.orders: fine\n")
        pause("orders", since=datetime.now(timezone.utc) - timedelta(days=2))
        looked = sluice("alerts", "--no-send")
        assert (looked.exit_code, box.mails) == (1, [])
        assert "stopped: shop.orders: holds, paused for 2 d (since 2" in looked.output
        told = json.loads(sluice("alerts", "--json").output)
        assert told["told"] == ["stopped: shop.orders: mailed to ops@example.com"] and told["not_sent"] == []
        assert [entry["state"] for entry in told["alerts"]] == ["fine", "holds"]
    assert len(box.mails) == 1


def test_specs_without_alerts_need_nothing() -> None:
    plan_for(Path.cwd(), NOWHERE, ORDERS + mail_by(1))
    result = sluice("alerts")
    assert (result.exit_code, result.output) == (
        0,
        "there are no alerts: a document `alert: NAME` with `when` and `notify` is one\n",
    )


@pytest.mark.parametrize(
    ("text", "count", "expected"), [("> 10", 11, True), (">= 1_000", 999, False), ("<1", 0, True), ("= 3", 3, True)]
)
def test_comparisons(text: str, count: int, expected: bool) -> None:
    assert holds(read(text), count) is expected


class Clocked:
    """Sums of a pipeline, noted by looks at some seconds, for windows up to a week."""

    def __init__(self, looks: dict[float, int]) -> None:
        self.memory = Memory()
        for time, rows in looks.items():
            self.memory.note("orders", {"rows": rows}, time, 7 * 86400)

    def grown(self, time: float, rows: int, window: float = 300) -> float | None:
        return self.memory.grown("orders", "rows", {"rows": rows}, time, window)


def test_growth_in_a_window() -> None:
    steady = Clocked({second: second for second in range(0, 100_000, 30)})
    for window in (300, 600, 3600, 86400):
        assert steady.grown(100_000, 100_000, window) == pytest.approx(window, rel=0.05), window
        assert steady.grown(100_000, 100_500, window) == pytest.approx(window + 500, rel=0.05)
    assert len(steady.memory.samples["orders"]) < 400
    assert Clocked({}).grown(1000, 5) is None
    assert Clocked({900: 5}).grown(1000, 7) is None, "nobody looked when the window began"
    quiet = Clocked(dict.fromkeys(range(0, 1000, 30), 5))
    assert quiet.grown(1000, 5) == 0
    assert len(quiet.memory.samples["orders"]) == 1


def test_growth_while_nobody_looked() -> None:
    assert Clocked({0: 5}).grown(3000, 5) == 0, "it is what it was"
    assert Clocked({0: 5}).grown(3000, 9) is None, "before the window or in it"
    assert Clocked({0: 5, 2900: 9}).grown(3000, 9) is None
    assert Clocked({0: 100, 200: 100}).grown(400, 7) == 7, "a table that was dropped and created again"
    assert Clocked({0: 0, 300: 60}).grown(450, 60) == pytest.approx(30), "a look each five minutes"
    assert Clocked({5000: 50, 400: 7}).grown(700, 9) == 2, "a clock that went back"


def test_a_follower_that_shows_something_is_not_behind_for_long() -> None:
    memory = Memory()
    assert memory.lasted("behind topic a 7", True, 0) == 0
    assert memory.lasted("behind topic a 7", True, 4000) == 4000
    assert memory.lasted("behind topic a 8", True, 4100) == 0, "another snapshot was shown"
    memory.forget(4000 + 2 * 86400)
    assert memory.lasting == {}


def test_an_alert_with_a_problem_stops_no_pipeline() -> None:
    folder = Path("project/specs")
    folder.mkdir(parents=True)
    text = f"{BASE.format(bootstrap=NOWHERE)}---{specs(1, 'on: {table: shop.nothing}')}"
    (folder / "main.yaml").write_text(text)
    _, problems, runnable = parts(folder)
    assert [problem.code for problem in problems] == ["unknown-table"]
    assert [pipeline.name for pipeline in runnable] == ["copy", "orders"]
