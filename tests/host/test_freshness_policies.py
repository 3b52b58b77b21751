"""Dagster's freshness policies of tables and exports, judged by Dagster's own evaluators."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.repository import ROOT
from tests.support.shop import NOWHERE, made_by_hand
from tests.support.spec_parts import LAKE

if TYPE_CHECKING:
    from dagster import AssetKey, DagsterInstance, Definitions

pytestmark = pytest.mark.slow
MONDAY = datetime(2026, 1, 5, tzinfo=timezone.utc)
SETTINGS = f"""
cluster: main
bootstrap: {NOWHERE}
---
{LAKE}---
topic: quiet
value: json
columns: {{n: bigint, at: timestamp}}
event_time: at
---
topic: steady
value: json
columns: {{n: bigint, at: timestamp}}
event_time: at
steady: true
---
"""
STEADY = "pipeline: p\nfrom: {topic: steady}\ninto: {table: m.p}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    (tmp_path / "specs").mkdir()
    return tmp_path


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    from dagster import DagsterInstance

    with DagsterInstance.ephemeral() as ephemeral_instance:
        yield ephemeral_instance


def definitions(*documents: str) -> Definitions:
    from sluice.dagster import build_sluice_definitions

    Path("specs/main.yaml").write_text(SETTINGS + "---\n".join(documents))
    return build_sluice_definitions("specs")


def checks(defs: Definitions, table: str = "p") -> set[str]:
    return {key.name for key in defs.resolve_asset_graph().asset_check_keys if key.asset_key.path[-1] == table}


def policies(defs: Definitions) -> dict[str, str]:
    """The kind of policy by the asset's name, without the assets that have none."""
    graph = defs.resolve_asset_graph()
    assets = [(key.path[-1], graph.get(key).freshness_policy_or_from_metadata) for key in graph.get_all_asset_keys()]
    return {name: type(policy).__name__ for name, policy in sorted(assets, key=lambda item: item[0]) if policy}


def state(defs: Definitions, instance: DagsterInstance, key: AssetKey, time: datetime) -> str:
    """The state of an asset that Dagster's freshness daemon computes at a time."""
    from dagster._core.loader import LoadingContextForTest
    from dagster._core.test_utils import freeze_time
    from dagster._daemon.freshness import FreshnessDaemon

    node = defs.resolve_asset_graph().get(key)
    with freeze_time(time):
        judged = FreshnessDaemon()._compute_asset_freshness_state(LoadingContextForTest(instance), node)
        return str(asyncio.run(judged).value)


def materialize(instance: DagsterInstance, key: AssetKey, time: datetime) -> None:
    from dagster import AssetMaterialization
    from dagster._core.test_utils import freeze_time

    with freeze_time(time):
        instance.report_runless_asset_event(AssetMaterialization(key))
    event = instance.get_latest_materialization_event(key)
    assert event is not None and event.timestamp == time.timestamp()


def test_the_check_newest_event_exists_only_where_all_topics_are_steady(folder: Path) -> None:
    fresh = "fresh_within: 15m\n"
    assert checks(definitions(STEADY + fresh)) == {"can_run", "fresh", "newest_event"}
    assert checks(definitions(STEADY)) == {"can_run"}
    assert checks(definitions(STEADY.replace("topic: steady", "topic: quiet") + fresh)) == {"can_run", "fresh"}
    assert checks(definitions(STEADY.replace("topic: steady", "topics: [steady, quiet]") + fresh)) == {"can_run", "fresh"}
    copy = "pipeline: copy\nfrom: {table: m.p}\ninto: {table: m.copy}\n"
    assert checks(definitions(STEADY, copy + fresh), "copy") == {"can_run", "fresh"}


@pytest.mark.parametrize(
    ("age", "passed"), [(timedelta(minutes=9), True), (timedelta(minutes=11), False), (timedelta(hours=9), False)]
)
def test_an_old_newest_event_is_a_warning_however_old(folder: Path, age: timedelta, passed: bool) -> None:
    from dataclasses import replace

    from dagster import AssetCheckSeverity

    from framework.host.assets import checks as asset_checks
    from framework.host.assets.keys import AssetKeys
    from framework.host.plans import make
    from framework.operations.observe.status import status_of

    definitions(STEADY + "fresh_within: 15m\nwarn_after: 10m\n")
    plan = make(Path("specs"))
    status = status_of(plan, plan.pipelines[0])
    results = asset_checks.state_results(AssetKeys(), replace(status, newest_event=status.time - age))
    (result,) = (result for result in results if result.check_name == "newest_event")
    assert (result.passed, result.severity) == (passed, AssetCheckSeverity.WARN)


def test_a_policy_is_where_one_is_true(folder: Path) -> None:
    """A table of a steady topic has a policy by time; tables and exports with a schedule have one by cron; others have none."""
    fresh = "fresh_within: 15m\n"
    assert policies(definitions(STEADY + fresh)) == {"p": "TimeWindowFreshnessPolicy"}
    assert policies(definitions(STEADY)) == {}
    assert policies(definitions(STEADY.replace("topic: steady", "topic: quiet") + fresh)) == {}
    scheduled = STEADY + fresh + 'run: {cron: "0 6 * * *"}\n'
    assert policies(definitions(scheduled)) == {"p": "CronFreshnessPolicy"}
    export = "export: weekly\nfrom: {table: m.p}\nfile: {format: csv, to: exports/p.csv}\n"
    assert policies(definitions(STEADY, export)) == {}
    assert policies(definitions(STEADY, export + 'schedule: "0 6 * * 1"\n')) == {"weekly": "CronFreshnessPolicy"}


@pytest.mark.parametrize(
    ("cron", "deadline"),
    [("0 6 * * *", "0 7 * * *"), ("15,45 23 * * *", "15 0 * * *"), ("30 22 * * 1", "30 23 * * 1"), ("30 23 * * 1", None)],
)
def test_a_schedule_of_a_time_zone_has_its_deadline_in_that_zone(folder: Path, cron: str, deadline: str | None) -> None:
    defs = definitions(f'{STEADY}fresh_within: 15m\nrun: {{cron: "{cron}", timezone: Europe/Berlin}}\n')
    policy: Any = next(spec.freshness_policy for spec in defs.resolve_all_asset_specs() if spec.key.path[-1] == "p")
    schedule = (policy.deadline_cron, policy.timezone) if policy else None
    assert schedule == ((deadline, "Europe/Berlin") if deadline else None)


def test_a_table_of_a_steady_topic_warns_and_fails_by_its_age(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetKey

    defs = definitions(STEADY + "fresh_within: 15m\nwarn_after: 10m\n")
    key = AssetKey(["lake", "m", "p"])
    assert state(defs, instance, key, MONDAY) == "UNKNOWN"
    materialize(instance, key, MONDAY)
    ages = (9, 10, 14, 15)
    assert [state(defs, instance, key, MONDAY + timedelta(minutes=age)) for age in ages] == ["PASS", "WARN", "WARN", "FAIL"]


@pytest.mark.parametrize("windows", ["fresh_within: 59s\n", "fresh_within: 15m\nwarn_after: 59s\n"])
def test_a_time_shorter_than_dagsters_shortest_window_is_refused_with_its_place(folder: Path, windows: str) -> None:
    from framework.base.errors import SpecError

    with pytest.raises(
        SpecError, match=r"main\.yaml:\d+:\d+: out-of-range: `\w+` must be at least 1m, and is `59s`\n +hint: write"
    ):
        definitions(STEADY + windows)


def moments(cron: str) -> Iterator[datetime]:
    """The ticks of a schedule in half a year, by the iterator that Dagster's scheduler uses."""
    from dagster._utils.schedules import cron_string_iterator

    for tick in cron_string_iterator((MONDAY - timedelta(days=90)).timestamp(), cron, "UTC"):
        if tick > MONDAY + timedelta(days=90):
            return
        yield tick


@pytest.mark.parametrize(
    "cron",
    [
        *("0 6 * * 1", "30 23 * * *", "59 23 31 * *", "0 0 1 * *", "0 * * * *", "15,45 8-18 * * mon-fri", "*/15 * * * *"),
        *("0,5 6 * * *", "7-59/10 22-23 * * 0", "* 3 * * *", "0 6 5,12 * 3"),
    ],
)
def test_an_export_passes_if_its_run_came_after_the_tick_and_fails_an_hour_later_without(
    folder: Path, instance: DagsterInstance, cron: str
) -> None:
    """Each run ends after 50 minutes, or as the next begins; the deadline is an hour behind the first tick of an hour."""
    from dagster import AssetKey

    defs = definitions(STEADY, f'export: e\nfrom: {{table: m.p}}\nfile: {{format: csv, to: exports/p.csv}}\nschedule: "{cron}"\n')
    key = AssetKey(["exports", "e"])
    ticks = list(moments(cron))
    assert len(ticks) > 3
    firsts = [tick for tick, before in zip(ticks[1:], ticks, strict=False) if before.replace(minute=0) != tick.replace(minute=0)]
    for tick in firsts[:: max(1, len(firsts) // 6)]:
        before, deadline = ticks[ticks.index(tick) - 1], tick + timedelta(hours=1)
        ends = min(*[time for time in ticks if time > tick][:1], tick + timedelta(minutes=50), MONDAY + timedelta(days=91))
        materialize(instance, key, min(before + timedelta(minutes=50), tick - timedelta(seconds=1)))
        assert state(defs, instance, key, tick - timedelta(seconds=1)) == "PASS", "the run before was in time"
        assert state(defs, instance, key, deadline - timedelta(seconds=1)) == "PASS", "a run may be under way"
        assert state(defs, instance, key, deadline) == "FAIL", "no run has ended"
        materialize(instance, key, ends)
        assert state(defs, instance, key, deadline) == "PASS"
        materialize(instance, key, deadline + timedelta(minutes=7))
        assert state(defs, instance, key, deadline + timedelta(minutes=7)) == "PASS", "late, and there"


def test_the_daemon_judges_a_real_run_of_an_export(folder: Path) -> None:
    """Runs the daemon's own iteration, which asks the server of the code location for the policies."""
    from dagster import AssetKey, DagsterInstance
    from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
    from dagster._core.workspace.load_target import PythonFileTarget
    from dagster._daemon.freshness import FreshnessDaemon

    from framework.core.rules import refusals
    from framework.host.plans import make

    Path("mine.py").write_text(
        'from sluice.dagster import build_sluice_definitions\n\ndefs = build_sluice_definitions("specs")\n'
    )
    export = "export: e\nfrom: {table: shop.trades}\nfile: {format: csv, to: exports/e.csv}\nschedule: '* * * * *'\n"
    defs = definitions(STEADY.replace("m.p", "shop.trades"), export)
    made_by_hand(refusals.owner(make(Path("specs")).pipelines[0]))
    key = AssetKey(["exports", "e"])
    Path("dagster").mkdir()
    target = PythonFileTarget("mine.py", attribute=None, working_directory=str(folder), location_name="mine")
    with DagsterInstance.local_temp("dagster") as instance, create_test_daemon_workspace_context(target, instance) as workspace:

        def judged() -> str:
            list(FreshnessDaemon().run_iteration(workspace))
            return str(instance.get_freshness_state_records([key])[key].freshness_state.value)

        assert judged() == "UNKNOWN"
        job = defs.resolve_implicit_global_asset_job_def()
        assert job.execute_in_process(instance=instance, asset_selection=[key]).success
        assert judged() == "PASS"
        assert downstream_of(key, instance, defs) == 0
        with freeze_time(datetime.now(timezone.utc) + timedelta(hours=3)):
            assert judged() == "FAIL"
        assert downstream_of(key, instance, defs) == 1, "an asset of the project's own starts when it is late"


def downstream_of(key: AssetKey, instance: DagsterInstance, defs: Definitions) -> int:
    """How many assets start that are to start when an asset is late."""
    from dagster import AssetsDefinition, AssetSpec, AutomationCondition, Definitions, evaluate_automation_conditions

    late = AutomationCondition.any_deps_match(AutomationCondition.freshness_failed())
    page = AssetsDefinition(specs=[AssetSpec("page", deps=[key], automation_condition=late)])
    return evaluate_automation_conditions(Definitions.merge(defs, Definitions(assets=[page])), instance).total_requested


def test_an_asset_starts_when_a_check_of_a_table_fails(folder: Path) -> None:
    """Tables of topics in which messages may stop have no policy, and a check."""
    from dagster import (
        AssetCheckEvaluation,
        AssetKey,
        AssetsDefinition,
        AssetSpec,
        AutomationCondition,
        DagsterInstance,
        Definitions,
        evaluate_automation_conditions,
    )  # fmt: skip

    defs = definitions("pipeline: p\nfrom: {topic: quiet}\ninto: {table: m.p}\nfresh_within: 15m\n")
    key = AssetKey(["lake", "m", "p"])
    fails = AutomationCondition.any_deps_match(AutomationCondition.any_checks_match(AutomationCondition.check_failed()))
    page = AssetsDefinition(specs=[AssetSpec("page", deps=[key], automation_condition=fails.newly_true())])
    merged = Definitions.merge(defs, Definitions(assets=[page]))
    with DagsterInstance.ephemeral() as instance:
        first = evaluate_automation_conditions(merged, instance)
        instance.report_runless_asset_event(AssetCheckEvaluation(asset_key=key, check_name="fresh", passed=False, metadata={}))
        second = evaluate_automation_conditions(merged, instance, cursor=first.cursor)
        third = evaluate_automation_conditions(merged, instance, cursor=second.cursor)
        assert (first.total_requested, second.total_requested, third.total_requested) == (0, 1, 0)


def test_the_shipped_specs_have_freshness_policies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.chdir(ROOT)
    shipped = policies(build_sluice_definitions("specs"))
    assert len(shipped) >= 5
    assert shipped["weekly_sales"] == shipped["customer_versions"] == "CronFreshnessPolicy"
    assert shipped["readings"] == shipped["flagged_stock_trades"] == "TimeWindowFreshnessPolicy"
