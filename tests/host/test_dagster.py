"""The specs as Dagster shows and runs them."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SpecError, UnreachableError
from framework.core.rules import journal
from framework.host.assets import maintenance
from tests.support.dagster_commands import dagster, started
from tests.support.project import Project, good
from tests.support.spec_parts import LAKE

if TYPE_CHECKING:
    from dagster import DagsterInstance, Definitions

ROOT = Path(__file__).resolve().parents[2]


def run_lines(log: str) -> list[str]:
    """The lines that the run of `trades` logs itself, without durations."""
    lines = re.findall(r" - dagster - INFO - .* - trades - (.*)", log)
    return [re.sub(r"\d+\.\d s\b", "… s", line) for line in lines]


def test_the_definitions_are_short() -> None:
    assert len((ROOT / "pipelines" / "definitions.py").read_text().splitlines()) <= 30


@pytest.mark.slow
def test_assets_have_the_descriptions_owners_and_columns_of_the_specs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dagster import AssetKey

    from sluice.dagster import build_sluice_definitions

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    (tmp_path / "jars").symlink_to(ROOT / ".sluice" / "jars")
    monkeypatch.chdir(ROOT)
    defs = build_sluice_definitions("specs")
    graph = defs.resolve_asset_graph()

    table = graph.get(AssetKey(["lake", "markets", "flagged_stock_trades"]))
    assert table.parent_keys == {AssetKey(["kafka", "main", "sample_data_stock_trades"])}
    assert (table.group_name, table.owners, table.tags["tier"]) == ("markets", ["team:markets"], "gold")
    assert {"iceberg", "spark"} <= table.kinds
    columns = [column.name for column in table.metadata["dagster/column_schema"].columns]
    assert columns[:3] == ["trade_key", "side", "quantity"]
    (reference,) = table.metadata["dagster/code_references"].code_references
    line = Path(reference.file_path).read_text().splitlines()[reference.line_number - 1]
    assert line == "pipeline: flagged_stock_trades"
    assert graph.has(AssetKey(["lake", "markets", "flagged_stock_trades__bad_rows"]))
    assert {sensor.name for sensor in defs.sensors or []} == {
        "click_sessions_waits",
        "clicks_waits",
        "customers_waits",
        "flagged_stock_trades_waits",
        "sales_orders_waits",
        "sensor_readings_waits",
        "stock_trades_waits",
        "stock_bars_waits",
        "stock_total_trades_waits",
        "unusual_stock_trades_waits",
        "users_waits",
        "Table_states",
    }


@pytest.mark.slow
def test_dagster_runs_at_most_two_runs_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dagster import DagsterInstance

    from framework.base.home import dagster_home

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    with DagsterInstance.from_config(str(dagster_home())) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert (queue.max_concurrent_runs, instance.telemetry_enabled) == (2, False)


SETTINGS = f"""
cluster: main
bootstrap: "127.0.0.1:1"
---
{LAKE}"""
TRADES = """
topic: trades
value: json
columns: {price: double, symbol: string}
---
pipeline: trades
from: {topic: trades}
steps: [{derive: {double_price: price * 2}}]
expect:
  - {column: price, not_null: true}
  - {name: sane price, when: price < 1000, else: warn}
  - {name: "sane, price", when: price > 0, else: stop}
into: {table: m.trades}
run: {cron: "0 6 * * *", timezone: Europe/Berlin}
fresh_within: 15m
---
pipeline: copy
from: {table: m.trades}
into: {table: m.copy, write: replace}
run: on_new_data
"""
BROKEN = """
topic: orders
value: json
columns: {id: strin}
---
pipeline: orders
from: {topic: orders}
into: {table: m.orders}
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of specs, as a server of Dagster's sees it."""
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "main.yaml").write_text(SETTINGS)
    (tmp_path / "specs" / "trades.yaml").write_text(TRADES)
    return tmp_path


def names(defs: Definitions) -> set[str]:
    return {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}


ASSETS = {"kafka/main/trades", "lake/m/trades", "lake/m/trades__bad_rows", "lake/m/copy", "lake/m/copy__bad_rows"}
COPY = {"lake/m/copy", "lake/m/copy__bad_rows"}
ORDERS = {"lake/m/orders", "lake/m/orders__bad_rows"}


@pytest.mark.slow
def test_a_table_has_lineage_checks_and_schedules_in_dagster(served: Path) -> None:
    from dagster import AssetKey

    from sluice.dagster import build_sluice_definitions

    defs = build_sluice_definitions("specs")
    assert names(defs) == ASSETS
    graph = defs.resolve_asset_graph()
    table = graph.get(AssetKey(["lake", "m", "trades"]))
    lineage = table.metadata["dagster/column_lineage"].deps_by_column
    assert [(dep.asset_key.path[-1], dep.column_name) for dep in lineage["double_price"]] == [("trades", "price")]
    assert lineage["_kafka_offset"] == []
    copied_lineage = graph.get(AssetKey(["lake", "m", "copy"])).metadata["dagster/column_lineage"].deps_by_column
    assert copied_lineage["double_price"][0].asset_key == AssetKey(["lake", "m", "trades"])
    check_names = {key.name for key in graph.asset_check_keys if key.asset_key == table.key}
    assert check_names == {"price_is_not_null", "sane_price", "sane_price_2", "fresh", "can_run"}
    schedules: list[Any] = list(defs.schedules or ())
    times = [(schedule.cron_schedule, schedule.execution_timezone) for schedule in schedules]
    assert times == [("0 6 * * *", "Europe/Berlin"), ("17 * * * *", "UTC")]
    assert schedules[0].description == "Starts trades at 0 6 * * * (Europe/Berlin)."
    intervals = {sensor.name: sensor.minimum_interval_seconds for sensor in defs.sensors or []}
    assert intervals == {"copy_waits": 10, "Table_states": 30}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("orders.yaml", BROKEN, {*ASSETS, "broken/specs_orders", *ORDERS}),
        ("orders.yaml", "topic: [\n", {*ASSETS, "broken/specs_orders"}),
        ("orders.yaml", "pipelin: x\n", {*ASSETS, "broken/specs_orders"}),
        ("trades.yaml", f"{TRADES}---{BROKEN}", {*ASSETS, "broken/specs_trades", *ORDERS}),
        ("trades.yaml", TRADES.replace("price * 2", "prise * 2"), {*ASSETS, "broken/specs_trades"}),
        ("trades.yaml", TRADES.replace("write: replace", "write: replase"), {*ASSETS, "broken/specs_trades"}),
        ("trades.yaml", TRADES.replace("m.copy", "1"), {*ASSETS - COPY, "broken/specs_trades"}),
        ("main.yaml", SETTINGS.replace("bootstrap", "bootstrapp"), {*ASSETS, "broken/specs_main"}),
    ],
)  # fmt: skip
def test_in_a_server_a_broken_spec_is_a_broken_asset(served: Path, file: str, text: str, expected: set[str]) -> None:
    from sluice.dagster import build_sluice_definitions

    (served / "specs" / file).write_text(text)
    defs = build_sluice_definitions("specs", strict=False)
    asset_names = {name for name in names(defs) if not name.startswith("kafka/") or name in expected}
    assert asset_names | {"kafka/main/trades"} == expected | {"kafka/main/trades"}
    broken = next(key for key in defs.resolve_asset_graph().get_all_asset_keys() if key.path[0] == "broken")
    spec = defs.resolve_asset_graph().get(broken)
    assert f"specs/{file}:" in (spec.description or "")
    assert spec.metadata["dagster/code_references"].code_references[0].file_path == str(served / "specs" / file)


@pytest.mark.slow
def test_a_broken_spec_is_refused_where_nobody_would_look_at_it(served: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    (served / "specs" / "orders.yaml").write_text(BROKEN)
    with pytest.raises(SpecError, match="bad-type"):
        build_sluice_definitions("specs")


@pytest.mark.slow
@pytest.mark.usefixtures("kafka_away")
def test_a_sensor_asks_before_it_starts_a_run(served: Path) -> None:
    """Nobody answers at the cluster's address, and a paused pipeline is not started."""
    from dagster import DagsterInstance, build_sensor_context

    from sluice.dagster import build_sluice_definitions

    trades = TRADES.replace('{cron: "0 6 * * *", timezone: Europe/Berlin}', "{every: 1m}").partition("---\npipeline: copy")[0]
    (served / "specs" / "trades.yaml").write_text(trades)
    sensor, _ = build_sluice_definitions("specs").sensors or []
    with DagsterInstance.ephemeral() as instance:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1 does not answer"):
            sensor.evaluate_tick(build_sensor_context(instance))
        journal.pause("trades")
        assert "trades is paused since" in (sensor.evaluate_tick(build_sensor_context(instance)).skip_message or "")


@pytest.mark.slow
def test_a_broken_spec_is_shown_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text("cluster: main\nbootstrapp: 127.0.0.1:9092\n")
    result = dagster(tmp_path, "definitions", "validate")
    assert result.returncode == 1
    assert "specs/a.yaml:2:1: unknown-key" in result.stdout + result.stderr
    run_result = dagster(tmp_path, "asset", "materialize", "--select", "*")
    assert (run_result.returncode, run_result.stdout) == (1, "")
    assert "specs/a.yaml:2:1: unknown-key" in run_result.stderr
    assert "Traceback" not in run_result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("select", "says", "hint"),
    [
        ("lake/m/trade", "unknown-asset: there is no asset `lake/m/trade`", "did you mean `lake/m/trades`?"),
        ("lake/m/copy,kafka/main/trades", "unknown-asset: no run writes `kafka/main/trades`", "select what a run writes"),
    ],
)
@pytest.mark.parametrize("command", ["dagster asset materialize --select", "dg launch --assets"])
def test_an_asset_that_no_run_writes_ends_a_command_with_a_hint(
    served: Path, command: str, select: str, says: str, hint: str
) -> None:
    program, *arguments = command.split()
    result = dagster(served, *arguments, select, program=program)
    assert (result.returncode, result.stdout) == (1, "")
    assert says in result.stderr and hint in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_two_documents_of_one_topic_are_one_asset(served: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    (served / "specs" / "again.yaml").write_text("topic: again\nkafka_name: trades\nvalue: string\n")
    graph = build_sluice_definitions("specs").resolve_asset_graph()
    assert [key.path for key in graph.get_all_asset_keys() if key.path[0] == "kafka"] == [["kafka", "main", "trades"]]


EXPECTING = """
expect:
  - {{column: price, between: [0, 45]}}
  - {{name: few, when: id < 30, else: warn}}
  - {{name: sane, when: id < 1000, else: stop}}
fresh_within: 1h
batch: {{rows: 10}}
""".replace("{{", "{").replace("}}", "}")


@pytest.fixture
def run_job() -> Callable[..., tuple[bool, str]]:
    """A function that runs a job in this process, with its Spark, and returns whether it succeeded and the reason of its failure."""
    from sluice.dagster import build_sluice_definitions

    def run(specs: Path, instance: DagsterInstance, job: str = "", config: Any = None, **selection: Any) -> tuple[bool, str]:
        defs = build_sluice_definitions(specs)
        job_definition = defs.resolve_job_def(job) if job else defs.resolve_implicit_global_asset_job_def()
        result = job_definition.execute_in_process(run_config=config, instance=instance, raise_on_error=False, **selection)
        failures = (event.step_failure_data.user_failure_data for event in result.all_node_events if event.is_step_failure)
        return result.success, "".join(failure.description or "" for failure in failures if failure)

    return run


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_materialize_brings_everything_up_to_date(
    project: Project, tmp_path: Path, run_job: Callable[..., tuple[bool, str]]
) -> None:
    """Dagster's command does the first run; the others go through the same job in this process."""
    import pyspark
    from dagster import AssetCheckKey, AssetKey, DagsterInstance

    project.more, project.topic_more = EXPECTING, "steady: true"
    project.make_topic()
    project.send_good(50, bad_every=10)
    specs = Path(project.pipeline.where.file).parent
    table = AssetKey(["lake", project.namespace, "trades"])
    (tmp_path / "dagster").mkdir()
    (tmp_path / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")

    preview_config = {"ops": {"Show": {"config": {"pipeline": "trades", "messages": 2}}}}
    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        assert run_job(specs, instance, "Preview", preview_config) == (True, "")
    assert project.rows() == project.rows(bad=True) == []
    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        assert instance.get_latest_materialization_event(table) is None
        (observation,) = instance.fetch_observations(table, limit=5).records
        assert observation.asset_observation is not None
        assert observation.asset_observation.description == f"trades: the next 2 messages of 50 that wait in {project.topic}"
        assert "lands in" in str(observation.asset_observation.metadata["preview"].value)

    partial_config = {"ops": {"trades": {"config": {"until_offsets": {f"{project.topic}/{part}": 5 for part in range(3)}}}}}
    launch = ("launch", "--assets", "*", "--config-json", json.dumps(partial_config))
    launched = dagster(tmp_path, *launch, specs=specs, program="dg")
    assert launched.returncode == 0, launched.stderr[-3000:]
    assert len(project.rows()) + len(project.rows(bad=True)) == 15
    assert run_lines(launched.stderr) == [
        f"50 messages waiting in {project.topic}; {project.namespace}.trades has 0 rows",
        *(f"{project.topic}/{part}: offsets 0 to {(16, 16, 15)[part]}" for part in range(3)),
        "starting Spark, which takes a few seconds",
        f"Spark {pyspark.__version__} runs after … s",
        "reading the next messages and writing their rows to files",
        "the rows are written; checking them before they are published",
        "publishing the batch",
        "the batch is published",
        "batch 1, 10 read, 8 rows, 2 bad, … s, 5 waiting",
        "batch 2, 5 read, 5 rows, … s, 0 waiting",
    ]

    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        assert run_job(specs, instance, asset_selection=[table]) == (True, "")
        assert len(project.rows()) + len(project.rows(bad=True)) == 50
        (event,) = (instance.get_latest_materialization_event(table),)
        assert event is not None
        bad_event = instance.get_latest_materialization_event(AssetKey([*table.path[:-1], "trades__bad_rows"]))
        assert bad_event is not None and bad_event.run_id == event.run_id, "the bad rows are told of, too"
        assert event.asset_materialization is not None
        metadata: dict[str, Any] = {name: value.value for name, value in event.asset_materialization.metadata.items()}
        check_records = instance.event_log_storage.get_latest_asset_check_execution_by_key(
            [AssetCheckKey(table, name) for name in ("price_is_between_0_and_45", "few", "sane", "newest_event")]
        )
    assert metadata["dagster/row_count"] == len(project.rows())
    assert (metadata["rows"], metadata["bad_rows"], metadata["lag_messages"], metadata["lag_messages_at_start"]) == (28, 7, 0, 35)
    assert metadata["offsets"] == {f"{project.topic}/{part}": (17, 17, 16)[part] for part in range(3)}
    evaluations = {key.name: record.event.asset_check_evaluation for key, record in check_records.items() if record.event}
    verdicts = {name: evaluation.passed for name, evaluation in evaluations.items() if evaluation}
    assert verdicts == {"price_is_between_0_and_45": False, "few": False, "sane": True, "newest_event": True}
    assert event.asset_materialization.tags is not None
    assert event.asset_materialization.tags["dagster/data_version"] == metadata["snapshot"]
    assert [dep.column_name for dep in metadata["dagster/column_lineage"].deps_by_column["size"]] == ["price"]

    project.send([*map(good, range(12)), good(1001)], partition=0)
    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        success, failure = run_job(specs, instance)
        assert not success and "not-as-expected: 1 of 3 rows are not as `sane` expects" in failure
        key = AssetCheckKey(table, "sane")
        record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
        assert record.event is not None
        assert record.event.asset_check_evaluation is not None
        assert not record.event.asset_check_evaluation.passed
        last_event = instance.get_latest_materialization_event(table)
        assert last_event is not None and last_event.asset_materialization is not None and last_event.run_id == record.run_id
        assert last_event.asset_materialization.metadata["rows"].value == 10, (
            "what was committed before the run stopped is recorded"
        )

    project.delete_topic()
    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        success, failure = run_job(specs, instance)
        assert not success and "there is no topic" in failure


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_a_run_that_is_canceled_records_what_it_committed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's button interrupts the process of the run, and so does this test."""
    from dagster import AssetKey, DagsterInstance

    project.more = "batch: {rows: 10}"
    project.make_topic()
    project.send_good(2_000)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "main.yaml").write_text(Path(project.pipeline.where.file).read_text())
    monkeypatch.chdir(tmp_path)
    table = AssetKey(["lake", project.namespace, "trades"])
    with started(tmp_path, "asset", "materialize", "--select", "*") as process:
        lines = []
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if "batch 2, 10 read, 10 rows" in line:
                with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
                    instance.report_run_canceling(instance.get_runs()[0])
                os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) != 0
    text = "".join(lines)
    assert "canceled: the published batches stay, and the next run continues after them" in text
    assert "py4j" not in text.lower() and "Java" not in text, text
    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        (run,) = instance.get_runs()
        assert run.status.value == "CANCELED"
        event = instance.get_latest_materialization_event(table)
        assert event is not None and event.run_id == run.run_id and event.asset_materialization is not None
        row_count = event.asset_materialization.metadata["dagster/row_count"].value
    assert row_count == len(project.rows()) and 20 <= row_count < 2_000
    specs = tmp_path / "specs" / "main.yaml"
    specs.write_text(specs.read_text().replace(project.more, ""))
    result = dagster(tmp_path, "asset", "materialize", "--select", "*")
    assert result.returncode == 0, result.stderr[-3000:]
    project.assert_exactly_once()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_a_table_to_which_no_run_comes_is_maintained_by_the_schedule(
    project: Project, tmp_path: Path, run_job: Callable[..., tuple[bool, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster import AssetKey, DagsterInstance, RunRequest, ScheduleDefinition, SkipReason, build_schedule_context

    from sluice.dagster import build_sluice_definitions

    project.make_topic()
    specs = Path(project.pipeline.where.file).parent
    defs = build_sluice_definitions(specs)
    schedule = next(candidate for candidate in defs.schedules or [] if candidate.name == "Maintenance_schedule")
    assert isinstance(schedule, ScheduleDefinition)

    def tick_request() -> Any:
        with build_schedule_context() as context:
            tick = schedule.evaluate_tick(context)
        return tick.run_requests[0] if tick.run_requests else SkipReason(tick.skip_message)

    assert tick_request() == SkipReason("no table is due")
    for _ in range(6):
        project.send_good(20)
        project.run()
    (tmp_path / "dagster").mkdir()
    (tmp_path / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    assert tick_request() == SkipReason("no table is due")
    # Dagster evaluates the schedule, which takes no clock.
    monkeypatch.setattr(maintenance, "utc_now", lambda: datetime.now(timezone.utc) + timedelta(days=1))
    request = tick_request()
    assert isinstance(request, RunRequest)
    with DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        assert run_job(specs, instance, "Maintenance", dict(request.run_config)) == (True, "")
        (observation,) = instance.fetch_observations(AssetKey(["lake", project.namespace, "trades"]), limit=5).records
        assert observation.asset_observation is not None
        assert "files into 1" in (observation.asset_observation.description or "")
        unknown_config = {"ops": {"Maintain": {"config": {"pipelines": ["trade"]}}}}
        assert run_job(specs, instance, "Maintenance", unknown_config) == (False, "there is no pipeline trade")
    assert tick_request() == SkipReason("no table is due")
    project.assert_exactly_once()
