"""Dagster's runs of tables, and its checks, events and sensors. Neither Spark nor Kafka runs here: the tables are made by hand, and nobody
listens at Kafka's address."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import (
    BadRowsStop,
    BatchError,
    CatalogAway,
    RefusedError,
    SetupError,
    TopicRecreated,
    Transient,
    Unexpected,
    UnreachableError,
)
from framework.core.context.context import Context
from framework.core.context.outage import outage
from framework.core.maintain import due
from framework.core.rules import journal, protocol, refusals
from framework.core.rules.protocol import Position
from framework.core.run import failures, leases, same_failure
from framework.host.plans import make
from framework.operations.observe.status import statuses
from framework.plan import Pipeline, Plan
from tests.support.project import BASE
from tests.support.shop import COPY, NOWHERE, append, catalog, made_by_hand, specs

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun, Definitions, ExecuteInProcessResult

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
EXPECTING = """expect:
  - {name: sane, when: n < 100, else: warn}
  - {name: wild, when: n < 1000, else: stop}
fresh_within: 15m
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`copy` is computed from `trades`, whose table was made by hand; as a server of Dagster's sees it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    (tmp_path / "specs").mkdir()
    write(COPY + EXPECTING)
    made_by_hand(refusals.owner(pipeline("trades")))
    return tmp_path


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    from dagster import DagsterInstance

    with DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def write(copy: str, options: str = "") -> None:
    Path("specs/main.yaml").write_text(
        BASE.format(bootstrap=NOWHERE) + "---\n" + specs("n: bigint; price: double", options) + copy
    )


def plan() -> Plan:
    return make(Path("specs"))


def pipeline(name: str) -> Pipeline:
    planned_pipeline = plan().pipeline(name)
    assert planned_pipeline is not None
    return planned_pipeline


def copied() -> None:
    """Makes the table of `copy`, up to date."""
    copy = pipeline("copy")
    made_by_hand(refusals.owner(copy), "copy", copy.spec, source="shop.trades")


def definitions() -> Definitions:
    from sluice.dagster import build_sluice_definitions

    return build_sluice_definitions("specs", strict=False)


def tick(instance: DagsterInstance, name: str = "copy_waits") -> Any:
    """Evaluates one tick of a sensor."""
    from dagster import build_sensor_context

    sensor = next(candidate for candidate in definitions().sensors or [] if candidate.name == name)
    return sensor.evaluate_tick(build_sensor_context(instance))


def report_checks(instance: DagsterInstance) -> list[tuple[str, str, bool]]:
    """Reports the checks that the sensor of all tables finds, and returns them."""
    tick_result = tick(instance, "Table_states")
    for evaluation in tick_result.asset_events:
        instance.report_runless_asset_event(evaluation)
    return [(evaluation.asset_key.path[-1], evaluation.check_name, evaluation.passed) for evaluation in tick_result.asset_events]


def materialized(instance: DagsterInstance, *tables: str) -> ExecuteInProcessResult:
    """Runs these tables as the page does, or all tables if none is named."""
    from dagster import AssetKey

    job = definitions().resolve_implicit_global_asset_job_def()
    keys = [AssetKey(["lake", "shop", table]) for table in tables]
    return job.execute_in_process(instance=instance, asset_selection=keys or None, raise_on_error=False)


def checks(instance: DagsterInstance, table: str = "copy") -> dict[str, str]:
    """The state of each check of a table on the page: passed, failed or skipped."""
    from dagster import AssetCheckKey, AssetKey

    graph = definitions().resolve_asset_graph()
    key = AssetKey(["lake", "shop", table])
    keys = [check_key for check_key in graph.asset_check_keys if check_key.asset_key == key]
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert all(isinstance(check_key, AssetCheckKey) for check_key in latest)
    return {check_key.name: latest[check_key].status.value.lower() if check_key in latest else "never" for check_key in keys}


def failure(result: ExecuteInProcessResult) -> str:
    (event,) = (node_event for node_event in result.all_node_events if node_event.is_step_failure)
    failure_data = event.step_failure_data.user_failure_data
    assert failure_data is not None
    return failure_data.description or ""


def queued(job: str) -> Any:
    """The origin of a run that waits in the queue."""
    from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

    location = ManagedGrpcPythonEnvCodeLocationOrigin(LoadableTargetOrigin(module_name="pipelines.definitions"))
    return RemoteRepositoryOrigin(location, "__repository__").get_job_origin(job)


def test_a_sensor_requests_a_run_only_if_messages_wait(folder: Path, instance: DagsterInstance) -> None:
    assert [request.tags["sluice/pipeline"] for request in tick(instance).run_requests] == ["copy"]
    copied()
    assert tick(instance).skip_message == "nothing waits"
    append("trades")
    assert len(tick(instance).run_requests) == 1


@pytest.mark.usefixtures("folder")
def test_sensors_stand_still_while_a_stream_has_the_pipeline(instance: DagsterInstance) -> None:
    stream = leases.Leases()
    assert stream.keep([pipeline("copy").journal_name]) == {}
    says = tick(instance).skip_message
    assert says.startswith("`sluice stream` keeps it up to date: process ")
    assert leases.Leases().keep([pipeline("copy").journal_name]) == {"copy": says.partition(": ")[2]}
    stream.keep([])
    assert len(tick(instance).run_requests) == 1


@pytest.mark.usefixtures("folder")
def test_what_a_stream_commits_is_materialized_once(instance: DagsterInstance) -> None:
    from dagster import AssetCheckKey, AssetKey

    copied()
    key = AssetKey(["lake", "shop", "copy"])
    check_key = AssetCheckKey(key, "can_run")
    report_checks(instance)
    assert not instance.fetch_materializations(key, limit=5).records  # what was committed by hand is none of a stream's
    stream = leases.Leases()
    stream.keep([pipeline("copy").journal_name])
    assert ("copy", "can_run", True) in report_checks(instance)
    (record,) = instance.fetch_materializations(key, limit=5).records
    assert record.asset_materialization is not None
    assert record.asset_materialization.metadata["dagster/row_count"].value == 1
    verdict = instance.event_log_storage.get_latest_asset_check_execution_by_key([check_key])[check_key].evaluation
    assert verdict is not None and verdict.target_materialization_data is not None  # else the page shows it as not evaluated
    assert verdict.target_materialization_data.storage_id == record.storage_id
    assert report_checks(instance) == []
    assert len(instance.fetch_materializations(key, limit=5).records) == 1
    move_position(snapshot=7)  # as a compaction does
    report_checks(instance)
    assert len(instance.fetch_materializations(key, limit=5).records) == 1
    move_position(snapshot=8, more_batches=1)
    report_checks(instance)
    assert len(instance.fetch_materializations(key, limit=5).records) == 2
    stream.keep([])


def move_position(snapshot: int, more_batches: int = 0) -> None:
    """Moves the position of the table of `copy`, whose rows stay."""
    with catalog().load_table("shop.copy").transaction() as transaction:
        position = Position.read(transaction.table_metadata.properties[protocol.POSITION])
        position = replace(position, snapshot=snapshot, batch=position.batch + more_batches)
        transaction.set_properties({protocol.POSITION: position.text()})


@pytest.mark.parametrize("status", ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
@pytest.mark.parametrize("scope", ["tag", "selection", "all"])
def test_a_sensor_requests_no_run_while_another_is_unfinished(
    folder: Path, instance: DagsterInstance, status: str, scope: str
) -> None:
    from dagster import AssetKey, DagsterRun, DagsterRunStatus

    runs: dict[str, dict[str, Any]] = {
        "tag": {"job_name": "__anonymous_asset_job_copy_waits", "tags": {"sluice/pipeline": "copy"}},
        "selection": {"job_name": "__ASSET_JOB", "asset_selection": frozenset([AssetKey(["lake", "shop", "copy"])])},
        "all": {"job_name": "__ASSET_JOB"},
    }
    run_fields = runs[scope]
    origin = queued(run_fields["job_name"]) if status == "QUEUED" else None
    instance.add_run(DagsterRun(status=DagsterRunStatus[status], run_id="0123456789", remote_job_origin=origin, **run_fields))
    assert tick(instance).skip_message == f"run 01234567 is {status.lower().replace('_', ' ')}"


def test_runs_of_other_tables_and_previews_block_no_run(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetKey, DagsterRun, DagsterRunStatus

    other_tables = frozenset([AssetKey(["lake", "shop", "trades"])])
    instance.add_run(DagsterRun(job_name="__ASSET_JOB", status=DagsterRunStatus.STARTED, asset_selection=other_tables))
    instance.add_run(DagsterRun(job_name="Preview", status=DagsterRunStatus.STARTED))
    assert len(tick(instance).run_requests) == 1


def test_a_run_of_a_job_of_ones_own_holds_the_sensor_back(folder: Path, instance: DagsterInstance) -> None:
    from dagster import DagsterRunStatus, Definitions, define_asset_job

    jobs = [define_asset_job(f"only_{name}", selection=f'key:"lake/shop/{name}"') for name in ("trades", "copy")]
    own_defs = Definitions.merge(definitions(), Definitions(jobs=jobs))
    runs = {"trades": "11111111-1111-4111-8111-111111111111", "copy": "22222222-2222-4222-8222-222222222222"}
    for name, run_id in runs.items():
        assert len(tick(instance).run_requests) == 1
        instance.create_run_for_job(own_defs.resolve_job_def(f"only_{name}"), run_id=run_id, status=DagsterRunStatus.STARTING)
    assert tick(instance).skip_message == "run 22222222 is starting"


def test_a_failed_run_is_not_requested_again_while_nothing_has_changed(folder: Path, instance: DagsterInstance) -> None:
    def failed(error: BatchError | RefusedError) -> None:
        journal.record_failure("copy", error)
        same_failure.note(Context(plan()), pipeline("copy"))

    failed(Unexpected("wild", "not-as-expected", "1 of 1 rows are not as `wild` expects", "correct the spec"))
    skipped = tick(instance).skip_message
    assert skipped.startswith("the last run ended with not-as-expected, and nothing has changed since: 1 of 1 rows")
    assert "correct the spec" in skipped

    write(COPY + EXPECTING.replace("1000", "9999"))
    assert len(tick(instance).run_requests) == 1, "the spec has changed"
    failed(BadRowsStop("bad-rows", "1 bad row", "`sluice accept copy`"))
    assert "nothing has changed since: 1 bad row" in tick(instance).skip_message
    copied()  # as accepting does, this moves the position
    append("trades")
    assert len(tick(instance).run_requests) == 1, "the position has moved"

    failed(BatchError("out-of-memory", "Spark ran out of memory", "give it more"))
    assert "out-of-memory" in tick(instance).skip_message
    failed(Transient("table-busy", "another commit came first", "run again"))
    assert len(tick(instance).run_requests) == 1, "this passes by itself"


STORES = {"env": "", "file": "---\nsecrets: main\nstore: file\npath: .sluice/secrets\n"}


@pytest.fixture(params=STORES)
def give(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets secrets in a store. `masked` is computed from `trades` with a mask."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    masked = COPY.replace("copy", "masked") + 'steps: [{mask: {columns: {n: hmac}, key: "${secret:pii}"}}]\n'
    write(masked + STORES[request.param])
    main = Path("specs/main.yaml")
    logins = (
        "security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: u, password: '${secret:kafka}'}\n"
        "registry: http://127.0.0.1:1\nregistry_auth: {username: u, password: '${secret:registry}'}\n"
    )
    address = f'bootstrap: "{NOWHERE}"\n'
    assert address in main.read_text()
    main.write_text(main.read_text().replace(address, address + logins))

    def set_secrets(mode: int = 0o600, **values: str) -> None:
        file = Path(".sluice/secrets")
        file.parent.mkdir(exist_ok=True)
        for name, value in values.items():
            if request.param == "env":
                monkeypatch.setenv(f"SLUICE_SECRET_{name.upper()}", value)
        if request.param == "file":
            file.touch()
            lines = [line for line in file.read_text().splitlines() if line.partition("=")[0] not in values]
            file.write_text("\n".join([*lines, *(f"{name}={value}" for name, value in values.items())]))
            file.chmod(mode)

    return set_secrets


@pytest.mark.parametrize(("name", "table"), [("pii", "masked"), ("kafka", "trades"), ("registry", "trades")])
def test_a_failed_run_is_tried_again_once_a_secret_that_it_uses_has_changed(
    folder: Path, give: Callable[..., None], name: str, table: str
) -> None:
    def fails_again() -> bool:
        return same_failure.same_failure(Context(plan()), pipeline(table)) is not None

    def failed() -> None:
        journal.record_failure(table, SetupError("no-secret", f"the secret `{name}` is not here", "write it"))
        same_failure.note(Context(plan()), pipeline(table))
        assert fails_again()

    give(**{secret: "secret-of-somebody-else" for secret in ("pii", "kafka", "registry") if secret != name})
    failed()
    give(other="not used")
    assert fails_again(), "nothing that it uses has changed"
    give(**{name: "0123456789abcdef"})
    assert not fails_again(), "it was missing"
    failed()
    give(**{name: "0123456789abcdeg"})
    assert not fails_again(), "it was wrong"
    (cached,) = Path("cache").rglob("key")
    assert cached.stat().st_mode & 0o777 == 0o600 and not list((folder / "home").rglob("key"))
    failed()
    cached.unlink()
    assert fails_again(), "by another key nobody can tell"


def test_a_sensor_goes_on_within_a_tick_after_the_hint_of_a_missing_secret(
    folder: Path, instance: DagsterInstance, give: Callable[..., None]
) -> None:
    give()
    journal.record_failure("masked", SetupError("no-secret", "the secret `pii` is not here", "add a line `pii=…`"))
    same_failure.note(Context(plan()), pipeline("masked"))
    assert "nothing has changed since: the secret `pii`" in tick(instance, "masked_waits").skip_message
    give(pii="0123456789abcdef")
    assert len(tick(instance, "masked_waits").run_requests) == 1
    record = journal.file("masked").read_text()
    assert "0123456789abcdef" not in record


def test_a_secrets_file_that_others_could_read_is_another_input_once_they_cannot(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    write(COPY + 'steps: [{mask: {columns: {n: hmac}, key: "${secret:pii}"}}]\n' + STORES["file"])
    file = Path(".sluice/secrets")
    file.parent.mkdir()
    file.write_text("pii=0123456789abcdef\n")
    file.chmod(0o644)
    journal.record_failure("copy", SetupError("open-secrets", "others can read it", "chmod 600 .sluice/secrets"))
    same_failure.note(Context(plan()), pipeline("copy"))
    assert same_failure.same_failure(Context(plan()), pipeline("copy"))
    file.chmod(0o600)
    assert same_failure.same_failure(Context(plan()), pipeline("copy")) is None


def test_an_outage_is_a_failed_tick_and_is_not_waited_for_by_each_sensor(
    folder: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster import ScheduleEvaluationContext, build_schedule_context, build_sensor_context

    write(COPY)
    Path("specs/more.yaml").write_text(
        "pipeline: again\nfrom: {topic: trades}\ninto: {table: shop.again}\n---\n"
        "pipeline: daily\nfrom: {topic: trades}\ninto: {table: shop.daily}\nrun: {cron: '0 6 * * *'}\n"
    )
    main, errors = Path("specs/main.yaml"), []
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        main.write_text(main.read_text().replace(NOWHERE, address))
        server = definitions()
        sensors = {sensor.name: sensor for sensor in server.sensors or []}
        for name in ("trades_waits", "again_waits"):
            with pytest.raises(UnreachableError, match=f"Kafka at {address} does not answer") as error:
                sensors[name].evaluate_tick(build_sensor_context(instance))
            errors.append(error.value)
            silent.listen()  # who asks now waits for an answer that never comes
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody did
            silent.accept()
        schedule: Any
        (schedule,) = [definition for definition in server.schedules or [] if definition.name == "daily_schedule"]
        with monkeypatch.context() as patch:  # a schedule's context takes only an instance with files, which Dagster remembers
            patch.setattr(ScheduleEvaluationContext, "instance", instance)
            assert schedule.evaluate_tick(build_schedule_context()).run_requests, "the next tick is tomorrow's"
    assert errors[0].__traceback__ is not None
    assert [unreachable.code for unreachable in errors] == ["kafka-unreachable", "kafka-unreachable"]
    assert tick(instance).run_requests, "what does not read that cluster goes on"


def test_a_run_without_batches_materializes_nothing(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetKey

    copied()
    result = materialized(instance, "copy")
    assert result.success
    assert result.get_asset_materialization_events() == []
    (run,) = instance.get_runs()
    process = run.tags["sluice/process"]
    assert process.startswith(f"{run.run_id} ") and f" {os.getpid()} " in process
    (observed,) = result.get_asset_observation_events()
    assert observed.asset_observation_data.asset_observation.description == "up to date: nothing waits"
    assert observed.asset_observation_data.asset_observation.metadata["lag_messages"].value == 0
    assert instance.get_latest_materialization_event(AssetKey(["lake", "shop", "copy"])) is None


def test_a_run_without_batches_keeps_the_last_result_of_each_check(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetCheckEvaluation, AssetKey

    copied()
    for name, passed in (("sane", False), ("wild", True)):
        key = AssetKey(["lake", "shop", "copy"])
        instance.report_runless_asset_event(
            AssetCheckEvaluation(asset_key=key, check_name=name, passed=passed, metadata={"rows": 7})
        )
    before = checks(instance)
    assert (before["sane"], before["wild"], before["can_run"]) == ("failed", "succeeded", "never")
    result = materialized(instance, "copy")
    assert result.success
    assert checks(instance) == {**before, "can_run": "succeeded", "fresh": "succeeded"}
    evaluations = [evaluation for evaluation in result.get_asset_check_evaluations() if evaluation.check_name == "sane"]
    assert [evaluation.metadata["rows"].value for evaluation in evaluations] == [7]


def test_a_failed_run_keeps_the_last_result_of_each_check(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetCheckEvaluation, AssetKey

    made_by_hand('{"pipeline": "other", "cluster": "main", "topics": []}', "copy")
    key = AssetKey(["lake", "shop", "copy"])
    instance.report_runless_asset_event(AssetCheckEvaluation(asset_key=key, check_name="wild", passed=True, metadata={}))
    result = materialized(instance, "copy")
    assert not result.success
    assert failure(result).startswith("table-of-another: the table shop.copy belongs to the pipeline other")
    assert (checks(instance)["wild"], checks(instance)["can_run"]) == ("succeeded", "failed")


def executed(instance: DagsterInstance, name: str) -> list[tuple[str, bool]]:
    """Executes one check by itself, as the page's button does: the run succeeds, whatever the check says."""
    from dagster import AssetCheckKey, AssetKey

    job = definitions().resolve_implicit_global_asset_job_def()
    check_key = AssetCheckKey(AssetKey(["lake", "shop", "copy"]), name)
    result = job.get_subset(asset_selection=set(), asset_check_selection={check_key}).execute_in_process(instance=instance)
    return [(evaluation.check_name, evaluation.passed) for evaluation in result.get_asset_check_evaluations()]


def test_a_check_can_be_executed_by_itself(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetCheckEvaluation, AssetKey

    copied()
    assert executed(instance, "can_run") == [("can_run", True)]
    assert executed(instance, "sane") == [], "no run has judged it yet"
    key = AssetKey(["lake", "shop", "copy"])
    instance.report_runless_asset_event(AssetCheckEvaluation(asset_key=key, check_name="sane", passed=False, metadata={}))
    assert executed(instance, "sane") == [("sane", False)]
    journal.pause("copy")
    assert executed(instance, "can_run") == [("can_run", False)]


def test_a_paused_table_warns_and_blocks_no_other_table(folder: Path, instance: DagsterInstance) -> None:
    write(COPY + EXPECTING + COPY.replace("copy", "third"))
    copied()
    third_pipeline = pipeline("third")
    made_by_hand(refusals.owner(third_pipeline), "third", third_pipeline.spec, source="shop.trades")
    report_checks(instance)
    journal.pause("copy")
    assert "copy is paused since" in tick(instance).skip_message
    assert report_checks(instance) == [("copy", "can_run", False)]
    assert report_checks(instance) == [], "it is told once"
    assert failure(materialized(instance, "copy")).startswith("pipeline-paused: copy is paused since")
    result = materialized(instance, "copy", "third")
    assert result.success
    descriptions = {event.asset_observation_data.asset_observation.description for event in result.get_asset_observation_events()}
    assert {text.partition(" since")[0] for text in descriptions if text} == {"copy is paused", "up to date: nothing waits"}
    journal.resume("copy")
    assert report_checks(instance) == [("copy", "can_run", True)]


def test_an_unreadable_position_fails_only_its_own_tables_check(folder: Path, instance: DagsterInstance) -> None:
    copied()
    report_checks(instance)
    with catalog().load_table("shop.trades").transaction() as transaction:
        transaction.set_properties({protocol.POSITION: "{"})
    assert ("trades", "can_run", False) in report_checks(instance)
    states = {
        status.pipeline.name: (status.state, [reason.code for reason in status.reasons])
        for status in statuses(plan(), plan().pipelines)
    }
    assert states == {"trades": ("suspended", ["position-unreadable"]), "copy": ("caught up", [])}


def test_checks_that_a_dead_run_planned_keep_their_last_results(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetCheckEvaluation, AssetKey

    copied()
    report_checks(instance)
    key = AssetKey(["lake", "shop", "copy"])
    instance.report_runless_asset_event(AssetCheckEvaluation(asset_key=key, check_name="sane", passed=False, metadata={}))
    run = instance.create_run_for_job(definitions().resolve_implicit_global_asset_job_def())
    assert report_checks(instance) == [], "the run tells"
    instance.report_run_failed(run)
    assert checks(instance)["sane"] == "planned"
    assert ("copy", "sane", False) in report_checks(instance)
    assert (checks(instance)["sane"], checks(instance)["can_run"]) == ("failed", "succeeded")
    assert report_checks(instance) == []


def planned_run(instance: DagsterInstance, status: str) -> DagsterRun:
    """A run of `copy` that the daemon asked for, in this status."""
    from dagster import AssetKey, DagsterRunStatus

    keys = frozenset([AssetKey(["lake", "shop", "copy"])])
    job = definitions().resolve_implicit_global_asset_job_def().get_subset(asset_selection=keys)
    origin = queued("__ASSET_JOB") if status == "QUEUED" else None
    return instance.create_run_for_job(
        job, asset_selection=keys, status=DagsterRunStatus[status], remote_job_origin=origin, tags={"sluice/pipeline": "copy"}
    )


def executed_run(instance: DagsterInstance, run: DagsterRun) -> None:
    """Execute a run that was planned earlier, as its worker does."""
    from dagster import DagsterEvent, DagsterEventType, DagsterRunStatus, Definitions, in_process_executor
    from dagster._core.definitions.job_base import InMemoryJob
    from dagster._core.execution.api import execute_run

    starting = DagsterEvent(DagsterEventType.PIPELINE_STARTING.value, job_name=run.job_name, message="")
    instance.report_dagster_event(starting, run_id=run.run_id)
    run = instance.get_run_by_id(run.run_id) or run
    assert run.status is DagsterRunStatus.STARTING
    defs = Definitions.merge(definitions(), Definitions(executor=in_process_executor))
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection=run.asset_selection)
    assert execute_run(InMemoryJob(job), run, instance).success


def evaluations(instance: DagsterInstance, name: str) -> list[bool]:
    """The stored evaluations of a check of `copy`, the latest last."""
    from dagster import AssetCheckKey, AssetKey

    key = AssetCheckKey(AssetKey(["lake", "shop", "copy"]), name)
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
    return [
        record.evaluation.passed for record in reversed(records) if hasattr(record.evaluation, "passed") and record.evaluation
    ]


@pytest.mark.parametrize("status", ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
def test_a_late_table_is_reported_within_a_tick_while_its_run_does_not_move(
    folder: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    write(COPY + "fresh_within: 2m\n")
    copied()
    report_checks(instance)
    assert checks(instance) == {"can_run": "succeeded", "fresh": "succeeded"}
    append("trades")
    planned_run(instance, status)
    start_time = datetime.now(timezone.utc)
    reports = []
    for seconds in range(0, 600, 30):
        # Dagster evaluates the sensor, which takes no clock.
        monkeypatch.setattr("framework.host.assets.states.utc_now", lambda moment=start_time + timedelta(seconds=seconds): moment)
        reports += [(seconds, *report) for report in report_checks(instance) if report[0] == "copy"]
        journal.pause("copy") if seconds == 300 else None
    (late_report, pause_report) = reports
    assert (late_report, pause_report) == ((120, "copy", "fresh", False), (330, "copy", "can_run", False))
    assert checks(instance) == {"can_run": "failed", "fresh": "failed"}
    assert evaluations(instance, "fresh") == [True, False], "Dagster keeps every event"


def test_a_run_that_ends_at_last_reports_its_own_result(
    folder: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(COPY + "fresh_within: 2m\n")
    copied()
    report_checks(instance)
    run = planned_run(instance, "QUEUED")
    journal.pause("copy")
    with monkeypatch.context() as later:
        ten_minutes_later = datetime.now(timezone.utc) + timedelta(minutes=10)
        # Dagster evaluates the sensor, which takes no clock.
        later.setattr("framework.host.assets.states.utc_now", lambda: ten_minutes_later)
        reports = [report for report in report_checks(instance) if report[0] == "copy"]
    assert reports == [("copy", "can_run", False), ("copy", "fresh", False)]
    journal.resume("copy")
    executed_run(instance, run)
    assert checks(instance) == {"can_run": "succeeded", "fresh": "succeeded"}, "before the sensor's next tick"
    assert [report for report in report_checks(instance) if report[0] == "copy"] == []


def test_a_run_that_nobody_overtook_adds_no_second_evaluation(folder: Path, instance: DagsterInstance) -> None:
    copied()
    report_checks(instance)
    executed_run(instance, planned_run(instance, "QUEUED"))
    assert evaluations(instance, "can_run") == [True, True], "one of the sensor, one of the run"


def test_a_run_that_ends_while_the_sensor_reads_is_believed(
    folder: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sensor read the state from before the run. Its report would turn the check red and green again."""
    from framework.host.assets import states

    copied()
    report_checks(instance)
    run = planned_run(instance, "QUEUED")
    journal.pause("copy")

    def read_slowly(*arguments: Any, **more: Any) -> Any:
        state = statuses(*arguments, **more)
        journal.resume("copy")
        executed_run(instance, run)
        return state

    with monkeypatch.context() as slow:
        # A run does not end within that moment by itself.
        slow.setattr(states, "statuses", read_slowly)
        assert [report for report in report_checks(instance) if report[0] == "copy"] == []
    assert checks(instance)["can_run"] == "succeeded"


def test_followers_that_are_behind_are_reported_while_a_run_is_queued(folder: Path, instance: DagsterInstance) -> None:
    write(COPY + "also: [{delta: true}]\n")
    copied()
    run = planned_run(instance, "QUEUED")
    assert ("copy", "also", False) in report_checks(instance), "no run has judged it yet"
    assert report_checks(instance) == []
    instance.report_run_failed(run)
    second_run = planned_run(instance, "QUEUED")
    instance.report_run_failed(second_run)
    assert [report for report in report_checks(instance) if report[1] == "also"] == [("copy", "also", False)], "reported once"


def test_a_run_whose_process_died_is_ended(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetKey, DagsterRun, DagsterRunStatus

    from framework.host.assets import dead_runs

    copied()
    append("trades")
    with subprocess.Popen(["sleep", "60"]) as child:
        before = {"alive": dead_runs.identity(os.getpid()), "dead": dead_runs.identity(child.pid)}
        before["of another machine"] = before["dead"].replace(socket.gethostname(), "elsewhere")
        before["of another container"] = before["dead"].replace("pid:[", "pid:[9")
        before["that repeats it"] = before["dead"]
        child.kill()
    for name, process in before.items():
        keys = frozenset([AssetKey(["lake", "shop", "copy" if name == "dead" else "trades"])])
        tags = {dead_runs.TAG: f"{'dead' if name == 'that repeats it' else name} {process}"}
        instance.add_run(DagsterRun("__ASSET_JOB", name, asset_selection=keys, status=DagsterRunStatus.STARTED, tags=tags))
    assert tick(instance).skip_message == "run dead is started"
    assert tick(instance, "Table_states").skip_message.endswith("; 1 run ended, whose process had died")
    statuses = {name: run.status.value for name in before if (run := instance.get_run_by_id(name))}
    assert statuses.pop("dead") == "FAILURE"
    assert set(statuses.values()) == {"STARTED"} and len(statuses) == 4
    assert len(tick(instance).run_requests) == 1


def test_a_run_that_ended_well_while_one_looked_stays_so(
    folder: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster import DagsterRun, DagsterRunStatus

    from framework.host.assets import dead_runs

    with subprocess.Popen(["true"]) as child:
        tags = {dead_runs.TAG: f"quick {dead_runs.identity(child.pid)}"}
    instance.add_run(DagsterRun("__ASSET_JOB", "quick", status=DagsterRunStatus.STARTED, tags=tags))

    def ends(_pid: int) -> str:
        run = instance.get_run_by_id("quick")
        assert run
        instance.report_run_failed(run, "stands for any end: its own event came first")
        return ""

    # A run does not end within that moment by itself.
    monkeypatch.setattr(dead_runs, "identity", ends)
    assert list(dead_runs.end_dead(instance)) == []


def test_a_catalog_without_its_secret_ends_no_tick(
    folder: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def lacks(*_: object) -> None:
        calls.append("asked")
        raise SetupError("no-secret", "the secret `token` is not here", "")

    copied()
    # The catalog of this folder is a file and needs no secret.
    monkeypatch.setattr("framework.operations.observe.status.newest_event_in", lacks)
    assert ("copy", "can_run", True) in report_checks(instance)
    # The catalog of this folder is a file and needs no secret.
    monkeypatch.setattr("framework.host.assets.maintenance.is_due", lacks)
    from dagster import build_schedule_context

    hourly: Any
    (hourly,) = [schedule for schedule in definitions().schedules or [] if schedule.name == "Maintenance_schedule"]
    assert hourly.evaluate_tick(build_schedule_context(instance)).skip_message == "no table is due"
    assert len(calls) == 4, "for two tables, by the sensor and by the schedule"


def test_a_broken_spec_keeps_its_table_and_its_checks(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetKey

    copied()
    report_checks(instance)
    write(COPY.replace("replace", "replase") + EXPECTING)
    graph = definitions().resolve_asset_graph()
    table_asset = graph.get(AssetKey(["lake", "shop", "copy"]))
    assert "bad-choice" in (table_asset.description or "") or "replase" in (table_asset.description or "")
    assert graph.has(AssetKey(["lake", "shop", "copy__bad_rows"]))
    assert report_checks(instance) == [("copy", "can_run", False)]
    assert "replase" in failure(materialized(instance, "copy"))
    assert executed(instance, "can_run") == [("can_run", False)]
    write(COPY + EXPECTING)
    assert report_checks(instance) == [("copy", "can_run", True)]


def test_a_broken_step_keeps_all_checks(folder: Path) -> None:
    write(COPY + "steps: [{derive: {m: nn * 2}}]\n" + EXPECTING)
    names = {key.name for key in definitions().resolve_asset_graph().asset_check_keys if key.asset_key.path[-1] == "copy"}
    assert names == {"can_run", "fresh", "sane", "wild"}


def test_an_expectation_that_stops_the_batch_blocks_later_assets(folder: Path) -> None:
    graph = definitions().resolve_asset_graph()
    blocking = {key.name: graph.get_check_spec(key).blocking for key in graph.asset_check_keys}
    assert (blocking["sane"], blocking["wild"]) == (False, True)


def test_the_launchpad_of_a_preview_begins_with_a_valid_configuration(folder: Path) -> None:
    from dagster import JobDefinition, validate_run_config

    preview = next(job for job in definitions().jobs or [] if job.name == "Preview")
    assert isinstance(preview, JobDefinition)
    configuration = preview.run_config
    assert configuration == {"ops": {"Show": {"config": {"pipeline": "copy", "messages": 5, "which": "next"}}}}
    assert validate_run_config(preview, configuration)


def test_each_column_names_its_source_columns(folder: Path) -> None:
    from dagster import AssetKey

    write(COPY, "steps: [{derive: {total: price * n}}]")
    table = definitions().resolve_asset_graph().get(AssetKey(["lake", "shop", "trades"]))
    descriptions = {column.name: column.description for column in table.metadata["dagster/column_schema"].columns}
    assert (descriptions["total"], descriptions["n"]) == ("from `n`, `price`", None)


def test_an_outage_during_a_run_is_named_and_not_sparks_error(folder: Path) -> None:
    trades = pipeline("trades")
    error = outage(trades, RuntimeError("An error occurred while calling o123.save: " + "x" * 20_000))
    assert error is not None
    assert str(error).startswith(f"kafka-unreachable: Kafka at {NOWHERE} does not answer\n")
    assert outage(trades, Unexpected("wild", "not-as-expected", "1 of 1 rows", "")) is None
    assert outage(pipeline("copy"), RuntimeError("other")) is None


def test_an_outage_leaves_no_file_of_an_unknown_error(folder: Path) -> None:
    assert failures.named(pipeline("trades"), RuntimeError("as Spark tells it")).code == "kafka-unreachable"
    assert not (folder / "home" / "logs").exists()
    assert failures.named(pipeline("copy"), RuntimeError("another")).code == "unexpected-error"
    assert len(list((folder / "home" / "logs").iterdir())) == 1


def test_a_run_without_kafka_is_retried_three_times(folder: Path, instance: DagsterInstance) -> None:
    from dagster import AssetSelection, materialize

    from framework.host.assets.runs import table
    from framework.host.assets.translator import Assets

    sluice_plan = plan()
    table_asset = table(sluice_plan, Assets(sluice_plan), pipeline("trades"), between=0)
    result = materialize(
        [table_asset], instance=instance, resources={"sluice_spark": None}, raise_on_error=False, selection=AssetSelection.all()
    )
    assert sum(event.event_type_value == "STEP_UP_FOR_RETRY" for event in result.all_node_events) == 3
    assert failure(result).startswith(f"kafka-unreachable: Kafka at {NOWHERE} does not answer")
    assert checks(instance, "trades") == {"can_run": "failed"}


def test_each_run_takes_the_pool_of_its_table_and_says_whose_it_is(folder: Path) -> None:
    from dagster import AssetKey

    for name in ("trades", "copy"):
        op = definitions().resolve_assets_def(AssetKey(["lake", "shop", name])).op
        assert (op.pool, op.tags["sluice/pipeline"]) == (f"table_{name}", name)


def test_a_table_has_one_run_at_a_time_however_it_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dagster import DagsterInstance

    from framework.base import home
    from framework.base.home import dagster_home

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    with DagsterInstance.from_config(str(dagster_home())) as instance:
        pools = instance.get_concurrency_config().pool_config
        assert (pools.default_pool_limit, str(pools.pool_granularity).rpartition(".")[2]) == (1, "OP")
        storage = instance.event_log_storage
        assert storage.initialize_concurrency_limit_to_default("table_trades")
        first_claim = storage.claim_concurrency_slot("table_trades", "a", "trades")
        second_claim = storage.claim_concurrency_slot("table_trades", "b", "trades")
        assert (first_claim.is_claimed, second_claim.is_claimed) == (True, False)
        assert instance.run_monitoring_settings.get("free_slots_after_run_end_seconds")
        for daemon in ("sensors", "schedules"):
            assert instance.get_settings(daemon)["use_threads"], "one does not wait for the others"
    settings = dagster_home() / "dagster.yaml"
    current = settings.read_text()
    settings.write_text(home.SHIPPED[0])
    assert (dagster_home() / "dagster.yaml").read_text() == current, "what an older Sluice wrote is replaced"
    settings.write_text("telemetry: {enabled: false}\n")
    assert (dagster_home() / "dagster.yaml").read_text() == "telemetry: {enabled: false}\n", "what somebody wrote is not"


def test_what_a_look_does_not_find_any_more_holds_no_run_back(folder: Path) -> None:
    context, copy = Context(plan()), pipeline("copy")
    for error, holds in ((TopicRecreated("topic-recreated", "it is another topic"), False), (BadRowsStop("bad-rows", "2"), True)):
        journal.record_failure("copy", error)
        same_failure.note(context, copy)
        assert (same_failure.same_failure(context, copy) is not None) is holds


def test_an_outage_of_a_readers_catalog_hides_no_status(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise CatalogAway("catalog-unreachable", "the catalog `other` does not answer")

    monkeypatch.setattr(due, "due", away)  # a catalog that is away is tried again for seconds
    assert due.behind_a_run(pipeline("copy"), datetime.now(timezone.utc)) == ()
