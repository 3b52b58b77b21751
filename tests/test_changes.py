"""What a spec changes in a table that is there: compared without any engine, told by `sluice plan`, and done by a run."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from framework import types
from framework.engine import look, protocol, refusals
from framework.engine.ahead import look_ahead
from framework.engine.existing import existing
from framework.engine.protocol import Position
from framework.errors import BatchError, RefusedError
from framework.plan.change import Existing, changes
from framework.plan.model import Pipeline
from tests.project import BASE, Project, plan_for

SPECS = """
topic: trades
value: json
columns:
{columns}
---
pipeline: trades
from: {{topic: trades}}
{more}
into: {{table: shop.trades, kafka_columns: false{into}}}
"""


def planned(folder: Path, columns: str, more: str = "", into: str = "") -> Pipeline:
    indented = "".join(f"  {column}\n" for column in columns.split("; "))
    return plan_for(folder, "127.0.0.1:1", SPECS.format(columns=indented, more=more, into=into)).pipelines[0]


def as_is(ddl: str, partition_by: tuple[str, ...] = (), sort_by: tuple[str, ...] = (), version: int = 3) -> Existing:
    struct = types.parse(f"struct<{ddl}>")
    assert isinstance(struct, types.Struct)
    return Existing(struct.fields, partition_by, sort_by, version, None)


def said(pipeline: Pipeline, table: Existing | None) -> list[str]:
    """Each change with the line and the column of its place."""
    file = re.escape(pipeline.where.file)
    return [("" if each.allowed else "REFUSED ") + re.sub(file, "at", str(each)) for each in changes(pipeline, table)]


@pytest.mark.parametrize(
    ("table", "columns", "expected"),
    [
        ("a int, b string", "a: int; b: string", []),
        ("a int", "a: smallint", []),
        ("a array<int>, m map<int,struct<x int>>", "a: array<tinyint>; m: 'map<smallint,struct<x:tinyint>>'", []),
        ("a int", "a: int; b: string", ["adds column b string"]),
        ("a int", "a: bigint", ["widens a from int to bigint"]),
        ("a float", "a: double", ["widens a from float to double"]),
        ("a decimal(9,2)", "a: 'decimal(18,2)'", ["widens a from decimal(9,2) to decimal(18,2)"]),
        ("a int, b string", "a: int", ["keeps b string, null in new rows (no longer in the spec)"]),
        ("s struct<x int>", "s: 'struct<x:bigint,y:string>'", ["widens s.x from int to bigint", "adds column s.y string"]),
        ("l array<struct<x int>>", "l: 'array<struct<x:bigint>>'", ["widens l.element.x from int to bigint"]),
        ("m map<string,int>", "m: 'map<string,bigint>'", ["widens m.value from int to bigint"]),
        ("a bigint", "a: int", ["REFUSED `a` is bigint, the spec says int, which does not hold all of its values"]),
        ("a double", "a: float", ["REFUSED `a` is double, the spec says float, which does not hold all of its values"]),
        ("a int", "a: string", ["REFUSED `a` is int, the spec says string"]),
        ("a int", "a: double", ["REFUSED `a` is int, the spec says double"]),
        ("a decimal(9,2)", "a: 'decimal(18,4)'", ["REFUSED `a` is decimal(9,2), the spec says decimal(18,4)"]),
        ("a timestamp", "a: timestamp_ntz", ["REFUSED `a` is timestamp, the spec says timestamp_ntz"]),
        ("a struct<x int>", "a: 'array<int>'", ["REFUSED `a` is struct<x:int>, the spec says array<int>"]),
        ("m map<int,int>", "m: 'map<bigint,int>'", ["REFUSED `m.key` is int, the spec says bigint"]),
        (
            "A int",
            "a: int",
            ["REFUSED `A` is written otherwise in the spec, and tables do not tell upper from lower case"],
        ),
        (
            "s struct<x int, y int>",
            "s: 'struct<x:int>'",
            ["REFUSED `s.y` int is no longer in the spec, and this version keeps no field inside of another column"],
        ),
        ("old int", "new: int", ["adds column new int", "keeps old int, null in new rows (no longer in the spec)"]),
    ],
)
def test_columns(tmp_path: Path, table: str, columns: str, expected: list[str]) -> None:
    found = said(planned(tmp_path, columns), as_is(table))
    assert [re.sub(r" \(at:\d+:\d+\)$", "", each) for each in found] == expected


@pytest.mark.parametrize(
    ("allowed", "table", "expected"),
    [
        ("add: refuse", "a int", "`b` string is new in the spec, which says `add: refuse`"),
        ("widen: refuse", "a int, b string", "`a` is int, the spec says bigint, and `widen: refuse`"),
        ("drop: refuse", "a bigint, b string, c int", "`c` int is no longer in the spec, which says `drop: refuse`"),
    ],
)
def test_what_the_spec_refuses(tmp_path: Path, allowed: str, table: str, expected: str) -> None:
    pipeline = planned(tmp_path, "a: bigint; b: string", into=f", schema_changes: {{{allowed}}}")
    (refused,) = [each for each in changes(pipeline, as_is(table)) if not each.allowed]
    assert refused.what == expected
    kind, _, _ = allowed.partition(":")
    assert (refused.kind, f"schema_changes: {{{kind}:" in refused.hint) == (kind, True)


def test_only_the_same_and_the_wider_is_ever_allowed(tmp_path: Path) -> None:
    names = [*map(str, dict.fromkeys(types.NAMES.values())), "decimal(9,2)", "decimal(18,2)", "decimal(18,4)", "array<int>"]
    wider = {("int", "bigint"), ("smallint", "bigint"), ("tinyint", "bigint"), ("float", "double")}
    wider.add(("decimal(9,2)", "decimal(18,2)"))
    kept_as_int = ("tinyint", "smallint", "int")
    pipelines = {name: planned(tmp_path, f"a: '{name}'") for name in names if name != "binary"}
    for old in names:
        table = as_is(f"a {'int' if old in kept_as_int else old}")
        for new, pipeline in pipelines.items():
            found = changes(pipeline, table)
            same = old == new or (old in kept_as_int and new in kept_as_int)
            assert (not found) == same, (old, new)
            assert same or found[0].allowed == ((old, new) in wider), (old, new)


def test_layout_is_refused_and_named(tmp_path: Path) -> None:
    pipeline = planned(tmp_path, "a: timestamp; b: string", into=", partition_by: [day(a)], sort_by: [b], format_version: 2")
    table = as_is("a timestamp, b string", ("bucket(16, b)",), (), 3)
    found = changes(pipeline, table)
    assert [(each.kind, each.allowed, each.what) for each in found] == [
        (
            "partition_by",
            False,
            "the table is partitioned by bucket(16, b), the spec says day(a), and this version does not change that",
        ),
        ("sort_by", False, "the table is sorted by nothing, the spec says b, and this version does not change that"),
        ("format_version", False, "the table is of Iceberg's format 3, the spec says 2, and this version does not change that"),
    ]
    assert changes(pipeline, replace(table, partition_by=("day(a)",), sort_by=("b",), format_version=2)) == ()


def test_each_change_has_the_place_that_asks_for_it(tmp_path: Path) -> None:
    steps = "steps:\n  - filter: a > 0\n  - derive: {twice: a * 2}"
    found = said(planned(tmp_path, "a: int; b: int", more=steps), as_is("b bigint, gone int"))
    lines = SPECS.format(columns="  a: int\n  b: int\n", more=steps, into="").splitlines()
    shift = BASE.count("\n") + 1  # of main.yaml, before the specs
    topic, derive = (next(at for at, line in enumerate(lines, shift + 1) if text in line) for text in ("topic: trades", "derive"))
    numbers = [int(re.search(r"\(at:(\d+)", each)[1]) for each in found if "(at:" in each]  # type: ignore[index]
    assert [re.sub(r" \(at.*", "", each) for each in found] == [
        "adds column a int",
        "REFUSED `b` is bigint, the spec says int, which does not hold all of its values",
        "adds column twice int",
        "keeps gone int, null in new rows (no longer in the spec)",
    ]
    assert all(topic <= number <= topic + 5 for number in numbers[:2])
    assert numbers[2] == derive


def test_a_table_as_iceberg_describes_it() -> None:
    fields: list[dict[str, Any]] = [
        {"id": 1, "name": "n", "type": "long"},
        {"id": 2, "name": "at", "type": "timestamptz"},
        {"id": 3, "name": "d", "type": "decimal(9, 2)"},
        {"id": 4, "name": "s", "type": {"type": "struct", "fields": [{"id": 5, "name": "x", "type": "int"}]}},
        {"id": 6, "name": "l", "type": {"type": "list", "element-id": 7, "element": "timestamp"}},
        {"id": 8, "name": "m", "type": {"type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "uuid"}},
    ]
    made = [("day", 2), ("bucket[16]", 1), ("identity", 5), ("void", 3), ("truncate[4]", 1)]
    order = [("identity", 1, "asc", "nulls-first"), ("identity", 2, "desc", "nulls-last"), ("day", 2, "asc", "nulls-last")]
    found = existing(
        json.dumps({"type": "struct", "fields": fields}),
        json.dumps({"fields": [{"transform": transform, "source-id": source} for transform, source in made]}),
        json.dumps(
            {"fields": [dict(zip(("transform", "source-id", "direction", "null-order"), each, strict=True)) for each in order]}
        ),
        2,
        "me",
    )
    assert str(types.Struct(found.columns)) == (
        "struct<n:bigint,at:timestamp,d:decimal(9,2),s:struct<x:int>,l:array<timestamp_ntz>,m:map<string,uuid>>"
    )
    assert found.partition_by == ("day(at)", "bucket(16, n)", "s.x", "truncate(4, n)")
    assert found.sort_by == ("n", "at desc", "day(at) nulls last")
    assert (found.format_version, found.owner) == (2, "me")


# `sluice plan`, with nothing that runs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(*arguments: str) -> Result:
    from framework.cli import main

    (specs,) = Path("specs").iterdir()
    done = CliRunner().invoke(main, ["plan", "--specs", str(specs), *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done


def made_by_hand(pipeline: Pipeline, owner: str | None) -> None:
    """A table `n bigint, price double` of the pipeline's, written by PyIceberg, with one row and a position behind it."""
    import pyarrow  # type: ignore[import-untyped]
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri="sqlite:///lake.db", warehouse=f"file://{Path.cwd()}/warehouse")
    catalog.create_namespace_if_not_exists("shop")
    rows = pyarrow.table({"n": pyarrow.array([1], pyarrow.int64()), "price": [1.5]})
    table = catalog.create_table("shop.trades", rows.schema, properties={protocol.OWNER: owner} if owner else {})
    table.append(rows)
    main = table.current_snapshot()
    assert main is not None
    ends = Position("a", 1, "c", {"trades": "t"}, {"trades/0": 1}, main.snapshot_id, main.sequence_number or 0)
    with table.transaction() as transaction:
        transaction.set_properties({protocol.POSITION: ends.text()} if owner else {"x": "y"})


OTHER = json.dumps({"pipeline": "other", "cluster": "main", "topics": []})


def test_without_kafka_and_without_a_table(folder: Path) -> None:
    planned(folder, "n: bigint")
    began = time.monotonic()
    done = plan()
    assert time.monotonic() - began < 2
    assert done.exit_code == 0
    assert done.output.startswith("pipeline trades  (")
    assert "trades, the next run\n  creates table shop.trades (" in done.output
    assert done.output.endswith(
        "not looked at: Kafka at 127.0.0.1:1 does not answer (is it running? `sluice services up kafka` starts one on this machine)\n"
    )
    assert not Path("lake.db").exists()


def test_a_kafka_that_takes_the_call_and_says_nothing(folder: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mute:
        plan_for(folder, f"127.0.0.1:{mute.getsockname()[1]}", SPECS.format(columns="  n: int", more="", into=""))
        began = time.monotonic()
        done = plan()
    assert time.monotonic() - began < 5
    assert done.exit_code == 0
    assert done.output.count("not looked at: Kafka") == 1


def test_a_broken_catalog_is_one_line(folder: Path) -> None:
    planned(folder, "n: bigint")
    Path("lake.db").write_text("this is no database " * 100)
    done = plan()
    assert done.exit_code == 0
    assert "not looked at: the catalog `lake` cannot be read: " in done.output
    assert "the next run" not in done.output


def test_what_would_change_is_shown(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint; at: timestamp", into=", format_version: 2")
    made_by_hand(pipeline, refusals.owner(pipeline))
    done = plan()
    assert done.exit_code == 0
    shown = done.output.partition("trades, the next run\n")[2].splitlines()
    assert shown[0].startswith("  adds column at timestamp (")
    assert shown[1] == "  keeps price double, null in new rows (no longer in the spec)"

    (document,) = json.loads(plan("--json").output)["pipelines"]
    added, kept = document["changes"]
    assert (added["kind"], added["name"], added["from"], added["to"], added["allowed"]) == ("add", "at", None, "timestamp", True)
    assert (kept["kind"], kept["name"], kept["from"], kept["to"]) == ("drop", "price", "double", None)
    assert Path(added["file"]).resolve() == Path(pipeline.where.file)
    place = Path(added["file"]).read_text().splitlines()[added["line"] - 1][added["column"] - 1 :]
    assert place in ("topic: trades", "at: timestamp", "timestamp")
    assert document["waiting"] is None
    assert [column["name"] for column in document["columns"]] == ["n", "at"]


def test_what_a_run_would_refuse_is_shown(folder: Path) -> None:
    pipeline = planned(folder, "n: int; price: double", into=", format_version: 2")
    made_by_hand(pipeline, refusals.owner(pipeline))
    done = plan()
    assert done.exit_code == 1
    assert "  REFUSED `n` is bigint, the spec says int, which does not hold all of its values (" in done.output
    assert "    hint: write the type that the table has, or a new column, or another table\n" in done.output
    assert plan("--no-look").exit_code == 0
    assert "REFUSED" not in plan("--no-look").output


def test_as_the_spec_says(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint; price: double", into=", format_version: 2")
    made_by_hand(pipeline, refusals.owner(pipeline))
    assert "trades, the next run\n  table is as the spec says\n" in plan("trades").output


@pytest.mark.parametrize(("owner", "code"), [(None, "table-not-ours"), (OTHER, "table-of-another")])
def test_of_a_table_of_somebody_else_no_changes_are_shown(folder: Path, owner: str | None, code: str) -> None:
    pipeline = planned(folder, "n: int")
    made_by_hand(pipeline, owner)
    done = plan()
    assert done.exit_code == 1
    assert f"trades, the next run\n  REFUSED {code}: the table shop.trades " in done.output
    assert "`n`" not in done.output.partition("the next run")[2]


def test_a_table_that_is_computed_from_another(folder: Path) -> None:
    specs = SPECS.format(columns="  n: bigint\n  price: double", more="", into=", format_version: 2")
    specs += "---\npipeline: copy\nfrom: {table: shop.trades}\ninto: {table: shop.copy, write: replace}\n"
    pipelines = plan_for(folder, "127.0.0.1:1", specs).pipelines
    missing = plan("copy")
    assert missing.exit_code == 0
    assert "not looked at: the table shop.trades, which copy reads, does not exist yet" in missing.output
    made_by_hand(next(each for each in pipelines if each.name == "trades"), "me")
    assert "copy, the next run\n  creates table shop.copy (" in plan("copy").output
    assert "\n  computes the table anew from shop.trades\n" in plan("copy").output
    (document,) = json.loads(plan("copy", "--json").output)["pipelines"]
    assert (document["from_table"], document["computes_anew"], document["waiting"]) == ("shop.trades", True, [])


def test_how_fast_batches_were(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint; price: double")
    made_by_hand(pipeline, "me")
    assert look.speed(pipeline.table) is None
    table = look.table(pipeline.table.catalog, "shop.trades")
    assert table is not None
    end = 0
    for messages, seconds in ((400_000, 40), (50_000, 1), (300_000, 10), (200_000, 20)):
        end += messages
        began = f"{int((time.time() - seconds) * 1000):012x}"
        ends = Position(began, 1, "c", {"trades": "t"}, {"trades/0": end}, 0, 0)
        said = {protocol.ATTEMPT: began + "a" * 20, protocol.POSITION: ends.text()}
        table.append(table.scan(limit=1).to_arrow(), snapshot_properties=said)
    speed = look.speed(pipeline.table)
    assert speed == pytest.approx(30_000, rel=0.1)


def test_problems_as_json(folder: Path) -> None:
    planned(folder, "n: bigint")
    (specs,) = Path("specs").iterdir()
    (specs / "main.yaml").write_text("topic: a\nvalue: jsn\n")
    done = plan("--json")
    (problem, *_) = json.loads(done.output)
    assert (done.exit_code, problem["line"], problem["column"], problem["code"]) == (1, 2, 8, "unknown-value")


def test_names_choose(folder: Path) -> None:
    planned(folder, "n: int")
    assert plan("--json", "trades").exit_code == 0
    done = plan("trade")
    assert (done.exit_code, "unknown-pipeline" in done.output) == (1, True)


# a run


@pytest.fixture
def shop(project: Project) -> Project:
    project.make_topic()
    return project


def with_columns(project: Project, columns: str) -> None:
    """Columns beside `id`, in place of `price`."""
    project.template = re.sub(r"(?<=required: true}}\n).*?(?=\{topic_more\})", columns + "\n", project.template, flags=re.DOTALL)
    project.template = project.template.replace("when: price > 900", "when: id > 900")


def send(project: Project, **fields: object) -> None:
    project.send([json.dumps({"id": next(project.numbers), **fields}).encode()])


def schemas(project: Project) -> int:
    table = look.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    return len(table.metadata.schemas)


def values(project: Project, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in sorted(project.rows(), key=lambda row: row["id"])]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_run_adds_and_widens_in_one_commit(shop: Project) -> None:
    with_columns(
        shop, "  n: int\n  s: 'struct<a:int>'\n  l: 'array<struct<x:int>>'\n  m: 'map<string,float>'\n  d: 'decimal(5,2)'"
    )
    send(shop, n=1, s={"a": 1}, l=[{"x": 1}], m={"k": 1.5}, d=1.25)
    shop.run()
    with_columns(
        shop,
        "  n: bigint\n  s: 'struct<a:bigint,b:string>'\n  l: 'array<struct<y:string,x:bigint>>'\n  m: 'map<string,double>'\n"
        "  d: 'decimal(12,2)'\n  new: {{type: string, doc: fresh}}",
    )
    big = 2**40
    send(shop, n=big, s={"a": big, "b": "b"}, l=[{"x": big, "y": "y"}], m={"k": 1e300}, d=1234567890.25, new="new")
    shop.run()

    first, second = values(shop, "n", "s", "l", "m", "new")
    assert first == (1, {"a": 1, "b": None}, [{"x": 1, "y": None}], [("k", 1.5)], None)
    assert second == (big, {"a": big, "b": "b"}, [{"x": big, "y": "y"}], [("k", 1e300)], "new")
    assert [str(d) for (d,) in values(shop, "d")] == ["1.25", "1234567890.25"]
    assert schemas(shop) == 2
    table = look.table(shop.pipeline.table.catalog, shop.pipeline.table.identifier)
    assert table is not None
    assert table.schema().find_field("new").doc == "fresh"
    assert [tuple(row) for row in shop.sql("select n, new from {table} order by id")] == [(1, None), (big, "new")]
    assert changes(shop.pipeline, look.existing(shop.pipeline.table)) == ()
    shop.assert_exactly_once()
    send(shop, n=2)
    shop.run()
    assert schemas(shop) == 2


@pytest.mark.spark
@pytest.mark.kafka
def test_a_column_that_the_spec_lost_stays_and_comes_back(shop: Project) -> None:
    with_columns(shop, "  n: int\n  s: 'struct<a:int>'")
    send(shop, n=1, s={"a": 1})
    shop.run()
    with_columns(shop, "  other: string")
    send(shop, n=2, other="o")
    shop.run()
    with_columns(shop, "  s: 'struct<a:int>'\n  n: bigint")
    send(shop, n=3, s={"a": 3}, other="o")
    shop.run()
    assert values(shop, "n", "s", "other") == [(1, {"a": 1}, None), (None, None, "o"), (3, {"a": 3}, None)]
    shop.assert_exactly_once()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("before", "after", "changes_", "says"),
    [
        ("  n: bigint", "  n: int", "", "`n` is bigint, the spec says int, which does not hold all of its values"),
        ("  n: int", "  n: int\n  new: string", "add: refuse", "`new` string is new in the spec, which says `add: refuse`"),
        ("  n: int", "  n: bigint", "widen: refuse", "`n` is int, the spec says bigint, and `widen: refuse`"),
        ("  n: int\n  old: int", "  n: int", "drop: refuse", "`old` int is no longer in the spec, which says `drop: refuse`"),
        (
            "  n: 'struct<a:int,b:int>'",
            "  n: 'struct<a:bigint>'",
            "",
            "`n.b` int is no longer in the spec, and this version keeps no field inside of another column",
        ),
    ],
)
def test_what_is_refused_changes_nothing_and_loses_nothing(
    shop: Project, before: str, after: str, changes_: str, says: str
) -> None:
    with_columns(shop, before)
    project_into = shop.template
    send(shop)
    shop.run()
    seen, position = look.existing(shop.pipeline.table), look.state(shop.pipeline.table)
    with_columns(shop, after + "\n  more: string")
    if changes_:
        shop.template = shop.template.replace(".trades}}", f".trades, schema_changes: {{{{{changes_}}}}}}}}}")
    send(shop)

    with pytest.raises(BatchError) as refused:
        shop.run()

    assert refused.value.code == "schema-change"
    assert says in refused.value.message
    assert re.search(rf"{re.escape(says)} \(\S+main\.yaml:\d+:\d+\)", refused.value.message)
    assert refused.value.hint
    assert (look.existing(shop.pipeline.table), look.state(shop.pipeline.table)) == (seen, position)
    (ahead,) = look_ahead(shop.plan, shop.plan.pipelines)
    assert not ahead.would_run
    assert says in [change.what for change in ahead.changes or ()]
    shop.template = project_into
    shop.run()
    assert len(shop.rows()) == 2
    shop.assert_exactly_once()


@pytest.mark.spark
@pytest.mark.kafka
def test_a_table_of_somebody_else_is_not_changed(shop: Project) -> None:
    shop.spark.sql(f"create namespace if not exists lake.{shop.namespace}")
    shop.sql("create table {table} (id int) using iceberg")
    shop.sql("insert into {table} values (1)")
    with pytest.raises(RefusedError, match="did not make it"):
        shop.run()
    assert shop.rows() == [{"id": 1}]
    assert schemas(shop) == 1


@pytest.mark.spark
@pytest.mark.kafka
def test_a_schema_that_changed_meanwhile_is_looked_at_again(shop: Project) -> None:
    from framework.engine.lake import Refused
    from framework.engine.tables import open_table

    send(shop, price=1)
    shop.run()
    with_columns(shop, "  price: double\n  new: int")
    context = shop.context()
    lake = context.lake(shop.pipeline)
    stale = lake.load(shop.pipeline.table.identifier)
    wanted = [each for each in changes(shop.pipeline, lake.existing(stale)) if each.kind == "add"]
    open_table(context, lake, shop.pipeline)
    with pytest.raises(Refused):
        lake.change_columns(stale, wanted, {})
    send(shop, price=2, new=2)
    shop.run()
    assert values(shop, "price", "new") == [(1.0, None), (2.0, 2)]
    assert schemas(shop) == 2


class Killed(Exception):
    """Stands for a death at a kill point."""


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("point", ["opened", "branched", "staged", "checked", "published"])
def test_a_run_that_dies_behind_the_change_of_columns(shop: Project, point: str) -> None:
    def die(at: str) -> None:
        if at == point:
            raise Killed

    with_columns(shop, "  n: int")
    send(shop, n=1)
    shop.run()
    with_columns(shop, "  n: bigint\n  new: int")
    send(shop, n=2**40, new=2)
    with pytest.raises(Killed):
        shop.run(at=die)
    shop.run()
    assert values(shop, "n", "new") == [(1, None), (2**40, 2)]
    assert (schemas(shop), shop.branches()) == (2, [])
    shop.assert_exactly_once()


@pytest.mark.spark
@pytest.mark.kafka
def test_what_waits_is_told(shop: Project) -> None:
    shop.send_good(600)
    (unborn,) = look_ahead(shop.plan, shop.plan.pipelines)
    assert [change.kind for change in unborn.changes or ()] == ["create"]
    (waiting,) = unborn.waiting or ()
    assert (waiting.topic, waiting.messages, waiting.seconds, waiting.measured) == (shop.topic, 600, 600 / 250_000, False)
    assert sorted(waiting.offsets) == [(0, 0, 200), (1, 0, 200), (2, 0, 200)]
    mean = sum(len(json.dumps({"id": number, "price": number})) + len(f"k{number}") for number in range(600)) / 600
    assert waiting.bytes == pytest.approx(600 * mean, rel=0.2)

    shop.topic_more = "start_from: latest"
    (latest,) = look_ahead(shop.plan, shop.plan.pipelines)
    assert [each.messages for each in latest.waiting or ()] == [0]
    shop.topic_more = ""

    shop.run()
    shop.send_good(30)
    (after,) = look_ahead(shop.plan, shop.plan.pipelines)
    assert (after.changes, after.refused, after.unseen) == ((), (), ())
    assert [each.messages for each in after.waiting or ()] == [30]
    shop.delete_topic()
    (gone,) = look_ahead(shop.plan, shop.plan.pipelines)
    assert ([error.code for error in gone.unseen], gone.waiting) == (["no-topic"], None)
    shop.make_topic()
    (again,) = look_ahead(shop.plan, shop.plan.pipelines)
    assert ([error.code for error in again.refused], again.would_run) == (["topic-recreated"], False)


@pytest.mark.spark
@pytest.mark.kafka
def test_plan_as_json_beside_a_real_kafka(shop: Project) -> None:
    from framework.cli import main

    shop.send_good(9)
    shop.run()
    shop.send_good(3, partition=1)
    with_columns(shop, "  price: double\n  new: int")
    specs = str(Path(shop.pipeline.where.file).parent)
    done = CliRunner().invoke(main, ["plan", "--json", "--specs", specs])
    assert done.exit_code == 0, done.output
    whole = json.loads(done.output)
    (document,) = whole["pipelines"]
    assert whole["unseen"] == document["refused"] == []
    assert [(each["kind"], each["name"]) for each in document["changes"]] == [("add", "new")]
    (waiting,) = document["waiting"]
    assert [(each["partition"], each["next"], each["end"], each["messages"]) for each in waiting["partitions"]] == [
        (0, 3, 3, 0),
        (1, 3, 6, 3),
        (2, 3, 3, 0),
    ]
    assert (waiting["messages"], waiting["about_bytes"] > 50) == (3, True)
    shown = CliRunner().invoke(main, ["plan", "--specs", specs]).output
    assert re.search(
        rf"  reads 3 messages of {shop.topic}, 3 partitions, about \d+ bytes: about a second at 250,000/s once Spark", shown
    )
