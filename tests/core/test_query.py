"""Queries of tables, answered by the real DuckDB over tables that PyIceberg wrote."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, datetime, time as clock, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from framework.host.cli import main
from tests.support.time_limits import bar
from tests.support.waiting import until

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

ROOT = Path(__file__).resolve().parents[2]
SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")
CATALOG = "catalog: {name}\ntype: sql\nuri: sqlite:///{name}.db\nwarehouse: files of {name}\n"
MOMENT = datetime(2026, 1, 5, 10, 0, 0, 123456, timezone.utc)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with specs and two catalogs, in a path that must be quoted."""
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("it's a %20 lake")
    before = Path.cwd()
    os.chdir(folder)
    (folder / "specs").mkdir()
    (folder / "specs" / "main.yaml").write_text(CATALOG.format(name="lake") + "---\n" + CATALOG.format(name="attic"))
    rows = pa.table({
        "id": pa.array([1, 2, 2**53 + 1], pa.int64()),
        "amount": pa.array([Decimal("1.10"), Decimal("-0.01"), None], pa.decimal128(38, 2)),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\xff\x00", b"", None], pa.binary()),
        "text": pa.array(['a "b", c', "", None], pa.string()),
        "inner": pa.array(
            [{"x": [Decimal("2.50")], "m": [("k", MOMENT)]}, None, {"x": [], "m": None}],
            pa.struct([("x", pa.list_(pa.decimal128(9, 2))), ("m", pa.map_(pa.string(), pa.timestamp("us", "UTC")))]),
        ),
        "day": pa.array([date(2026, 1, 5)] * 3), "hour": pa.array([clock(10, 0, 0, 1)] * 3, pa.time64("us")),
        "yes": [True, None, False], "share": [0.1, float("nan"), float("inf")], "small": pa.array([0.1, 1e10, None], pa.float32()),
    })  # fmt: skip
    for name, times in (("lake", 1), ("attic", 2)):
        catalog = sql_catalog(name)
        catalog.create_namespace("shop")
        for _ in range(times):
            catalog.create_table_if_not_exists("shop.orders", rows.schema).append(rows)
    many_rows = pa.table({"n": list(range(1000))})
    sql_catalog("lake").create_table("shop.many", many_rows.schema).append(many_rows)
    sql_catalog("lake").create_table("shop.many__bad_rows", many_rows.schema)
    yield folder
    os.chdir(before)


def sql_catalog(name: str) -> Catalog:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(name, uri=f"sqlite:///{name}.db", warehouse=f"file://{Path.cwd()}/files of {name}")


def ask(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["query", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def answered(*arguments: str) -> str:
    result = ask(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result.stdout


def rows(sql: str, *options: str) -> Any:
    return json.loads(answered(sql, "--json", *options))


@pytest.mark.usefixtures("lake")
class TestAnswers:
    def test_json_is_exact(self) -> None:
        first_row, second_row, third_row = rows("from shop.orders order by id")
        assert first_row == {
            "id": 1, "amount": "1.10", "at": "2026-01-05T10:00:00.123456Z", "raw": "/wA=", "text": 'a "b", c',
            "inner": {"x": ["2.50"], "m": {"k": "2026-01-05T10:00:00.123456Z"}}, "day": "2026-01-05", "hour": "10:00:00.000001",
            "yes": True, "share": 0.1, "small": 0.1,
        }  # fmt: skip
        assert (second_row["share"], second_row["at"], second_row["inner"], second_row["raw"]) == ("NaN", None, None, "")
        assert (third_row["id"], third_row["share"], third_row["amount"]) == (2**53 + 1, "Infinity", None)

    def test_tables_as_they_were(self) -> None:
        first_snapshot, second_snapshot = (
            entry.snapshot_id for entry in sql_catalog("attic").load_table("shop.orders").history()
        )
        count = "select count(*) n from attic.shop.orders"
        assert [rows(count, "--at", str(snapshot)) for snapshot in (first_snapshot, second_snapshot)] == [[{"n": 3}], [{"n": 6}]]
        table = sql_catalog("attic").load_table("shop.orders")
        times = [datetime.fromtimestamp(entry.timestamp_ms / 1000, timezone.utc) for entry in table.history()]
        assert [rows(count, "--at", time.isoformat()) for time in times] == [[{"n": 3}], [{"n": 6}]]
        assert rows(count, "--at", "2999-01-01") == [{"n": 6}]

    def test_tables_of_a_moment_without_any(self) -> None:
        early = ask("from shop.orders", "--at", "2020-01-05")
        assert (early.exit_code, "no-snapshot-then: shop.orders was not there at 2020-01-05T00:00:00Z" in early.stderr) == (
            1,
            True,
        )
        unknown = ask("from shop.orders", "--at", "12345")
        assert (unknown.exit_code, "no-such-snapshot: shop.orders has no snapshot 12345" in unknown.stderr) == (1, True)
        for wrong in ("yesterday", "2026-02-30"):
            assert ask("from shop.orders", "--at", wrong).exit_code == 2

    def test_csv_is_exact(self) -> None:
        output = answered('select id, amount, "at", raw, text, "inner", yes from shop.orders order by id', "--csv")
        assert output.splitlines()[2] == '2,-0.01,,"","",,', "an empty text is not null"
        header, first_line, *_ = csv.reader(io.StringIO(output))
        assert header == ["id", "amount", "at", "raw", "text", "inner", "yes"]
        assert first_line[:5] == ["1", "1.10", "2026-01-05T10:00:00.123456Z", "/wA=", 'a "b", c']
        assert json.loads(first_line[5])["x"] == ["2.50"] and first_line[6] == "true"

    @pytest.mark.parametrize(
        ("sql", "value"),
        [
            ("'2020-01-01 00:00:00.123456789'::timestamp_ns", "2020-01-01T00:00:00.123456789"),
            ("'infinity'::timestamptz", "infinity"),
            ("'99999-01-01 00:00:00+00'::timestamptz", "99999-01-01T00:00:00Z"),
            ("170141183460469231731687303715884105727::hugeint", 170141183460469231731687303715884105727),
            ("12345678901234567890123456789012345.678::decimal(38,3)", "12345678901234567890123456789012345.678"),
            ("map {{'x': 1}: 1.5}", [{"key": {"x": 1}, "value": "1.5"}]),
            ("map {1: 'a'}", {"1": "a"}),
            ("[1, null]::int[2]", [1, None]),
            ("interval 1 day", "1 day"),
            ("[{'a b\"c': 1.5::float}]", [{'a b"c': 1.5}]),
        ],
    )
    def test_what_python_cannot_hold(self, sql: str, value: object) -> None:
        assert rows(f"select {sql} as v") == [{"v": value}]

    def test_times_of_a_column_have_as_many_digits(self) -> None:
        output = answered(
            "select * from (values (timestamptz'2026-01-05 10:00:00+00'), (timestamptz'2026-01-05 10:00:00.1+00')) t(moment)"
        )
        assert output.splitlines()[2:] == ["2026-01-05T10:00:00Z", "2026-01-05T10:00:00.100Z"]

    def test_plain_text_is_aligned(self) -> None:
        output = answered("select id, text, raw from shop.orders order by id")
        assert output == (
            "              id  text      raw\n"
            "----------------  --------  --------\n"
            '               1  a "b", c  \\xff\\x00\n'
            "               2\n"
            "9007199254740993  NULL      NULL\n"
        )

    def test_a_table_shows_the_first_rows_and_says_how_many_more(self) -> None:
        result = ask("from shop.many order by n")
        assert len(result.stdout.splitlines()) == 102
        assert result.stderr == "100 of 1,000 rows. 900 more rows: --limit 1000 shows all, --csv and --json print all\n"
        assert len(answered("from shop.many", "--limit", "1000").splitlines()) == 1002
        assert len(rows("from shop.many order by n desc", "--limit", "2")) == 2
        assert len(rows("from shop.many")) == 1000

    def test_nothing_and_equal_names(self) -> None:
        assert answered("select 1 as a where false", "--json") == "[]\n"
        assert answered("select 1 as a where false", "--csv") == "a\n"
        assert rows("select 1 as a, 2 as a") == [{"a": 1, "a_1": 2}]

    def test_the_names_of_tables(self) -> None:
        assert rows("select count(*) as n from SHOP.Orders") == [{"n": 3}]
        assert rows("select count(*) as n from attic.shop.orders") == [{"n": 6}]
        assert rows("select count(*) as n from shop.orders o join attic.shop.orders a using (id) -- twice") == [{"n": 6}]
        assert rows("select count(*) as n from lake.shop.orders, shop.orders, shop.many__bad_rows") == [{"n": 0}]
        assert rows("with many as (from shop.many where n < 5) select count(*) as n from many;") == [{"n": 5}]
        assert [row["column_name"] for row in rows("describe shop.many")] == ["n"]
        assert rows("pivot shop.many on n in (1, 2) using count(*)") == [{"1": 1, "2": 1}]

    def test_only_what_is_named_is_opened(self, lake: Path) -> None:
        orders = sql_catalog("lake").load_table("shop.orders")
        metadata = Path(orders.metadata_location.removeprefix("file://"))
        metadata.rename(metadata.with_suffix(".away"))
        try:
            assert rows("select max(n) as n from shop.many") == [{"n": 999}]
            assert (
                "catalog-unreachable: the catalog `lake` cannot be read: [Errno 2] No such file" in ask("from shop.orders").stderr
            )
        finally:
            metadata.with_suffix(".away").rename(metadata)
        assert list(lake.glob(".tmp")) == []

    def test_changed_tables_are_read_as_pyiceberg_reads_them(self) -> None:
        import pyarrow as pa
        from pyiceberg.types import LongType, StringType

        catalog = sql_catalog("lake")
        table = catalog.create_table("shop.changed", pa.schema([("n", pa.int32()), ("old", pa.string())]))
        table.append(pa.table({"n": pa.array(range(100), pa.int32()), "old": ["x"] * 100}))
        with table.update_schema() as update:
            update.update_column("n", LongType())
            update.rename_column("old", "new")
            update.add_column("more", StringType())
            update.move_first("more")
        table.delete("n < 10")
        table.append(pa.table({"n": pa.array([2**40]), "new": ["y"], "more": ["z"]}))
        expected = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["n"])
        assert rows("from shop.changed order by n") == expected and len(expected) == 91


@pytest.mark.usefixtures("lake")
class TestRefusals:
    @pytest.mark.parametrize(
        "sql",
        [
            "delete from shop.many", "select 1; select 2", "", " -- nothing", "attach 'x.db'", "copy shop.many to 'x.csv'",
            "set threads = 1", "create table t as select 1", "call pragma_version()", "explain select 1", "load httpfs",
        ],
    )  # fmt: skip
    def test_all_but_one_select(self, sql: str) -> None:
        result = ask(sql)
        assert result.exit_code == 1 and result.stderr.startswith("not-a-select: "), result.stderr
        assert not Path("x.csv").exists()

    def test_a_pivot_without_its_values_says_how(self) -> None:
        assert "pivot … on side in" in ask("pivot shop.many on n using count(*)").stderr

    def test_show_tables_lists_them(self) -> None:
        output = ask("show tables").stderr
        assert "shop.many, shop.many__bad_rows, shop.orders, " in output and "attic.shop.orders" in output

    @pytest.mark.parametrize(
        ("name", "close_name"),
        [("shop.order", "shop.orders"), ("orders", "shop.orders"), ("atic.shop.orders", "attic.shop.orders"), ("zzz.zzz", None)],
    )
    def test_an_unknown_table(self, name: str, close_name: str | None) -> None:
        result = ask(f"select * from {name} as t")
        assert result.exit_code == 1 and result.stderr.startswith(f"unknown-table: there is no table `{name}`\n")
        assert (f"did you mean `{close_name}`?" in result.stderr) is (close_name is not None)
        assert "shop.many, shop.many__bad_rows, shop.orders, attic.shop.orders" in result.stderr

    @pytest.mark.parametrize(
        ("sql", "line", "message"),
        [
            ("selec 1", "LINE 1: selec 1\n        ^\n", "bad-query: Parser Error"),
            ("select *\nfrom shop.many\nwhere m = 1", "LINE 3: where m = 1\n              ^\n", "bad-query: Binder Error"),
            ("select nofun(1)", "LINE 1: select nofun(1)\n               ^\n", "bad-query: Catalog Error"),
            ("select cast('a'||n as int) from shop.many", "LINE 1: select cast('a'||n", "query-failed: Conversion Error"),
        ],
    )
    def test_duckdbs_words_with_line_and_caret(self, sql: str, line: str, message: str) -> None:
        result = ask(sql)
        assert result.exit_code == 1 and result.stderr.startswith(message) and line in result.stderr, result.stderr

    @pytest.mark.parametrize(
        ("sql", "word"),
        [("select at, id from shop.orders", "at"), ("select order from shop.many", "order"), ("select , from shop.many", None)],
    )
    def test_columns_that_are_words_of_sql(self, sql: str, word: str | None) -> None:
        output = ask(sql).stderr
        assert output.startswith("bad-query: Parser Error")
        assert (f'hint: where `{word}` is a column, write it in quotes: "{word}"' in output) is (word is not None)
        assert ("hint" in output) is (word is not None)

    @pytest.mark.parametrize(
        "source",
        [
            "read_csv('specs/main.yaml')", "glob('*')", "read_text('/etc/hostname')", "read_csv('http://127.0.0.1:1/x.csv')",
            "read_parquet('FILE')", "parquet_scan(['FILE'])", "parquet_metadata('FILE')", "iceberg_scan('FILE')", "read_blob('FILE')",
            "query('from read_parquet(''FILE'')')", "query_table('FILE')", "'FILE'", '"FILE"', "duckdb_settings()", "READ_BLOB('FILE')",
            "json_execute_serialized_sql(json_serialize_sql('select 1'))", "shop.orders, read_parquet('FILE')",
            """(with "FILE" as (select 1) from "FILE") a, "FILE" b""",
        ],
    )  # fmt: skip
    def test_no_file_is_read_by_its_path(self, source: str, lake: Path) -> None:
        file = next((lake / "files of lake").rglob("*.parquet")).as_posix()
        for path in (file, file.replace("'", "''")):
            result = ask(f"select * from {source.replace('FILE', path)}")
            assert result.exit_code == 1
            assert not any(name in result.stdout for name in ("amount", "PAR1"))
        assert any(code in result.stderr for code in ("unknown-table", "bad-query", "not-a-select")), result.stderr

    @pytest.mark.parametrize("source", ["range(3)", "generate_series(1, 3)", "unnest([1, 2, 3])", "json_each('[1,2,3]')"])
    def test_functions_that_make_rows_are_fine(self, source: str) -> None:
        assert rows(f"select count(*) n from {source}") == [{"n": 3}]

    def test_the_files_of_a_question_are_its_own_and_go_with_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from framework.core.query import one_select

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # Python reads TMPDIR once
        for home in (tmp_path / "home", tmp_path / "none"):
            monkeypatch.setenv("SLUICE_HOME", str(home))
            (tmp_path / "home").mkdir(exist_ok=True)
            answer = one_select.ask((), "select 1 as n")
            (folder,) = (home if home.exists() else tmp_path).glob("duckdb-*")
            assert folder.stat().st_mode & 0o777 == 0o700
            assert str(os.getpid()) != folder.name.removeprefix("duckdb-")
            assert list(answer.rows()) == [[1]]
            del answer
            assert not folder.exists()

    def test_csv_for_spreadsheets_computes_nothing(self) -> None:
        sql = """select '=1+1' as "=a", '-5' as b, -5 as c, '@x' as d, ' +1' as e, 'a=b' as f, [1] as g, null as h, '' as i"""
        assert answered(sql, "--csv").splitlines() == ["=a,b,c,d,e,f,g,h,i", '=1+1,-5,-5,@x, +1,a=b,[1],,""']
        guarded = ["'=a,b,c,d,e,f,g,h,i", """'=1+1,'-5,-5,'@x,' +1,a=b,[1],,\"\""""]
        assert answered(sql, "--csv", "--for-spreadsheets").splitlines() == guarded
        assert ask(sql, "--for-spreadsheets").exit_code == 2

    def test_python_is_not_seen(self) -> None:
        assert "unknown-table" in ask("from catalogs").stderr

    def test_two_formats_and_no_catalog(self, tmp_path: Path) -> None:
        assert ask("select 1", "--csv", "--json").exit_code == 2
        (tmp_path / "a.yaml").write_text("cluster: main\nbootstrap: 127.0.0.1:1\n")
        assert "no-catalog" in ask("select 1", "--specs", str(tmp_path)).stderr

    def test_a_pipeline_with_a_mistake_keeps_no_table_from_being_asked(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(
            Path("specs/main.yaml").read_text()
            + "---\ncluster: main\nbootstrap: 127.0.0.1:1\n---\ntopic: t\nvalue: json\ncolumns: {a: int}\n"
            + "---\npipeline: p\nfrom: {topic: t}\nsteps: [filter: nothere > 1]\ninto: {catalog: lake, table: a.b}\n"
        )
        assert CliRunner().invoke(main, ["check", "--specs", str(tmp_path)]).exit_code == 1
        assert rows("select count(*) as n from shop.many", "--specs", str(tmp_path)) == [{"n": 1000}]


def process(*arguments: str, **settings: Any) -> subprocess.Popen[Any]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings.pop("env", {})}
    return subprocess.Popen([*SLUICE, "query", *arguments], env=environment, start_new_session=True, **settings)


def seconds_of_work(pid: int) -> float:
    """Returns the processor seconds that a process has used. After two, DuckDB is at work."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.usefixtures("lake")
class TestProcesses:
    @pytest.mark.timed
    def test_ctrl_c_ends_it(self) -> None:
        endless = "select count(*) from shop.many a, shop.many b, shop.many c, shop.many d where a.n + b.n + c.n + d.n = 1"
        with process(endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            until(lambda: seconds_of_work(child.pid) > 2, "it does not work")
            assert child.poll() is None
            began = time.monotonic()
            child.send_signal(signal.SIGINT)
            _, output = child.communicate(timeout=30)
        assert child.returncode == 130 and "Traceback" not in output
        assert time.monotonic() - began < bar(10)

    @pytest.mark.timed
    def test_a_million_rows_below_a_second(self) -> None:
        import pyarrow as pa

        numbers = range(1_000_000)
        table = pa.table({"n": pa.array(numbers), "symbol": pa.array([f"S{n % 100}" for n in numbers])})
        sql_catalog("lake").create_table("shop.million", table.schema).append(table)
        took = []
        for _ in range(3):
            before = os.times()
            with process(
                "select symbol, count(*), avg(n) from shop.million group by 1", stdout=subprocess.PIPE, text=True
            ) as child:
                assert child.stdout is not None and len(child.stdout.readlines()) == 102
            after = os.times()
            # Seconds of all cores: on a quiet machine the clock shows less, on a busy one it also shows the work of others.
            took.append(after.children_user + after.children_system - before.children_user - before.children_system)
        assert min(took) < bar(1.0), took

    def test_a_closed_pipe_is_no_traceback(self) -> None:
        wide = "select a.n, b.n as m from shop.many a, shop.many b"
        with process(wide, "--csv", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None and child.stderr is not None
            assert child.stdout.readline() == "n,m\n"
            child.stdout.close()
            assert child.stderr.read() == ""

    def test_a_table_on_a_terminal(self) -> None:
        output = re.sub(
            "\x1b\\[[0-9;]*m", "", terminal("select n, n || '\x1b[31m' as text, null::int as x from shop.many where n = 7", 80)
        )
        assert [line.split() for line in output.splitlines() if line.strip()] == [
            ["n", "text", "x"], ["─" * 20], ["7", "7\\x1b[31m", "NULL"], ["1", "row"],
        ]  # fmt: skip

    @pytest.mark.parametrize("colour", [True, False])
    def test_a_row_that_is_too_wide_is_shown_in_lines(self, colour: bool) -> None:
        output = terminal("from shop.orders where id = 1", 60, **({} if colour else {"NO_COLOR": "1"}))
        assert ("\x1b[36m" in output) is colour
        assert "  amount  1.10\n" in re.sub("\x1b\\[[0-9;]*m", "", output)


def terminal(sql: str, width: int, **environment: str) -> str:
    """Returns the output of a query on a terminal of this width."""
    ours, theirs = pty.openpty()
    variables = {"TERM": "xterm-256color", "COLUMNS": str(width), **environment}
    with process(sql, stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as child:
        os.close(theirs)
        output = b""
        try:
            while part := os.read(ours, 65536):
                output += part
        except OSError:  # the other end is closed
            pass
        assert child.wait(30) == 0, output
    os.close(ours)
    return output.decode().replace("\r\n", "\n")
