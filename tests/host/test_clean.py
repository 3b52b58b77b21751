"""`sluice clean`, and the parts of `sluice drop` that need neither Kafka nor Spark."""

from __future__ import annotations

import fcntl
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from framework.base.home import dagster_home
from framework.core.iceberg.jvm_state import attempts_of
from framework.core.rules import attempts, journal, protocol, refusals
from framework.features.export import records as export_records
from framework.host.cli import main
from framework.plan import Pipeline
from tests.support.shop import NOWHERE, catalog, made_by_hand, planned, sluice

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = "n: bigint; price: double"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A project with its table, in a catalog next to `.sluice`, and with files of everything else that Sluice does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    pipeline = planned(tmp_path, COLUMNS)
    made_by_hand(refusals.owner(pipeline))
    bad_rows()
    dagster_home()
    journal.pause("trades")
    with attempts.attempt():
        pass
    export_records.add("weekly", export_records.Record(window="", file="a.csv", snapshot=1, rows=1, bytes=1, sha256="", at=""))
    for name in (
        "demo.log",
        "stream.log",
        "spark/blockmgr-1/x",
        "jars/lock",
        "jars/spark/a.jar",
        "jars/classes-0.jsa",
        "services/kafka/lock",
        "services/kafka/data/0",
        "programs/versitygw",
        "programs/go.mod",
        "followers/trades-sluice-also-topic-0123456789ab",
    ):
        (tmp_path / ".sluice" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".sluice" / name).write_text("1234567890")
    return pipeline


def bad_rows() -> None:
    import pyarrow

    rows = pyarrow.table({"value": [b"not json"]})
    table = catalog().load_table("shop.trades")
    bad_table = catalog().create_table(
        "shop.trades__bad_rows", rows.schema, properties={protocol.OF: str(table.metadata.table_uuid)}
    )
    bad_table.append(rows)


def tables() -> list[str]:
    return sorted(".".join(name) for name in catalog().list_tables("shop"))


def files() -> set[str]:
    return {str(path.relative_to(Path.cwd())) for path in Path.cwd().rglob("*") if path.is_file() and "specs" not in path.parts}


def clean(*arguments: str) -> Result:
    return sluice("clean", *arguments)


class TestDrop:
    def test_the_files_stay_unless_told(self, shop: Pipeline) -> None:
        before = files()
        result = sluice("drop", "trades", "--yes")
        assert result.exit_code == 0, result.output
        assert re.search(r"  table lake\.shop\.trades, 1 row, 6 files in \S+/warehouse/shop/trades, [\d.]+ KiB\n", result.output)
        assert "  table lake.shop.trades__bad_rows, 1 row, 5 files in " in result.output
        assert f"6 files in {Path.cwd()}/warehouse/shop/trades stay" in result.output
        assert "`sluice run trades` starts again at `start_from: earliest`" in result.output
        assert tables() == [] and before - files() == {".sluice/pipelines/trades.json"}

    def test_the_files_go(self, shop: Pipeline) -> None:
        foreign_file = Path("warehouse/shop/trades/data/of_another.parquet")
        foreign_file.write_text("x")
        result = sluice("drop", "trades", "--data", "--yes")
        assert tables() == [] and {name for name in files() if name.startswith("warehouse")} == {str(foreign_file)}
        assert f"1 file in {Path.cwd()}/warehouse/shop/trades that the table did not list stay" in result.output
        assert not Path("warehouse/shop/trades__bad_rows").exists()
        second_result = sluice("drop", "trades", "--data", "--yes")
        assert second_result.exit_code == 0 and "nothing to drop" in second_result.output

    def test_files_that_cannot_be_deleted_are_named(self, shop: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuses(*_: object) -> None:
            raise OSError("the store is away")

        # Root may delete any file, and tests may run as root.
        monkeypatch.setattr("framework.systems.catalogs._local_files.LocalFiles.delete", refuses)
        result = sluice("drop", "trades", "--data", "--yes")
        assert result.exit_code == 1
        message = f"lake.shop.trades__bad_rows is dropped, and files of it stay in {Path.cwd()}/warehouse/shop/trades__bad_rows"
        assert f"files-stay: {message}: the store is away" in result.stderr

    def test_a_catalog_that_drops_nothing_is_named(self, shop: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("framework.systems.catalogs.sql.CATALOG_FILE", 0.1)  # it waits for 30 seconds
        with closing(sqlite3.connect("lake.db", isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            result = sluice("drop", "trades", "--yes")
        assert result.exit_code == 1 and result.stderr.startswith("catalog-unreachable: the catalog `lake`")
        assert len(tables()) == 2

    def test_it_asks_before_it_deletes(self, shop: Pipeline) -> None:
        assert sluice("drop", "trades").exit_code == 1
        assert len(tables()) == 2 and journal.read("trades").paused

    @pytest.mark.parametrize(("owner", "code"), [(None, "table-not-ours"), ("other", "table-of-another")])
    def test_a_table_of_somebody_else_is_refused(self, shop: Pipeline, owner: str | None, code: str) -> None:
        catalog().drop_table("shop.trades")
        made_by_hand(owner and refusals.owner(shop).replace('"trades"', f'"{owner}"'))
        result = sluice("drop", "trades", "--yes")
        assert result.exit_code == 1 and result.stderr.startswith(code) and len(tables()) == 2

    def test_bad_rows_that_were_left_go(self, shop: Pipeline) -> None:
        catalog().drop_table("shop.trades")
        assert sluice("drop", "trades", "--data", "--yes").exit_code == 0
        assert tables() == []

    def test_a_batch_that_is_being_written_is_not_cut_off(self, shop: Pipeline) -> None:
        table = catalog().load_table("shop.trades")
        main_ = table.current_snapshot()
        assert main_ is not None
        with attempts.attempt() as attempt:
            table.manage_snapshots().create_branch(main_.snapshot_id, protocol.BRANCH + attempt).commit()
            result = sluice("drop", "trades", "--yes")
            assert result.exit_code == 1 and result.stderr.startswith("run-under-way") and len(tables()) == 2
        assert sluice("drop", "trades", "--yes").exit_code == 0

    def test_only_files_in_the_tables_folder_go_whatever_its_metadata_names(self, shop: Pipeline, tmp_path: Path) -> None:
        """A writer of the catalog can make it name any file, in Iceberg's own log or by a link."""
        precious_files = [Path("precious.txt"), Path("warehouse/shop/precious.parquet")]
        for path in precious_files:
            path.write_text("x")
        table = catalog().load_table("shop.trades")
        metadata = Path(table.metadata_location.removeprefix("file://"))
        link = metadata.parent / "link.json"
        link.symlink_to(tmp_path / "precious.txt")
        document = json.loads(metadata.read_text())
        folder = f"{metadata.parent}/../../../.."
        foreign_link = tmp_path / "elsewhere.json"
        foreign_link.symlink_to(metadata)
        logged_files = [
            str(foreign_link),
            *(f"file://{tmp_path}/{path}" for path in precious_files),
            f"{folder}/lake.db",
            str(link),
        ]
        document["metadata-log"] += [{"metadata-file": path, "timestamp-ms": 1} for path in logged_files]
        metadata.write_text(json.dumps(document))

        result = sluice("drop", "trades", "--data", "--yes")
        assert result.exit_code == 0, result.output
        assert all(path.exists() for path in precious_files) and Path("lake.db").exists() and tables() == []
        assert not (metadata.parent / metadata.name).exists(), "what is the table's own goes"
        kept_lines = [line.split(",")[0] for line in result.output.splitlines() if line.startswith("  stays: ")]
        assert sorted(kept_lines) == sorted(f"  stays: {Path(path.removeprefix('file://'))}" for path in logged_files)

    def test_a_folder_outside_of_the_warehouse_is_nobodys(self, shop: Pipeline, tmp_path: Path) -> None:
        table = catalog().load_table("shop.trades")
        metadata = Path(table.metadata_location.removeprefix("file://"))
        metadata.write_text(metadata.read_text().replace(f'"location":"{table.location()}"', '"location":"file:///"'))
        before = files()
        result = sluice("drop", "trades", "--data", "--yes")
        assert result.exit_code == 0 and {name for name in before - files() if "/trades/" in name} == set(), result.output

    def test_a_branch_that_is_called_like_a_path_is_nobodys_attempt(self, shop: Pipeline) -> None:
        Path("victim.yaml").write_text("x")
        table = catalog().load_table("shop.trades")
        main_ = table.current_snapshot()
        assert main_ is not None
        table.manage_snapshots().create_branch(main_.snapshot_id, protocol.BRANCH + "../../victim.yaml").commit()
        assert attempts_of(catalog().load_table("shop.trades").metadata.refs) == []
        with pytest.raises(AssertionError):
            attempts.forget("../../victim.yaml")
        assert sluice("drop", "trades", "--data", "--yes").exit_code == 0 and Path("victim.yaml").exists()

    def test_a_topic_that_another_pipeline_reads_is_refused(self, shop: Pipeline) -> None:
        file = Path(shop.where.file)
        other_spec = "---\npipeline: again\nfrom: {topic: trades}\ninto: {table: shop.again}\n"
        file.write_text(file.read_text() + other_spec)
        result = sluice("drop", "trades", "--topic", "--yes")
        assert result.exit_code == 1 and "topic-is-read: the topic `trades` is also read by `again`" in result.stderr
        assert len(tables()) == 2

    @pytest.mark.usefixtures("kafka_away")
    def test_a_kafka_that_does_not_answer_is_told_before_anything_goes(self, shop: Pipeline) -> None:
        result = sluice("drop", "trades", "--topic", "--yes")
        assert result.exit_code == 1 and f"Kafka at {NOWHERE} does not answer" in result.stderr and len(tables()) == 2


class TestClean:
    def test_all_goes_but_jars_and_what_others_made(self, shop: Pipeline) -> None:
        Path("mine.txt").write_text("x")
        dry_result = clean("--dry-run")
        assert dry_result.exit_code == 0 and len(tables()) == 2 and Path(".sluice/demo.log").exists()
        result = clean("--yes")
        assert result.exit_code == 0, result.output
        assert result.output.splitlines()[:-1] == dry_result.output.splitlines()[:-1]
        assert tables() == [] and files() == {
            "mine.txt",
            "lake.db",
            *(f".sluice/jars/{name}" for name in ("lock", "spark/a.jar", "classes-0.jsa")),
        }
        home = Path.cwd() / ".sluice"
        assert f"  {home / 'services' / 'kafka'}, 20 bytes\n" in result.output
        assert f"  stays: {home / 'jars'}\n" in result.output and "  stays: catalog lake in " in result.output
        assert re.search(r"  table lake\.shop\.trades, 1 row, 6 files in \S+, [\d.]+ KiB\n", result.output)
        assert clean("--jars", "--yes").exit_code == 0 and not home.exists()
        assert "nothing to delete" in clean("--yes").output and not home.exists()

    def test_it_asks_before_it_deletes(self, shop: Pipeline) -> None:
        before = files()
        assert clean().exit_code == 1 and files() == before

    def test_foreign_files_in_the_home_stay_and_are_named(self, shop: Pipeline) -> None:
        home = Path.cwd() / ".sluice"
        foreign_files = {
            "secrets",
            "pipelines/own.json",
            "pipelines/step.py",
            "spark/notes.txt",
            "attempts/x",
            "services/mine/lock",
        }
        for name in foreign_files:
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_text("{}")
        result = clean("--jars", "--yes")
        assert {name.removeprefix(".sluice/") for name in files() if name.startswith(".sluice")} == foreign_files
        kept_names = set(re.findall(rf"stays: {home}/(\S+)", result.output))
        assert kept_names == {name.split("/")[0] for name in foreign_files}

    def test_a_dagster_of_others_stays(self, shop: Pipeline) -> None:
        Path(".sluice/dagster/dagster.yaml").write_text("storage: {}\n")
        clean("--yes")
        assert Path(".sluice/dagster/dagster.yaml").exists()

    def test_jars_that_are_a_link_are_not_followed(self, shop: Pipeline, tmp_path: Path) -> None:
        Path(".sluice/jars").rename(tmp_path / "shared")
        Path(".sluice/jars").symlink_to(tmp_path / "shared")
        clean("--jars", "--yes")
        assert not Path(".sluice").exists() and (tmp_path / "shared" / "spark" / "a.jar").exists()

    def test_a_catalog_in_the_home_goes_with_all_its_files(self, shop: Pipeline) -> None:
        self.move_in(shop)
        result = clean("--jars", "--yes")
        assert result.exit_code == 0, result.output
        assert files() == set() and "stays" not in result.output

    @pytest.mark.parametrize("how", ["..", "a link"])
    def test_a_warehouse_that_leads_out_of_the_home_is_no_part_of_it(self, shop: Pipeline, how: str) -> None:
        Path("precious").mkdir()
        Path("precious/file.txt").write_text("x")
        self.move_in(shop)
        file = Path(shop.where.file)
        if how == "..":
            file.write_text(file.read_text().replace("warehouse: .sluice/warehouse", "warehouse: .sluice/../precious"))
            result = sluice("clean", "--yes")
            assert result.exit_code == 1 and "path-goes-up" in result.stderr
        else:
            Path(".sluice/warehouse/shop").rename("precious/shop")
            Path(".sluice/warehouse").rmdir()
            Path(".sluice/warehouse").symlink_to(Path("precious").absolute())
            result = clean("--yes")
            assert result.exit_code == 0 and not Path("precious/shop/trades").exists(), result.output
        assert Path("precious/file.txt").read_text() == "x"

    def test_a_table_that_others_made_in_it_stays(self, shop: Pipeline) -> None:
        self.move_in(shop)
        import pyarrow
        from pyiceberg.catalog.sql import SqlCatalog

        home_catalog = SqlCatalog("lake", uri="sqlite:///.sluice/lake.db", warehouse=f"file://{Path.cwd()}/.sluice/warehouse")
        home_catalog.create_namespace("theirs")
        home_catalog.create_table("theirs.t", pyarrow.schema([("n", pyarrow.int64())]))
        result = clean("--yes")
        assert "which still has theirs.t" in result.output
        assert [name for name in files() if "warehouse" in name and "theirs/t/metadata" not in name] == []
        assert home_catalog.table_exists("theirs.t") and home_catalog.list_tables("shop") == []

    def move_in(self, shop: Pipeline) -> None:
        """Moves the catalog into `.sluice`, where the shipped specs have it."""
        from pyiceberg.catalog.sql import SqlCatalog

        clean("--jars", "--yes")
        Path("lake.db").unlink()
        file = Path(shop.where.file)
        text = file.read_text().replace("sqlite:///lake.db", "sqlite:///.sluice/lake.db")
        file.write_text(text.replace("warehouse: warehouse", "warehouse: .sluice/warehouse"))
        Path(".sluice").mkdir()
        import pyarrow

        home_catalog = SqlCatalog("lake", uri="sqlite:///.sluice/lake.db", warehouse=f"file://{Path.cwd()}/.sluice/warehouse")
        home_catalog.create_namespace("shop")
        properties = {protocol.OWNER: refusals.owner(shop)}
        home_catalog.create_table("shop.trades", pyarrow.schema([("n", pyarrow.int64())]), properties=properties)

    @pytest.mark.parametrize("owner", ["another catalog", "another environment", "somebody"])
    def test_a_warehouse_with_files_of_others_stays(self, shop: Pipeline, owner: str) -> None:
        self.move_in(shop)
        specs = Path(shop.where.file)
        if owner == "another catalog":  # in the same file, by its name
            specs.write_text(specs.read_text().replace("catalog: lake", "catalog: main"))
        elif owner == "another environment":  # which has the same warehouse
            specs.write_text(specs.read_text().replace("/.sluice/lake.db", "/.sluice/own.db"))
        else:
            Path(".sluice/warehouse/mine.txt").write_text("mine")
        foreign_files = [
            path for path in Path(".sluice/warehouse").rglob("mine.txt" if owner == "somebody" else "*") if path.is_file()
        ]
        result = clean("--yes")
        assert result.exit_code == 0, result.output
        assert foreign_files and all(path.exists() for path in foreign_files)

    def test_a_run_that_is_under_way_is_not_cut_off(self, shop: Pipeline) -> None:
        before = files()
        with attempts.attempt():
            for arguments in (("--yes",), ("--dry-run",)):
                result = clean(*arguments)
                assert result.exit_code == 1 and result.stderr.startswith("run-under-way")
        assert before - files() == set()

    def test_a_dagster_that_runs_is_not_cut_off(self, shop: Pipeline) -> None:
        with open(".sluice/ui.lock", "w") as file:
            file.write("http://127.0.0.1:3000")
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            result = clean("--yes")
        assert result.exit_code == 1 and "ui-running: Dagster runs at http://127.0.0.1:3000" in result.stderr

    def test_all_that_sluice_keeps_in_its_home_is_known(self) -> None:
        """Code that writes a new file into the home must be named in framework/host/clean.py."""
        pages = {path: path.read_text(encoding="utf-8") for path in (ROOT / "framework").rglob("*.py")}
        file_names = {
            name for text in pages.values() for name in re.findall(r'(?:\bhome\(\) / f?|private\(|_FOLDER = )"([^"{]+)', text)
        }
        source = pages[ROOT / "framework" / "host" / "clean.py"] + "services"  # of which services themselves know
        assert {name for name in file_names if name not in source} == set()
        page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
        folders = {name for name in file_names if not re.search(r"\.\w+$|-$", name)}
        assert {name for name in folders if f"| `{name}/` |" not in page} == set()


def test_help_says_what_goes_and_what_stays() -> None:
    text = re.sub(r"\s+", " ", CliRunner().invoke(main, ["clean", "--help"]).output)
    assert "Jars stay without --jars" in text
    assert "everything" not in text
    deleted_part, kept_part = text.partition("Not deleted are")[::2]
    assert "tables of these specs with their files" in deleted_part and "Kafka's messages included" in deleted_part
    assert (
        "files of exports, in folders and buckets" in kept_part and "topics and schemas in another Kafka or registry" in kept_part
    )


def exported(export: str, window: str, file: str) -> None:
    if not file.startswith("s3:"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("n\n1\n")
    record = export_records.Record(window=window, file=file, snapshot=1, rows=1, bytes=4, sha256="", at="")
    export_records.add(export, record)


@pytest.mark.parametrize("arguments", [("--dry-run",), ("--yes",)])
def test_files_of_exports_stay_and_are_listed_with_their_folders(shop: Pipeline, arguments: tuple[str, ...]) -> None:
    exported("weekly", "2026-W01", "exports/weekly_1.csv")
    exported("weekly", "2026-W02", "exports/weekly_2.csv")
    exported("prod/daily", "2026-01-01", "exports/prod/daily.parquet")
    exported("far", "2026-W01", "s3://lake/weekly/1.csv")
    exported("gone", "2026-W01", "exports/gone.csv")
    Path("exports/gone.csv").unlink()
    result = clean(*arguments)
    assert result.exit_code == 0, result.output
    folder = Path.cwd() / "exports"
    assert f"  stays: 2 files of exports in {folder}: weekly_1.csv, weekly_2.csv\n" in result.output
    assert f"  stays: 1 file of exports in {folder}/prod: daily.parquet\n" in result.output
    assert "  stays: 1 file of exports in s3://lake/weekly, whose store was not asked: 1.csv\n" in result.output
    assert "gone.csv" not in result.output
    assert Path("exports/weekly_1.csv").exists() and Path("exports/prod/daily.parquet").exists()
    assert Path(".sluice/exports").exists() is (arguments == ("--dry-run",))
