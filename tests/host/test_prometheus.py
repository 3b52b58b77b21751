"""The metrics in Prometheus: a real one reads them, and its rules and the dashboard are made of the same declarations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from framework.core.rules.work import Work
from framework.host.prometheus import dashboard, reference, rules
from framework.host.prometheus.families import families
from framework.host.prometheus.page import Page
from framework.machine.services import prometheus
from framework.machine.services.ports import free_port
from framework.operations.metrics import metrics, values_for_dagster, values_of_work
from framework.operations.observe.status import statuses
from framework.plan import Plan
from tests import toys
from tests.support.project import Project, plan_for
from tests.support.prometheus_answers import answer, asked, rules_of, value
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy" / "prometheus"
FILES = {
    DEPLOY / "sluice.rules.yml": rules.text,
    DEPLOY / "dashboard.json": dashboard.text,
    ROOT / "docs" / "metrics.md": reference.page,
}
SLUICE = [sys.executable, "-c", "from framework.host.cli import main; main()"]
SPECS = """---
topic: t{number}
kafka_name: nowhere_{number}
value: json
columns: {{id: bigint}}
---
pipeline: p{number}
from: {{topic: t{number}}}
fresh_within: 1h
into: {{table: shop.p{number}}}
"""


@pytest.fixture(scope="module")
def promtool() -> str:
    prometheus._get(print)
    return str(prometheus.program("promtool"))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_for(tmp_path, "127.0.0.1:1", SPECS.format(number=1))


@pytest.fixture
def committed(project: Project) -> Project:
    project.more = "fresh_within: 1h"
    project.make_topic()
    project.send_good(30, bad_every=10)
    project.run()
    project.send_good(5)
    return project


def samples(text: str) -> dict[str, dict[str, float]]:
    """The values of a page's samples by their names, and by their labels but those of the table."""
    values: dict[str, dict[str, float]] = {}
    for family in read_text(text):
        for sample in family.samples:
            own = {name: value for name, value in sample.labels.items() if name not in ("pipeline", "table")}
            values.setdefault(sample.name, {})[" ".join(own.values())] = sample.value
    return values


@pytest.mark.parametrize("path", list(FILES), ids=[path.name for path in FILES])
def test_files_are_made_of_the_declarations(path: Path) -> None:
    if os.environ.get("REWRITE") == "1":
        path.write_text(FILES[path](), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == FILES[path](), (
        "renew them: REWRITE=1 .venv/bin/python -m pytest tests/host/test_prometheus.py"
    )


@pytest.mark.slow
def test_prometheus_own_tool_takes_the_rules_and_their_tests(promtool: str) -> None:
    for command in (["test", "rules", "rules_test.yml"], ["check", "config", "prometheus.yml"]):
        done = subprocess.run([promtool, *command], cwd=DEPLOY, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_prometheus_own_tool_likes_the_names(promtool: str, plan: Plan, kafka_away: None) -> None:
    page = Page(lambda: plan, lambda plan: plan.pipelines).answer().body
    done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_unknown_numbers_have_no_sample(plan: Plan, kafka_away: None) -> None:
    values = samples(Page(lambda: plan, lambda plan: plan.pipelines).answer().body.decode())
    assert values["sluice_table_rows"] == {"": 0} and values["sluice_state"]["failing"] == 1
    assert values["sluice_errors"] == {"kafka-unreachable": 1}
    assert not {"sluice_waiting_messages", "sluice_written_rows_total", "sluice_last_commit_age_seconds"} & values.keys()


def test_a_page_is_collected_once_for_all_who_ask(plan: Plan, kafka_away: None) -> None:
    plans: list[Plan] = []

    def latest() -> Plan:
        plans.append(plan)
        return plan

    page = Page(latest, lambda plan: plan.pipelines)
    text, open_metrics = page.answer(), page.answer("application/openmetrics-text; version=1.0.0")
    assert len(plans) == 1
    assert text.content_type.startswith("text/plain") and open_metrics.content_type.startswith("application/openmetrics-text")
    names = {family.name for family in read_openmetrics(open_metrics.body.decode())}  # type: ignore[no-untyped-call]
    assert names == {family.name.removesuffix("_total") for family in read_text(text.body.decode())}


def test_a_toy_is_one_file_and_in_all_places(plan: Plan, kafka_away: None) -> None:
    with toys.installed():
        shown = {
            "Prometheus": [family.name for family in families(statuses(plan, plan.pipelines))],
            "rules": [rules.text()],
            "dashboard": [dashboard.text()],
            "docs": [reference.page()],
            "JSON and OpenLineage": list(values_of_work(Work(read=3))),
            "Dagster": list(values_for_dagster(values_of_work(Work(read=3)))),
        }
    assert [place for place, texts in shown.items() if not any("stragglers" in text for text in texts)] == []


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_a_real_prometheus_reads_the_tables_and_evaluates_the_rules(committed: Project, tmp_path: Path) -> None:
    specs = Path(committed.pipeline.where.file).parent
    port = free_port()
    command = [*SLUICE, "metrics", "--port", str(port), "--specs", str(specs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}) as server:
        assert server.stdout is not None and f":{port}/metrics: the metrics of 1 tables" in server.stdout.readline()
        home = tmp_path / "prometheus"
        (home / "services" / "prometheus" / prometheus.RULES).mkdir(parents=True)
        (home / "services" / "prometheus" / prometheus.RULES / "sluice.yml").write_text(rules.text())
        with prometheus.running(home, [f"127.0.0.1:{port}"]) as url:
            until(lambda: bool(asked(url, "sluice_table_rows")), "nothing was read", 30)
            assert value(asked(url, "sluice_table_rows")) == 27
            assert value(asked(url, "sum(sluice_waiting_messages)")) == 5
            assert value(asked(url, 'sluice_bad_rows_total{code="undecodable"}')) == 3
            assert value(asked(url, 'sluice_batch_seconds_bucket{le="+Inf"}')) == value(asked(url, "sluice_batches_total")) == 1
            assert value(asked(url, "sluice_fresh")) == 1
            for name, metric in metrics().items():
                asked(url, dashboard.expression(name, metric).replace("$table", ".*"))
            groups = answer(url, "/api/v1/rules")["groups"]
            until(lambda: all(rule["health"] == "ok" for rule in rules_of(url)), f"a rule is not evaluated: {groups}", 30)
            assert len(rules_of(url)) > 15
            (target,) = answer(url, "/api/v1/targets")["activeTargets"]
            assert (target["health"], target["lastError"]) == ("up", "")
        server.terminate()
        assert server.wait(10) == 0
