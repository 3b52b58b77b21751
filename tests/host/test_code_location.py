"""Sluice in somebody's own Dagster project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SluiceError, SpecError
from tests.support.project import Project
from tests.support.repository import ROOT
from tests.support.spec_parts import LAKE
from tests.support.waiting import until

if TYPE_CHECKING:
    from dagster import AssetSpec

    from sluice.dagster import SluiceAsset, SluiceTranslator

pytestmark = pytest.mark.slow
SPECS = f"""
cluster: main
bootstrap: "127.0.0.1:1"
---
{LAKE}---
topic: trades
value: json
columns: {{price: double, symbol: string}}
---
topic: users
value: json
columns: {{name: string}}
---
pipeline: trades
owner: team:trading
from: {{topic: trades}}
into: {{table: m.trades}}
---
pipeline: users
from: {{topic: users}}
into: {{table: m.users}}
run: by_hand
---
pipeline: copy
from: {{table: m.trades}}
steps: [{{derive: {{twice: price * 2}}}}]
bad_rows: drop
into: {{table: m.copy}}
run: on_new_data
---
export: weekly
from: {{table: m.trades}}
file: {{format: csv, to: exports/trades.csv}}
schedule: "0 6 * * 1"
"""


def in_warehouse() -> SluiceTranslator:
    from sluice.dagster import SluiceTranslator

    class InWarehouse(SluiceTranslator):
        def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
            spec = asset.spec.replace_attributes(key=asset.spec.key.with_prefix("warehouse"), group_name=f"{asset.type}s")
            return spec.merge_attributes(tags={"of": asset.name})

    return InWarehouse()


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))  # without jars: to load definitions needs none
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "main.yaml").write_text(SPECS)
    return tmp_path / "specs"


def test_a_translator_chooses_keys_groups_and_tags_and_all_follows(specs: Path) -> None:
    from dagster import AssetKey

    from sluice.dagster import build_sluice_definitions

    defs = build_sluice_definitions(specs, translator=in_warehouse())
    graph = defs.resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert keys == {f"warehouse/{path}" for path in (
        "kafka/main/trades", "kafka/main/users", "lake/m/trades", "lake/m/trades__bad_rows", "lake/m/users",
        "lake/m/users__bad_rows", "lake/m/copy", "exports/weekly",
    )}  # fmt: skip
    copy = graph.get(AssetKey(["warehouse", "lake", "m", "copy"]))
    trades = AssetKey(["warehouse", "lake", "m", "trades"])
    assert (copy.group_name, copy.tags["of"], copy.parent_keys) == ("tables", "copy", {trades})
    (origin,) = copy.metadata["dagster/column_lineage"].deps_by_column["twice"]
    assert (origin.asset_key, origin.column_name) == (trades, "price")
    assert graph.get(trades).owners == ["team:trading"]
    assert {key.asset_key for key in graph.asset_check_keys} <= graph.get_all_asset_keys()
    waiting_sensors: list[Any] = [sensor for sensor in defs.sensors or [] if sensor.name.endswith("_waits")]
    starts = {sensor.name: sensor.job.selection.resolve(graph) for sensor in waiting_sensors}
    assert starts == {"copy_waits": {copy.key}, "trades_waits": {trades, AssetKey([*trades.path[:-1], "trades__bad_rows"])}}
    assert copy.automation_condition
    assert graph.get(trades).automation_condition is None
    defs.get_repository_def()


def test_a_pipeline_and_an_export_never_get_one_name(specs: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    (specs / "main.yaml").write_text(SPECS.replace("pipeline: users", "pipeline: export_weekly"))
    build_sluice_definitions(specs).get_repository_def()


def test_the_definitions_force_nothing_on_others(specs: Path) -> None:
    import warnings

    from dagster import BetaWarning

    from sluice.dagster import build_sluice_definitions

    before = list(warnings.filters)
    defs = build_sluice_definitions(specs, sensors=False)
    assert defs.executor is None
    assert not defs.sensors and not defs.schedules
    assert warnings.filters == before
    with pytest.warns(BetaWarning):
        warnings.warn("of somebody else", BetaWarning, stacklevel=1)


def test_sensors_and_schedules_start_nothing_in_other_projects_until_they_are_turned_on(specs: Path) -> None:
    import runpy

    from dagster import Definitions

    from sluice.dagster import build_sluice_definitions

    main = specs / "main.yaml"
    main.write_text(SPECS.replace("run: by_hand", 'run: {cron: "0 6 * * *"}').replace("owner:", "batch: {after: 250MB}\nowner:"))

    def statuses(defs: Definitions) -> dict[str, str]:
        repository = defs.get_repository_def()
        automatic: list[Any] = [*repository.sensor_defs, *repository.schedule_defs]
        return {definition.name: definition.default_status.value.lower() for definition in automatic}

    names = {
        *("trades_waits", "trades_fills", "copy_waits", "users_schedule", "Table_states"),
        *("Maintenance_schedule", "Export_weekly_schedule"),
    }
    default = statuses(build_sluice_definitions(specs))
    assert default.keys() - names <= {"default_automation_condition_sensor"}
    assert set(default.values()) == {"stopped"}
    assert dict.fromkeys(names, "stopped").items() <= default.items()
    chosen_statuses = statuses(build_sluice_definitions(specs, default_status="running"))
    assert dict.fromkeys(names, "running").items() <= chosen_statuses.items()
    shipped = statuses(runpy.run_path(str(ROOT / "pipelines" / "definitions.py"))["defs"])
    assert shipped == {**dict.fromkeys(names, "running"), "New_data": "running"}
    with pytest.raises(SluiceError, match="`default_status` cannot be 'on'") as error:
        build_sluice_definitions(specs, default_status="on")  # type: ignore[arg-type]
    assert error.value.hint == "write 'stopped' or 'running'"


BUILDER_CODE = """
from sluice.dagster import build_sluice_definitions

defs = build_sluice_definitions("specs")
"""
OWN_COMPONENT = "type: sluice.dagster.SluiceComponent\nattributes: {specs: ../../../../specs}\n"
BROKEN = "pipeline: more\nfrom: {topic: users}\nsteps: [{filter: nam > 0}]\ninto: {table: m.more}\n"


@pytest.fixture
def location(specs: Path) -> Path:
    """A project of one's own with a broken spec: `own.py` builds definitions, and a component does the same."""
    for name, text in {**PROJECT, "own.py": BUILDER_CODE, "src/mine/defs/shop/defs.yaml": OWN_COMPONENT}.items():
        (specs.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (specs.parent / name).write_text(text)
    (specs / "more.yaml").write_text(BROKEN)
    return specs.parent


def command(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """The exit status and the output of a command of Dagster's."""
    result = subprocess.run(
        [str(Path(sys.executable).with_name(arguments[0])), *arguments[1:]], cwd=folder, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder / 'src'}", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return result.returncode, result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        "dagster definitions validate -f own.py",
        "dagster asset materialize --select * -f own.py",
        "dagster job execute -j Maintenance -f own.py",
        "dg launch --assets * -f own.py",
        "dg launch --assets *",
        "dg list defs",
        "dg check defs",
    ],
)
def test_a_broken_spec_ends_each_command_with_its_place(location: Path, arguments: str) -> None:
    status, output = command(location, *arguments.split())
    assert status == 1, output
    assert "specs/more.yaml:3:18: unknown-column: there is no column `nam`" in output
    if not arguments.endswith(("dg check defs", "definitions validate -f own.py")):  # these show where the load began
        assert "Traceback" not in output and "File " not in output, output


@pytest.mark.parametrize("server", ["API_GRPC", "CODE_SERVER_START"])
@pytest.mark.parametrize("origin", ["builder", "component"])
def test_a_server_shows_a_broken_spec_as_an_asset(
    location: Path, monkeypatch: pytest.MonkeyPatch, server: str, origin: str
) -> None:
    from dagster import DagsterInstance
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import PythonFileTarget
    from dagster._grpc.constants import GrpcServerCommand

    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{location / 'src'}")
    file = location / ("own.py" if origin == "builder" else "src/mine/definitions.py")
    target = PythonFileTarget(str(file), None, str(location), "mine")
    (location / "dagster").mkdir()
    (location / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with (
        DagsterInstance.from_config(str(location / "dagster")) as instance,
        WorkspaceProcessContext(instance, target, server_command=GrpcServerCommand[server]) as process,
    ):
        context = process.create_request_context()
        entry = context.get_code_location_entries()["mine"]
        assert entry.load_error is None and entry.code_location is not None
        keys = {key.to_user_string() for key in context.asset_graph.get_all_asset_keys()}
    (broken,) = (key for key in keys if key.startswith("broken/"))
    assert broken.endswith("specs_more")
    assert {"lake/m/trades", "lake/m/more"} <= keys


def test_strict_has_three_values(specs: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    with pytest.raises(SluiceError, match="`strict` cannot be 'yes'") as error:
        build_sluice_definitions(specs, strict="yes")  # type: ignore[arg-type]
    assert error.value.hint == "write True, False or 'auto'"


def test_a_code_location_can_have_two_folders(specs: Path) -> None:
    from dagster import Definitions

    from sluice.dagster import build_sluice_definitions

    first_defs = build_sluice_definitions(specs)
    second_defs = build_sluice_definitions(specs, name="second", translator=in_warehouse())
    repository = Definitions.merge(first_defs, second_defs).get_repository_def()
    assert len(repository.assets_defs_by_key) == 2 * 8
    assert {"Maintenance", "second_Maintenance", "Preview", "second_Preview"} <= set(repository.job_names)
    assert {"trades_waits", "second_trades_waits"} <= {sensor.name for sensor in repository.sensor_defs}
    with pytest.raises(SluiceError, match="`my-shop` cannot stand before names in Dagster"):
        build_sluice_definitions(specs, name="my-shop")


def test_selected_pipelines_come_with_their_topics_bad_rows_and_exports(specs: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    def keys(select: str | tuple[str, ...], materializable: bool = True, **options: Any) -> set[str]:
        graph = build_sluice_definitions(specs, select=select, **options).resolve_asset_graph()
        return {
            key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).is_materializable or not materializable
        }

    assert keys("users") == keys(("users",)) == {"lake/m/users", "lake/m/users__bad_rows"}
    assert keys("users", materializable=False) == {"lake/m/users", "lake/m/users__bad_rows", "kafka/main/users"}
    assert keys("m.trades") == {"lake/m/trades", "lake/m/trades__bad_rows", "exports/weekly"}
    with pytest.raises(SluiceError, match="there is no pipeline `user`") as error:
        keys("user")
    assert error.value.hint == "did you mean `users`?"
    (specs / "more.yaml").write_text("pipeline: more\nfrom: {topic: users}\nsteps: [{filter: nam > 0}]\ninto: {table: m.more}\n")
    assert keys("users", strict=False) == {"lake/m/users", "lake/m/users__bad_rows", "broken/specs_more"}
    assert keys("m.more", materializable=False, strict=False) == {
        *("lake/m/more", "lake/m/more__bad_rows", "broken/specs_more", "kafka/main/users")
    }
    (specs / "more.yaml").write_text("pipeline: more\nfrom: {topic: users}\nin: {table: m.more}\n")
    assert keys("more", strict=False) == {"broken/specs_more"}


def test_nothing_runs_where_the_environment_is_unknown(specs: Path) -> None:
    """Without the environment's replacements, tables would be loaded from another Kafka into another catalog."""
    from sluice.dagster import build_sluice_definitions

    defs = build_sluice_definitions(specs, env="prdo", strict=False)
    assert {sensor.name for sensor in defs.sensors or []} == {"Table_states"}
    assert list(defs.schedules or []) == []
    assert "exports/weekly" not in {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    with pytest.raises(SpecError, match="there is no environment `prdo`"):
        build_sluice_definitions(specs, env="prdo")


def test_what_dagster_has_no_letters_for_ends_no_code_location(specs: Path) -> None:
    from dagster import AssetKey

    from sluice.dagster import build_sluice_definitions

    (specs / "bestellungen_für.yaml").write_text("pipeline: größe\nfrom: {topic: users}\ninto: {table: m.sizes}\n")
    (specs / "type.yaml").write_text(
        "topic: sizes\nvalue: json\ncolumns: {größe: int, Größe_2: int}\n---\n"
        "pipeline: type\nfrom: {topic: sizes}\ninto: {table: m.types}\nowner: data@shop.corporation\n"
        'tags: {"for whom": "fraud detection & others", kept: "1.0"}\n'
        "expect: [{column: größe, not_null: true}, {column: Größe_2, not_null: true}]\n"
    )
    defs = build_sluice_definitions(specs, strict=False)
    graph = defs.resolve_asset_graph()
    table = graph.get(AssetKey(["lake", "m", "types"]))
    assert not table.owners and {"for_whom": "fraud_detection___others", "kept": "1.0"}.items() <= table.tags.items()
    assert {check_key.name for check_key in graph.asset_check_keys if check_key.asset_key == table.key} >= {
        "gr_e_is_not_null",
        "gr_e_2_is_not_null",
    }
    assert AssetKey(["broken", "specs_bestellungen_f_r"]) in graph.get_all_asset_keys()
    defs.get_repository_def()


def test_queries_of_exports_are_checked_as_well(specs: Path) -> None:
    from sluice.dagster import build_sluice_definitions

    main = specs / "main.yaml"
    main.write_text(main.read_text().replace("schedule:", "query: select symbl from input\nschedule:"))
    with pytest.raises(SpecError, match="symbl"):
        build_sluice_definitions(specs)
    defs = build_sluice_definitions(specs, strict=False)
    assert "broken/specs_main" in {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert [schedule.name for schedule in defs.schedules or []] == ["Maintenance_schedule", "Export_weekly_schedule"]


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_dagster_links_every_asset_to_its_line_in_git(specs: Path) -> None:
    from dagster import AnchorBasedFilePathMapping, Definitions, link_code_references_to_git

    from sluice.dagster import build_sluice_definitions

    (specs / "more.yaml").write_text(BROKEN)
    defs = build_sluice_definitions(specs, strict=False)
    linked = link_code_references_to_git(
        list(defs.assets or ()),
        git_url="https://github.com/shop/lake",
        git_branch="main",
        file_path_mapping=AnchorBasedFilePathMapping(
            local_file_anchor=specs / "main.yaml", file_anchor_path_in_repository="specs/main.yaml"
        ),
    )
    graph = Definitions(assets=linked, resources=defs.resources).resolve_asset_graph()
    assert graph.get_all_asset_keys() == defs.resolve_asset_graph().get_all_asset_keys()
    urls = {
        key.to_user_string(): reference.url
        for key in graph.get_all_asset_keys()
        for reference in graph.get(key).metadata["dagster/code_references"].code_references
    }
    assert urls.keys() == {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert urls["kafka/main/trades"] == "https://github.com/shop/lake/tree/main/specs/main.yaml#L10"
    executable = {key.to_user_string() for key in graph.executable_asset_keys}
    assert {name for name in urls if not name.startswith("kafka/")} == executable


def test_what_a_translator_does_wrong_is_named(specs: Path) -> None:
    from sluice.dagster import SluiceTranslator, build_sluice_definitions

    class Odd(SluiceTranslator):
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
            answer: AssetSpec = self.answer(asset)
            return answer

    with pytest.raises(SluiceError, match="a translator returns NoneType for the topic `trades`"):
        build_sluice_definitions(specs, translator=Odd(lambda _: None))
    with pytest.raises(SluiceError, match="the topic `trades` and the table `trades` get one key, trades"):
        build_sluice_definitions(specs, translator=Odd(lambda asset: asset.spec.replace_attributes(key=asset.name)))


@pytest.mark.parametrize(
    ("attributes", "type", "says", "does"),
    [
        (
            "partitions_def",
            "table",
            "partitions (StaticPartitionsDefinition), but a run loads all waiting",
            "`sluice rewind trades --to TIME --into TABLE` reads from a time on again",
        ),
        ("partitions_def", "bad_rows", "partitions", "leave `partitions_def` out"),
        ("partitions_def", "topic", "partitions", "has no partitions"),
        ("partitions_def", "export", "a run writes the file of one window", "sluice export weekly --window WINDOW"),
        ("deps", "table", "dependencies without kafka/main/trades", "merge_attributes(deps=[…])"),
        ("deps", "export", "dependencies without lake/m/trades", "merge_attributes(deps=[…])"),
        ("skippable", "table", "`skippable=True`, but a run never skips an asset", "leave `skippable` out"),
        ("is_virtual", "bad_rows", "`is_virtual=True`, but it has data", "leave `is_virtual` out"),
    ],
)
def test_a_translator_chooses_nothing_that_a_run_would_not_do(
    specs: Path, attributes: str, type: str, says: str, does: str
) -> None:
    from dagster import StaticPartitionsDefinition

    from sluice.dagster import SluiceTranslator, build_sluice_definitions

    name = "weekly" if type == "export" else "trades"
    values = {"partitions_def": StaticPartitionsDefinition(["a", "b"]), "deps": ["mine"], "skippable": True, "is_virtual": True}

    class Odd(SluiceTranslator):
        def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
            changes: dict[str, Any] = {attributes: values[attributes]}
            return asset.spec.replace_attributes(**changes) if (asset.type, asset.name) == (type, name) else asset.spec

    with pytest.raises(SluiceError, match=re.escape(says)) as error:
        build_sluice_definitions(specs, translator=Odd())
    assert error.value.code == "bad-translation" and f"the {type} `{name}`" in error.value.message
    assert does in error.value.hint


def test_a_broken_spec_gets_no_partitions_either(specs: Path) -> None:
    from dagster import StaticPartitionsDefinition

    from sluice.dagster import SluiceTranslator, build_sluice_definitions

    class Odd(SluiceTranslator):
        def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
            partitions = StaticPartitionsDefinition(["a"]) if asset.type == "broken" else None
            return asset.spec.replace_attributes(partitions_def=partitions)

    (specs / "more.yaml").write_text(BROKEN)
    with pytest.raises(SluiceError, match=r"a translator gives the broken `.*more.yaml` partitions"):
        build_sluice_definitions(specs, translator=Odd(), strict=False)


def test_a_translator_returns_one_key_for_an_asset(specs: Path) -> None:
    from sluice.dagster import SluiceTranslator, build_sluice_definitions

    class Counting(SluiceTranslator):
        number = 0

        def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
            self.number += 1
            return asset.spec.replace_attributes(key=asset.spec.key.with_prefix(str(self.number)))

    with pytest.raises(SluiceError, match="a translator returns two keys for the topic `trades`, 1/kafka/main/trades and "):
        build_sluice_definitions(specs, translator=Counting())


def test_dependencies_are_added_to_those_of_the_specs(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translator adds them, and so does a component's `translation`, which in Dagster's own components replaces them."""
    from dagster import AssetKey, load_from_defs_folder

    from sluice.dagster import SluiceTranslator, build_sluice_definitions

    class AfterLoader(SluiceTranslator):
        def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
            return asset.spec.merge_attributes(deps=["loader"]) if asset.type == "table" else asset.spec

    component = f"{COMPONENT % ('specs', 'w')}".replace("{key_prefix: w}", "{key_prefix: w, deps: [loader]}")
    for name, text in {**PROJECT, "src/mine/defs/x/defs.yaml": component, "src/mine/defs/x/specs/main.yaml": SPECS}.items():
        file = specs.parent / name.replace("mine", "dependent")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("mine", "dependent"))
    monkeypatch.syspath_prepend(str(specs.parent / "src"))
    by_component = load_from_defs_folder(path_within_project=specs.parent / "src" / "dependent").resolve_asset_graph()
    by_translator = build_sluice_definitions(specs, translator=AfterLoader()).resolve_asset_graph()
    loader = AssetKey(["loader"])
    assert by_translator.get(AssetKey(["lake", "m", "copy"])).parent_keys == {AssetKey(["lake", "m", "trades"]), loader}
    assert by_component.get(AssetKey(["w", "lake", "m", "copy"])).parent_keys == {AssetKey(["w", "lake", "m", "trades"]), loader}


@pytest.mark.long
def test_a_run_lives_as_long_as_the_process_that_executes_it(specs: Path, tmp_path: Path) -> None:
    """Dagster's own executor starts a process for each step, which ends before the run: here Kafka does not answer."""
    from dagster import DagsterInstance

    from framework.host.assets import dead_runs

    (tmp_path / "mine.py").write_text(
        "from sluice.dagster import build_sluice_definitions\n\ndefs = build_sluice_definitions('specs')\n"
    )
    (tmp_path / "dagster").mkdir()
    (tmp_path / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "--select", "lake/m/trades", "-f", "mine.py"]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path / "dagster"), "PYTHONPATH": str(ROOT)}
    with (
        DagsterInstance.from_config(str(tmp_path / "dagster")) as instance,  # makes the databases, which two at once cannot
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log) as run,
    ):
        try:
            (tag,) = until(
                lambda: [
                    started_run.tags[dead_runs.TAG] for started_run in instance.get_runs() if dead_runs.TAG in started_run.tags
                ],
                "no run has a process",
            )
            assert tag.partition(" ")[2] == dead_runs.identity(run.pid)
            until(lambda: "STEP_UP_FOR_RETRY" in (tmp_path / "log").read_text(), "no step has ended")
            assert list(dead_runs.end_dead(instance)) == []
        finally:
            run.kill()
        run.wait()
        assert len(list(dead_runs.end_dead(instance))) == 1


@pytest.mark.spark
@pytest.mark.kafka
def test_two_folders_in_one_run_write_into_their_own_catalogs(project: Project, tmp_path: Path) -> None:
    """Both catalogs are called `lake`, and both runs have the Spark of this process."""
    from dagster import DagsterInstance, Definitions

    from framework.host.plans import make
    from framework.systems.catalogs import client_of
    from sluice.dagster import build_sluice_definitions

    project.make_topic()
    project.send_good(5)
    first_folder = Path(project.pipeline.where.file).parent
    second_folder = tmp_path / "second" / "specs"
    second_folder.mkdir(parents=True)
    for file in first_folder.glob("*.yaml"):
        (second_folder / file.name).write_text(
            file.read_text().replace("lake.db", "second.db").replace("warehouse: w", "warehouse: second_w")
        )
    defs = Definitions.merge(
        build_sluice_definitions(first_folder, name="one"),
        build_sluice_definitions(second_folder, name="two", translator=in_warehouse()),
    )
    with DagsterInstance.ephemeral() as instance:
        assert defs.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance).success
    for folder in (first_folder, second_folder):
        (pipeline,) = make(folder).pipelines
        table = client_of(pipeline.table.catalog).load(pipeline.table.identifier)
        assert table is not None
        assert ("/second_warehouse/" in table.location()) is (folder == second_folder)
        assert len(table.scan().to_arrow()) == 5
    jvm: Any = project.spark._jvm
    assert jvm.SparkSession.active().equals(project.spark._jsparkSession)
    assert "second" not in str(project.spark.conf.get("spark.sql.catalog.lake.warehouse"))


@pytest.mark.spark
@pytest.mark.kafka
def test_an_asset_of_ones_own_reads_a_table_through_the_spark_resource(project: Project) -> None:
    from dagster import AssetKey, DagsterInstance, Definitions, asset
    from dagster_pyspark import LazyPySparkResource

    from sluice.dagster import SluiceSparkResource, build_sluice_definitions

    project.make_topic()
    project.send_good(5)
    folder, name = Path(project.pipeline.where.file).parent, f"{project.namespace}.trades"
    read_counts: list[int] = []

    @asset(deps=[AssetKey(["lake", *name.split(".")])], required_resource_keys={"pyspark"})
    def report(context) -> None:  # type: ignore[no-untyped-def]
        pyspark: LazyPySparkResource = context.resources.pyspark
        assert pyspark.spark_session.conf.get("spark.sql.shuffle.partitions") == "3"
        read_counts.append(pyspark.spark_session.table(f"lake.{name}").count())
        assert pyspark.spark_context.version == pyspark.spark_session.version

    def outcome(**config: object) -> tuple[bool, str]:
        resource = SluiceSparkResource(specs=str(folder), spark_config=config)
        defs = Definitions.merge(build_sluice_definitions(folder), Definitions(assets=[report], resources={"pyspark": resource}))
        with DagsterInstance.ephemeral() as instance:
            job = defs.resolve_implicit_global_asset_job_def()
            result = job.execute_in_process(instance=instance, raise_on_error=False)
        failures = (event.step_failure_data.error for event in result.all_node_events if event.is_step_failure)
        return result.success, "".join(failure.to_string() for failure in failures if failure)

    assert outcome(**{"spark.sql": {"shuffle.partitions": 3}}) == (True, "")
    assert read_counts == [5]
    success, error = outcome(**{"spark.sql.warehouse.dir": "elsewhere"})
    assert not success
    assert "fixed-setting: `spark_config` cannot set `spark.sql.warehouse.dir` in a session that runs" in error
    assert "set it in `conf` of the specs' engine" in error


@pytest.mark.spark
@pytest.mark.kafka
def test_the_log_says_that_spark_starts_once_for_all_tables_of_a_run(project: Project) -> None:
    from dagster import DagsterInstance

    from sluice.dagster import build_sluice_definitions

    project.make_topic()
    project.send_good(3)
    folder = Path(project.pipeline.where.file).parent
    for name in ("copy", "second_copy"):
        (folder / f"{name}.yaml").write_text(
            f"pipeline: {name}\nfrom: {{table: {project.namespace}.trades}}\ninto: {{table: {project.namespace}.{name}}}\n"
        )
    with DagsterInstance.ephemeral() as instance:
        job = build_sluice_definitions(folder).resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance)
        assert result.success
        lines = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert sum(line.startswith("batch 1, 3 read, 3 rows") for line in lines) == 3
    line_starts = ("starting Spark", "attaching to the warm Spark")
    assert sum(line.startswith(line_starts) for line in lines) == sum(line.startswith("Spark ") for line in lines) == 1


@pytest.mark.spark
@pytest.mark.kafka
def test_an_asset_of_ones_own_starts_only_after_a_commit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys are chosen; a table that follows the commits of its source table starts as well."""
    from dagster import (
        AssetCheckKey,
        AssetKey,
        AutomationCondition,
        DagsterInstance,
        Definitions,
        asset,
        evaluate_automation_conditions,
    )  # fmt: skip

    from framework.core.rules import journal
    from framework.core.rules.journal import FailedRun
    from sluice.dagster import SluiceResource, build_sluice_definitions

    project.make_topic()
    folder = Path(project.pipeline.where.file).parent
    (folder / "copy.yaml").write_text(
        f"pipeline: copy\nfrom: {{table: {project.namespace}.trades}}\ninto: {{table: {project.namespace}.copy}}\nrun: on_new_data\n"
    )
    table = AssetKey(["warehouse", "lake", project.namespace, "trades"])

    @asset(deps=[table], automation_condition=AutomationCondition.eager(), required_resource_keys={"sluice"})
    def report(context) -> None:  # type: ignore[no-untyped-def]
        assert len(context.resources.sluice.plan(look=False)) == 2

    defs = Definitions.merge(
        build_sluice_definitions(folder, translator=in_warehouse()),
        Definitions(assets=[report], resources={"sluice": SluiceResource(specs=str(folder))}),
    )
    with DagsterInstance.ephemeral() as instance:

        def materialize(key: AssetKey, **tags: str) -> Any:
            job = defs.resolve_implicit_global_asset_job_def()
            return job.execute_in_process(instance=instance, asset_selection=[key], tags=tags, raise_on_error=False)

        evaluation = evaluate_automation_conditions(defs, instance)
        project.send_good(3)
        assert materialize(table).success
        assert instance.get_latest_materialization_event(table)
        check_records = instance.event_log_storage.get_latest_asset_check_execution_by_key([AssetCheckKey(table, "can_run")])
        assert [record.status.value for record in check_records.values()] == ["SUCCEEDED"]
        evaluation = evaluate_automation_conditions(defs, instance, cursor=evaluation.cursor)
        assert evaluation.get_num_requested(report.key) == 1
        assert materialize(report.key).success
        copy = AssetKey(["warehouse", "lake", project.namespace, "copy"])
        assert evaluation.get_num_requested(copy) == 1
        assert materialize(copy).success
        assert materialize(table).success  # nothing waits
        evaluation = evaluate_automation_conditions(defs, instance, cursor=evaluation.cursor)
        assert evaluation.total_requested == 0
        project.send_good(3)
        assert materialize(table).success
        evaluation = evaluate_automation_conditions(defs, instance, cursor=evaluation.cursor)
        assert [evaluation.get_num_requested(key) for key in (report.key, copy)] == [1, 1]
        before = instance.get_latest_materialization_event(copy)
        with monkeypatch.context() as patch:
            # A run that really failed would stop the rest of this story.
            patch.setattr(
                "framework.host.assets.runs.same_failure.same_failure",
                lambda *_: FailedRun.from_error(SluiceError("x", "it failed", ""), "2026-01-05T10:00:00+00:00"),
            )
            assert materialize(copy, **{"dagster/from_automation_condition": "true"}).success
        assert instance.get_latest_materialization_event(copy) == before, "the run would have failed as the last one did"
        journal.pause("copy")
        assert materialize(copy, **{"dagster/from_automation_condition": "true"}).success  # as Dagster starts it
        assert not materialize(copy).success
        journal.resume("copy")


def test_components_of_one_file_and_of_a_python_file_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster import load_from_defs_folder

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    for name, text in {**PROJECT, **SEVERAL}.items():
        file = tmp_path / name.replace("mine", "several")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("mine", "several"))
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    defs = load_from_defs_folder(path_within_project=tmp_path / "src" / "several")
    prefixes = ("two", "two_1", "eu_shop_all_of_it", "shop_us")
    jobs = {job.name for job in defs.resolve_all_job_defs()}
    assert {f"{name}_Preview" for name in prefixes} == {name for name in jobs if name.endswith("_Preview")}
    running_names = {sensor.name for sensor in defs.sensors or [] if sensor.default_status.value == "RUNNING"}
    assert {name.removesuffix("_Table_states") for name in running_names if name.endswith("_Table_states")} == set(prefixes) - {
        "eu_shop_all_of_it"
    }


PROJECT = {
    "pyproject.toml": (
        '[project]\nname = "mine"\nversion = "0.1.0"\n[tool.dg]\ndirectory_type = "project"\n'
        '[tool.dg.project]\nroot_module = "mine"\n'
    ),
    "src/mine/__init__.py": "",
    "src/mine/defs/__init__.py": "",
    "src/mine/definitions.py": (
        "from pathlib import Path\nfrom dagster import definitions, load_from_defs_folder\n\n\n"
        "@definitions\ndef defs():\n    return load_from_defs_folder(path_within_project=Path(__file__).parents[1])\n"
    ),
}
COMPONENT = (
    "type: sluice.dagster.SluiceComponent\nattributes: {specs: %s, default_status: running, translation: {key_prefix: %s}}\n"
)
SEVERAL = {
    "src/mine/defs/two/defs.yaml": "---\n".join(COMPONENT % (name, name) for name in ("first", "second")),
    "src/mine/defs/two/first/main.yaml": SPECS,
    "src/mine/defs/two/second/main.yaml": SPECS,
    "src/mine/defs/eu/shop.py": (
        "from dagster import component_instance\nfrom sluice.dagster import SluiceComponent\n\n\n"
        "@component_instance\ndef all_of_it(_context):\n    return SluiceComponent()\n"
    ),
    "src/mine/defs/eu/specs/main.yaml": SPECS,
    "src/mine/defs/shop.us/defs.yaml": COMPONENT % ("specs", "us"),
    "src/mine/defs/shop.us/specs/main.yaml": SPECS,
}
CHOSEN = """
  select: [orders]
  translation:
    key_prefix: warehouse
    group_name: "{{ asset.type }}s"
    owners: ["team:{{ asset.name }}"]
"""


@pytest.mark.long
def test_dg_scaffolds_the_component_and_loads_what_it_says(tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def dg(*arguments: str) -> tuple[int, str]:
        result = subprocess.run(
            [str(Path(sys.executable).with_name("dg")), *arguments], cwd=tmp_path, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "SLUICE_HOME": str(tmp_path / "home")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return result.returncode, result.stdout

    place = tmp_path / "src" / "mine" / "defs" / "eu" / "my-shop"
    assert dg("scaffold", "defs", "sluice.dagster.SluiceComponent", "eu/my-shop")[0] == 0
    assert ".sluice/" in (tmp_path / ".gitignore").read_text()
    assert sorted(path.name for path in (place / "specs").iterdir()) == ["main.yaml", "orders.yaml"]
    defs = place / "defs.yaml"
    defs.write_text(defs.read_text().rstrip() + CHOSEN)
    assert dg("check", "yaml")[0] == 0
    status, listing = dg("list", "defs", "--json")
    assert status == 0
    for name in (
        "warehouse/lake/shop/orders:can_run",
        "warehouse/kafka/main/orders",
        "eu_my_shop_orders_waits",
        "eu_my_shop_Preview",
    ):
        assert f'"{name}"' in listing
    assert '"team": "orders"' in listing
    orders = place / "specs" / "orders.yaml"
    orders.write_text(orders.read_text().replace("quantity > 0", "quantty > 0"))
    status, output = dg("check", "defs")
    assert status == 1
    assert "my-shop/specs/orders.yaml:26:13: unknown-column: there is no column `quantty`" in output
    assert "did you mean `quantity`?" in output
    defs.write_text(defs.read_text().replace("select: [orders]", "selects: [orders]"))
    status, output = dg("check", "yaml")
    assert status == 1
    assert "'selects' was unexpected" in output
