"""Every catalog: Sluice's own, and a toy, `tests/toys/catalogs/hadoop_folder.py`, of which nothing else knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.lake import TableStore
from framework.core.query.one_select import ask
from framework.core.rules import protocol
from framework.core.spark import session
from framework.core.spark.java_errors import CommitRefused
from framework.host.plans import make
from framework.language.editor import as_data, document_schema
from framework.language.reader import read_text
from framework.operations.drop import drop
from framework.operations.reference import pages
from framework.operations.trials.trial import Trials
from framework.plan import Pipeline, Plan, digest
from framework.systems import catalogs
from framework.systems.catalogs import CatalogClient
from tests import toys
from tests.support.rest_catalog import STORAGE, login
from tests.support.spark_catalogs import tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = """
cluster: main
bootstrap: 127.0.0.1:1
---
topic: orders
value: json
columns: {{id: {{type: bigint, required: true}}, price: double}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
tests:
  - name: two batches, and a bad row
    given: [{{id: 1, price: 1}}, {{message: {{raw: "x"}}}}, new_batch, {{id: 2}}]
    expect: [{{id: 1}}, {{id: 2}}]
---
{catalog}
"""
TABLE = "test0_shop.orders"  # as a test calls it
# Addresses in examples, and the fixtures that run the services at them.
SERVICES = {
    "http://127.0.0.1:18182/api/catalog": "rest_catalog",
    "http://127.0.0.1:19100": "quick_store",
    "http://127.0.0.1:19200": "aws",
}
BUCKET = "sql in a bucket"
IN_BUCKET = f"""\
catalog: lake
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: s3://sluice/warehouse
{STORAGE.format(store="http://127.0.0.1:19100")}
"""


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


def names() -> list[str]:
    with toys.installed():
        return list(catalogs.CATALOGS.names())


def every_catalog() -> list[Any]:
    """Every catalog; tests of those that need a server are slow."""
    return [pytest.param(name, marks=pytest.mark.slow) if needs_server(name) else name for name in names()]


def needs_server(name: str) -> bool:
    return any(address in example(name) for address in SERVICES)


def with_tables(always: bool = False) -> list[Any]:
    """Every catalog, and one whose warehouse is in a bucket. Tests of those that need a server are long, unless `always`."""
    quick_names = {"rest"} if always else set()
    catalog_names = [*names(), BUCKET]
    return [
        pytest.param(name, marks=pytest.mark.long) if needs_server(name) and name not in quick_names else name
        for name in catalog_names
    ]


def example(name: str) -> str:
    if name == BUCKET:
        return IN_BUCKET
    with toys.installed():
        return str(catalogs.CATALOGS.load(name).EXAMPLE)


@pytest.fixture
def plan(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Plan:
    """A plan with the example of a catalog, under a name that no other test has."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    document = re.sub("^catalog: .*", f"catalog: c_{abs(hash(tmp_path))}", example(name))
    for address, fixture in SERVICES.items():
        if address in document:
            document = document.replace(address, request.getfixturevalue(fixture))
    login(monkeypatch)
    (tmp_path / "specs" / "a.yaml").write_text(SPEC.format(catalog=document), encoding="utf-8")
    return make(tmp_path / "specs")


@pytest.fixture
def tested_catalog(plan: Plan) -> CatalogClient:
    return catalogs.client_of(plan.catalogs[0])


@pytest.fixture
def landed(plan: Plan, tested_catalog: CatalogClient, spark: SparkSession) -> Iterator[Pipeline]:
    """The pipeline's table after two batches."""
    tell(spark, plan)
    session.prepare(plan)
    (pipeline,) = plan.pipelines
    (example,) = pipeline.examples
    outcome = Trials(spark, plan).run(pipeline, example)
    assert outcome.error is None
    assert [row["id"] for row in sorted(outcome.rows, key=lambda row: int(row["id"]))] == [1, 2]
    assert len(outcome.bad) == 1
    yield pipeline
    for identifier in filter(
        lambda name: name.startswith(TABLE), tested_catalog.tables()
    ):  # a server keeps them for the next test
        table = tested_catalog.load(identifier)
        assert table is not None
        drop.drop(drop.held(pipeline.table.catalog, table), data=True)


@pytest.mark.parametrize("name", every_catalog())
def test_a_file_says_all_of_its_catalog(name: str, tested_catalog: CatalogClient) -> None:
    assert tested_catalog.does[0].islower()
    assert not tested_catalog.does.endswith(".")
    page = pages()["catalog.md"]
    assert f"`{name}` {tested_catalog.does}" in page
    assert f"### `type: {name}`" in page
    assert all(text == text.lower() for text in tested_catalog.causes)
    settings = tested_catalog.settings()
    assert settings["type"]
    assert all(isinstance(value, str) for value in settings.values())


@pytest.mark.parametrize("name", every_catalog())
def test_the_schema_for_editors_has_the_options_of_each_type(name: str) -> None:
    editor = Draft202012Validator(document_schema())
    foreign_option = next(f"{key}: x\n" for key in ("uri", "folder") if f"{key}:" not in example(name))
    first_line, *other_lines = example(name).splitlines(keepends=True)
    for text, expected in ((example(name), True), (example(name) + foreign_option, False), (first_line + other_lines[0], False)):
        assert editor.is_valid(as_data(read_text(text, "a.yaml", [])[0])) is expected


@pytest.mark.parametrize("name", every_catalog())
def test_a_catalog_that_is_not_there_yet_has_no_tables(tested_catalog: CatalogClient) -> None:
    assert "shop.orders" not in tested_catalog.tables()
    assert tested_catalog.current("shop.orders") is None
    assert tested_catalog.load("shop.orders") is None


def test_one_catalog_needs_only_a_folder(tmp_path: Path) -> None:
    local = catalogs.in_folder("lake", tmp_path)
    assert (
        digest.text(local) == f"Catalog(name='lake', type='sql', uri='sqlite:///{tmp_path}/lake.db', warehouse='{tmp_path}/lake')"
    )
    assert all(tmp_path in place.parents for place in catalogs.client_of(local).places())
    files = [name for name, file in catalogs.CATALOGS.load_all().items() if hasattr(file, "in_folder")]
    assert files == [local.type]


def test_no_other_file_knows_what_a_catalog_is_made_of() -> None:
    framework = Path(catalogs.__file__).parents[2]
    other_files = [path for path in framework.rglob("*.py") if path.parent.name not in ("catalogs", "services")]
    assert not [path.name for path in other_files if "sqlite" in path.read_text(encoding="utf-8").lower()]


@pytest.mark.spark
@pytest.mark.parametrize("name", with_tables(always=True))
def test_a_table_is_seen_without_a_jvm_as_spark_sees_it(
    tested_catalog: CatalogClient, landed: Pipeline, spark: SparkSession
) -> None:
    assert tested_catalog.where()
    assert {identifier for identifier in tested_catalog.tables() if identifier.startswith(TABLE)} == {TABLE, f"{TABLE}__bad_rows"}
    current = metadata.read(landed.table.catalog, TABLE)
    table = table_state.table(landed.table.catalog, TABLE)
    assert current is not None
    assert table is not None
    in_jvm: Any = TableStore(spark, landed.table.catalog).load(TABLE)
    assert current.uuid == str(table.metadata.table_uuid) == str(in_jvm.uuid())
    assert current.main is not None
    assert current.main["snapshot-id"] == in_jvm.currentSnapshot().snapshotId()
    assert ".".join(table.name()) == TABLE
    assert current.files.path(current.file) == current.files.path(table.metadata_location)
    folder = tested_catalog.new_table_folder(TABLE)  # a script that grants a table's files names it before there is a table
    assert folder is None or current.files.path(folder) == current.files.path(str(current.document["location"]))
    assert len(list(ask([landed.table.catalog], f"select * from {TABLE}").rows())) == 2


@pytest.mark.spark
@pytest.mark.parametrize("name", with_tables())
def test_a_commit_is_refused_after_another(landed: Pipeline, spark: SparkSession) -> None:
    """A late commit is refused, even if it changes properties alone."""
    lake = TableStore(spark, landed.table.catalog)
    table: Any = lake.load(TABLE)
    late_table = lake.begin(table)
    lake.mark(lake.load(TABLE), {"somebody": "else"})
    with pytest.raises(CommitRefused):
        lake.mark_as_seen(late_table, {"late": "yes"})
    current = metadata.read(landed.table.catalog, TABLE)
    assert current is not None
    assert (current.properties.get("somebody"), current.properties.get("late")) == ("else", None)
    assert not [name for name in current.refs if name.startswith(protocol.BRANCH)]


@pytest.mark.spark
@pytest.mark.parametrize("name", with_tables(always=True))
def test_a_branch_of_others_with_the_name_of_the_pin_stops_no_commit(landed: Pipeline, spark: SparkSession) -> None:
    """A commit creates and removes a branch of its own, which shows whether another came before it."""
    lake = TableStore(spark, landed.table.catalog)
    table: Any = lake.load(TABLE)
    snapshot = table.currentSnapshot().snapshotId()
    table.manageSnapshots().createBranch("sluice_pin", snapshot).createTag("sluice_pin2", snapshot).commit()
    late_table = lake.begin(lake.load(TABLE))
    lake.mark_as_seen(lake.begin(lake.load(TABLE)), {"in_time": "yes"})
    with pytest.raises(CommitRefused):
        lake.mark_as_seen(late_table, {"late": "yes"})
    current = metadata.read(landed.table.catalog, TABLE)
    assert current is not None
    assert (current.properties.get("in_time"), current.properties.get("late")) == ("yes", None)
    assert {name: id_ for name, id_ in current.refs.items() if "pin" in name} == {"sluice_pin": snapshot, "sluice_pin2": snapshot}


@pytest.mark.spark
@pytest.mark.parametrize("name", ["sql"])
def test_tasks_get_few_settings_with_a_table(tested_catalog: CatalogClient, landed: Pipeline, spark: SparkSession) -> None:
    """Tasks get the settings that somebody made, not the thousand that Hadoop has by itself."""
    table: Any = TableStore(spark, landed.table.catalog).load(TABLE)
    java: Any = spark._jvm
    spark_utils, source = java.org.apache.spark.util.Utils, java.org.apache.iceberg.spark.source
    all_settings = java.org.apache.spark.util.SerializableConfiguration(spark._jsparkSession.sessionState().newHadoopConf())
    # Each catalog of an earlier test has made some settings of this session.
    assert 2 * len(spark_utils.serialize(source.SerializableTableWithSize.copyOf(table))) < len(
        spark_utils.serialize(all_settings)
    )
    if tested_catalog.on_this_machine:
        task_settings = spark_utils.deserialize(spark_utils.serialize(table.io())).getConf()
        for name in ("fs.file.impl", "io.file.buffer.size", "hadoop.tmp.dir"):
            assert task_settings.get(name) == spark._jsparkSession.sessionState().newHadoopConf().get(name)


@pytest.mark.spark
@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("name", with_tables())
def test_a_dropped_table_leaves_its_files_only_if_asked(tested_catalog: CatalogClient, landed: Pipeline, data: bool) -> None:
    catalog = landed.table.catalog
    table = table_state.table(catalog, TABLE)
    assert table is not None
    contents = drop.held(catalog, table)
    files = tested_catalog.files_of(TABLE)
    assert contents.outside == ()
    assert contents.rows == 2
    assert (drop.drop(contents, data) == 0) is data
    assert {identifier for identifier in tested_catalog.tables() if identifier.startswith(TABLE)} == {f"{TABLE}__bad_rows"}
    assert tested_catalog.current(TABLE) is None
    assert tested_catalog.load(TABLE) is None
    assert bool(files.existing(contents.files)) is not data
    if not data:
        files.delete(contents.files, contents.folder)


@pytest.mark.spark
@pytest.mark.parametrize("name", with_tables())
def test_what_another_table_names_is_not_deleted(tested_catalog: CatalogClient, landed: Pipeline, tmp_path: Path) -> None:
    table = table_state.table(landed.table.catalog, TABLE)
    assert table is not None
    files, location = tested_catalog.files_of(TABLE), table.metadata.location
    other_file = f"{files.path(location)}_of_another/file"
    (tmp_path / "precious").write_text("x")
    for path in (str(tmp_path / "precious"), other_file):
        assert files.split_deletable([path], files.folders(location)) == ((), (path,))
    assert files.folders(str(tmp_path), files.root) == ()


@pytest.mark.spark
@pytest.mark.parametrize("name", with_tables())
def test_a_context_opens_a_catalog_once(landed: Pipeline, plan: Plan, spark: SparkSession) -> None:
    context = Context(plan, spark=lambda: spark)
    assert context.lake(landed) is context.lake(landed)
    assert context.lake(landed).find(TABLE) is not None
    assert context.lake(landed).find("shop.nothing") is None
