"""What a spec changes in a table that is there: compared without any engine, and done or refused by a run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework import types
from framework.engine.iceberg import table_state
from framework.engine.iceberg.existing_table import existing
from framework.engine.observe.next_run import next_runs
from framework.errors import BatchError, ColumnsChanged, RefusedError, Where
from framework.model import Pipeline
from framework.plan.change import Existing, changes, hint, place
from tests.project import Project, plan_for
from tests.shop import COPY, NOWHERE, planned, pointed, specs


def as_is(ddl: str, partition_by: tuple[str, ...] = (), sort_by: tuple[str, ...] = (), version: int = 3) -> Existing:
    struct = types.parse(f"struct<{ddl}>")
    assert isinstance(struct, types.Struct)
    return Existing(columns=struct.fields, partition_by=partition_by, sort_by=sort_by, format_version=version, owner=None)


def change_lines(pipeline: Pipeline, table: Existing | None) -> list[str]:
    """Each change with the line and the column of its place."""
    file = re.escape(pipeline.where.file)
    return [("" if each.allowed else "REFUSED ") + re.sub(file, "at", str(each)) for each in changes(pipeline, table)]


@pytest.mark.parametrize(
    ("table", "columns", "expected"),
    [
        ("a int, b string", "a: int; b: string", []),
        ("a int", "a: smallint", []),
        ("a array<int>, m map<string,struct<x int>>", "a: array<tinyint>; m: 'map<string,struct<x:tinyint>>'", []),
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
        ("m map<int,int>", "m: 'map<string,int>'", ["REFUSED `m.key` is int, the spec says string"]),
        (
            "A int",
            "a: int",
            ["REFUSED `A` has another case in the spec, and tables ignore case"],
        ),
        (
            "`ſ` int",
            "s: int",
            ["REFUSED `ſ` has another case in the spec, and tables ignore case"],
        ),
        (
            "s struct<x int, y int>",
            "s: 'struct<x:int>'",
            ["REFUSED `s.y` int is no longer in the spec, and this version keeps no field inside of another column"],
        ),
        ("old int", "new: int", ["adds column new int", "keeps old int, null in new rows (no longer in the spec)"]),
    ],
)
def test_differences_of_columns_are_allowed_or_refused(tmp_path: Path, table: str, columns: str, expected: list[str]) -> None:
    actual = change_lines(planned(tmp_path, columns), as_is(table))
    assert [re.sub(r" \(at:\d+:\d+\)$", "", each) for each in actual] == expected


@pytest.mark.parametrize(
    ("allowed", "table", "expected"),
    [
        ("add: refuse", "a int", "`b` string is new in the spec, which says `add: refuse`"),
        ("widen: refuse", "a int, b string", "`a` is int, the spec says bigint, and `widen: refuse`"),
        ("drop: refuse", "a bigint, b string, c int", "`c` int is no longer in the spec, which says `drop: refuse`"),
    ],
)
def test_a_spec_can_refuse_a_change(tmp_path: Path, allowed: str, table: str, expected: str) -> None:
    pipeline = planned(tmp_path, "a: bigint; b: string", into=f", schema_changes: {{{allowed}}}")
    (refused,) = [each for each in changes(pipeline, as_is(table)) if not each.allowed]
    assert refused.what == expected
    kind, _, _ = allowed.partition(":")
    assert (refused.kind, f"schema_changes: {{{kind}:" in refused.hint) == (kind, True)


def test_only_the_same_or_a_wider_type_is_allowed(tmp_path: Path) -> None:
    names = [*map(str, dict.fromkeys(types.NAMES.values())), "decimal(9,2)", "decimal(18,2)", "decimal(18,4)", "array<int>"]
    wider = {("int", "bigint"), ("smallint", "bigint"), ("tinyint", "bigint"), ("float", "double")}
    wider.add(("decimal(9,2)", "decimal(18,2)"))
    kept_as_int = ("tinyint", "smallint", "int")
    pipelines = {name: planned(tmp_path, f"a: '{name}'") for name in names if name != "binary"}
    for old in names:
        table = as_is(f"a {'int' if old in kept_as_int else old}")
        for new, pipeline in pipelines.items():
            differences = changes(pipeline, table)
            same = old == new or (old in kept_as_int and new in kept_as_int)
            assert (not differences) == same, (old, new)
            assert same or differences[0].allowed == ((old, new) in wider), (old, new)


def test_a_new_layout_applies_to_new_files(tmp_path: Path) -> None:
    pipeline = planned(tmp_path, "a: timestamp; b: string", into=", partition_by: [day(a)], sort_by: [b], format_version: 2")
    table = as_is("a timestamp, b string", ("bucket(16, b)",), (), 3)
    differences = changes(pipeline, table)
    assert [(each.kind, each.allowed, each.what) for each in differences] == [
        (
            "partition_by",
            True,
            "new files are partitioned by day(a); existing files keep their layout until `sluice rebuild trades`",
        ),
        ("sort_by", True, "new files are sorted by b; existing files keep their layout until `sluice rebuild trades`"),
        ("format_version", False, "a table's format cannot go down: the table has 3, the spec says 2"),
    ]
    assert differences[2].hint == "write the `format_version` that the table has, or the name of another table"
    assert changes(pipeline, replace(table, partition_by=("day(a)",), sort_by=("b",), format_version=2)) == ()


def test_a_format_is_raised_and_the_order_of_partitions_does_not_matter(tmp_path: Path) -> None:
    pipeline = planned(tmp_path, "a: timestamp; b: string", into=", partition_by: [day(a), b]")
    (raised,) = changes(pipeline, as_is("a timestamp, b string", ("b", "day(a)"), (), 2))
    assert (raised.kind, raised.allowed, raised.what) == ("format_version", True, "raises Iceberg's format from 2 to 3")


def test_the_hint_offers_a_rebuild_where_it_helps(tmp_path: Path) -> None:
    columns, table = "a: int; b: 'struct<x:int>'", "a bigint, b struct<x int, y int>"
    rebuild = "; `sluice rebuild trades` rebuilds the table from the spec"
    for into, beyond in ((", schema_changes: {drop: keep}", [True, True]), (", schema_changes: {drop: refuse}", [True, False])):
        differences = changes(planned(tmp_path, columns, into=into), as_is(table))
        assert [(each.kind, each.allowed) for each in differences] == [("narrow", False), ("drop", False)]
        assert [each.hint.endswith(rebuild) for each in differences] == beyond


@pytest.mark.parametrize(("table", "offered"), [("a string", True), ("a int", False)])
def test_the_hint_offers_accept_only_if_it_accepts_all_changes(tmp_path: Path, table: str, offered: bool) -> None:
    differences = changes(planned(tmp_path, "a: string; b: string", into=", schema_changes: {add: refuse}"), as_is(table))
    (added,) = [each for each in differences if each.kind == "add"]
    assert hint([added], differences, "trades").startswith(added.hint)
    assert hint([added], differences, "trades").endswith("or `sluice accept trades`, which adds column b string") == offered


def test_each_change_has_the_place_that_asks_for_it(tmp_path: Path) -> None:
    steps = "steps:\n  - filter: a > 0\n  - derive: {twice: a * 2}\n  - rename: {c: d}\n  - cast: {e: int}"
    pipeline = planned(tmp_path, "a: int; b: int; c: {type: int, doc: see}; e: string", steps)
    table = as_is("b bigint, e string, gone int, _kafka_offset bigint, TWICE int")
    assert [(each.kind, each.path, pointed(each.where)) for each in changes(pipeline, table)] == [
        ("add", ("a",), "a: int"),
        ("narrow", ("b",), "b: int"),
        ("add", ("d",), "c: d}"),
        ("retype", ("e",), "e: int}"),
        ("rename", ("TWICE",), "twice: a * 2}"),
        ("drop", ("gone",), "{table: shop.trades, kafka_columns: false}"),
        ("drop", ("_kafka_offset",), "false}"),
    ]


def test_each_option_of_the_table_has_its_place(tmp_path: Path) -> None:
    more = ", partition_by: [day(a)], sort_by: [b], format_version: 2, schema_changes: {drop: refuse}"
    pipeline = planned(tmp_path, "a: timestamp; b: string", into=more)
    (created,) = changes(pipeline, None)
    assert (str(created).startswith("creates table shop.trades ("), pointed(created.where)[:11]) == (True, "shop.trades")
    differences = changes(pipeline, as_is("a timestamp, b string, c int", ("bucket(16, b)",), (), 3))
    assert [(each.kind, pointed(each.where)) for each in differences] == [
        ("drop", "{drop: refuse}}"),
        ("partition_by", "[day(a)], sort_by: [b], format_version: 2, schema_changes: {drop: refuse}}"),
        ("sort_by", "[b], format_version: 2, schema_changes: {drop: refuse}}"),
        ("format_version", "2, schema_changes: {drop: refuse}}"),
    ]
    unsaid = changes(planned(tmp_path, "a: int"), as_is("a int", ("a",)))
    assert [pointed(each.where) for each in unsaid] == ["{table: shop.trades, kafka_columns: false}"]


@pytest.mark.parametrize(("name", "text"), [("k", "k}"), ("source", "source: string}"), ("n", "n: int")])
def test_a_column_of_a_key_or_header_has_its_place(tmp_path: Path, name: str, text: str) -> None:
    pipeline = planned(tmp_path, "n: int", topic="key: {format: string, as: k}\nheaders: {source: string}")
    assert pointed(place(pipeline, name)) == text


def test_a_column_of_another_table_has_the_place_that_defines_it(tmp_path: Path) -> None:
    copy = COPY.replace("into", "steps: [{derive: {twice: n * 2}}]\ninto")
    plan = plan_for(tmp_path, NOWHERE, specs("n: int") + copy)
    differences = changes(plan.pipelines[0], as_is("n string"))
    assert [(each.kind, pointed(each.where)) for each in differences] == [("retype", "n: int"), ("add", "twice: n * 2}}]")]


def test_icebergs_metadata_is_read_as_an_existing_table() -> None:
    fields: list[dict[str, Any]] = [
        {"id": 1, "name": "n", "type": "long"},
        {"id": 2, "name": "at", "type": "timestamptz"},
        {"id": 3, "name": "d", "type": "decimal(9, 2)"},
        {"id": 4, "name": "s", "type": {"type": "struct", "fields": [{"id": 5, "name": "x", "type": "int"}]}},
        {"id": 6, "name": "l", "type": {"type": "list", "element-id": 7, "element": "timestamp"}},
        {"id": 8, "name": "m", "type": {"type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "uuid"}},
    ]
    transforms = [("day", 2), ("bucket[16]", 1), ("identity", 5), ("void", 3), ("truncate[4]", 1)]
    order = [("identity", 1, "asc", "nulls-first"), ("identity", 2, "desc", "nulls-last"), ("day", 2, "asc", "nulls-last")]
    existing_table = existing(
        json.dumps({"type": "struct", "fields": fields}),
        json.dumps({"fields": [{"transform": transform, "source-id": source} for transform, source in transforms]}),
        json.dumps(
            {"fields": [dict(zip(("transform", "source-id", "direction", "null-order"), each, strict=True)) for each in order]}
        ),
        2,
        {"sluice.owner": "me"},
    )
    assert str(types.Struct(existing_table.columns)) == (
        "struct<n:bigint,at:timestamp,d:decimal(9,2),s:struct<x:int>,l:array<timestamp_ntz>,m:map<string,uuid>>"
    )
    assert existing_table.partition_by == ("day(at)", "bucket(16, n)", "s.x", "truncate(4, n)")
    assert existing_table.sort_by == ("n", "at desc", "day(at) nulls last")
    assert (existing_table.format_version, existing_table.owner) == (2, "me")


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
    table = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
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
    table = table_state.table(shop.pipeline.table.catalog, shop.pipeline.table.identifier)
    assert table is not None
    assert table.schema().find_field("new").doc == "fresh"
    assert [tuple(row) for row in shop.sql("select n, new from {table} order by id")] == [(1, None), (big, "new")]
    assert changes(shop.pipeline, table_state.existing(shop.pipeline.table)) == ()
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
    ("before", "after", "into", "says", "at"),
    [
        ("  n: bigint", "  n: int", "", "`n` is bigint, the spec says int, which does not hold all of its values", "n: int"),
        ("  n: int", "  n: string", "", "`n` is int, the spec says string", "n: string"),
        (
            "  n: int",
            "  n: int\n  new: string",
            "schema_changes: {add: refuse}",
            "`new` string is new in the spec, which says `add: refuse`",
            "new: string",
        ),
        (
            "  n: int",
            "  n: bigint",
            "schema_changes: {widen: refuse}",
            "`n` is int, the spec says bigint, and `widen: refuse`",
            "n: bigint",
        ),
        (
            "  n: int\n  old: int",
            "  n: int",
            "schema_changes: {drop: refuse}",
            "`old` int is no longer in the spec, which says `drop: refuse`",
            "{drop: refuse}}",
        ),
        (
            "  n: 'struct<a:int,b:int>'",
            "  n: 'struct<a:bigint>'",
            "",
            "`n.b` int is no longer in the spec, and this version keeps no field inside of another column",
            "n: 'struct<a:bigint>'",
        ),
        (
            "  n: int",
            "  n: int",
            "format_version: 2",
            "a table's format cannot go down: the table has 3, the spec says 2",
            "2}",
        ),
    ],
)
def test_a_refused_change_changes_nothing_and_loses_nothing(
    shop: Project, before: str, after: str, into: str, says: str, at: str
) -> None:
    with_columns(shop, before)
    as_before = shop.template
    send(shop)
    shop.run()
    table_before, state = table_state.existing(shop.pipeline.table), table_state.state(shop.pipeline.table)
    with_columns(shop, after + "\n  more: string")
    if into:
        shop.template = shop.template.replace(".trades}}", ".trades, " + into.replace("{", "{{").replace("}", "}}") + "}}")
    send(shop)

    with pytest.raises(ColumnsChanged) as refused:
        shop.run()

    assert refused.value.code == "schema-change"
    line = re.search(rf"{re.escape(says)} \((\S+main\.yaml):(\d+):(\d+)\)", refused.value.message)
    assert line
    assert pointed(Where(line[1], int(line[2]), int(line[3]))) == at
    assert refused.value.hint
    assert (table_state.existing(shop.pipeline.table), table_state.state(shop.pipeline.table)) == (table_before, state)
    (next_run,) = next_runs(shop.plan, shop.plan.pipelines)
    assert not next_run.would_run
    assert [(change.what, pointed(change.where)) for change in next_run.changes or () if change.what == says] == [(says, at)]
    shop.template = as_before
    shop.run()
    assert len(shop.rows()) == 2
    shop.assert_exactly_once()


@pytest.mark.spark
@pytest.mark.kafka
def test_a_table_of_another_owner_is_not_changed(shop: Project) -> None:
    shop.spark.sql(f"create namespace if not exists lake.{shop.namespace}")
    shop.sql("create table {table} (id int) using iceberg")
    shop.sql("insert into {table} values (1)")
    with pytest.raises(RefusedError, match="did not create it"):
        shop.run()
    assert shop.rows() == [{"id": 1}]
    assert schemas(shop) == 1


@pytest.mark.spark
@pytest.mark.kafka
def test_a_schema_that_changed_meanwhile_is_compared_again(shop: Project) -> None:
    from framework.engine.publish.tables import open_table
    from framework.engine.spark.java_errors import CommitRefused

    send(shop, price=1)
    shop.run()
    with_columns(shop, "  price: double\n  new: int")
    context = shop.context()
    lake = context.lake(shop.pipeline)
    stale = lake.load(shop.pipeline.table.identifier)
    wanted = [each for each in changes(shop.pipeline, lake.existing(stale)) if each.kind == "add"]
    open_table(context, lake, shop.pipeline)
    with pytest.raises(CommitRefused, match="already exists"):
        lake.change(stale, wanted, shop.pipeline.table)
    with pytest.raises(BatchError, match="cannot be changed as the spec says") as refused:  # where nobody else has changed it
        lake.change(lake.load(shop.pipeline.table.identifier), wanted, shop.pipeline.table)
    assert refused.value.code == "schema-change"
    send(shop, price=2, new=2)
    shop.run()
    assert values(shop, "price", "new") == [(1.0, None), (2.0, 2)]
    assert schemas(shop) == 2


class Killed(BaseException):
    """Stands for a death at a kill point."""


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("point", ["opened", "branched", "staged", "checked", "published"])
def test_a_run_that_dies_after_changing_columns_can_be_repeated(shop: Project, point: str) -> None:
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


def with_into(project: Project, into: str) -> None:
    """Options of `into`, in place of those that were there."""
    into_template = f"into: {{{{table: {{namespace}}.trades{into}}}}}".replace("{drop", "{{drop")
    project.template = re.sub(r"into: \{\{table: \{namespace\}\.trades.*\}\}", lambda _: into_template, project.template)


def laid_out(project: Project) -> list[tuple[int, int, int]]:
    """Files by partition spec and sort order: how many rows each has."""
    layouts = project.sql("select spec_id, sort_order_id, sum(record_count) from {table}.files group by 1, 2 order by 1, 2")
    return [(spec, order, int(rows)) for spec, order, rows in layouts]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_run_partitions_sorts_and_raises_the_format_in_one_commit(shop: Project) -> None:
    with_into(shop, ", format_version: 2")
    shop.send_good(6)
    shop.run()
    before = metadata_files(shop)
    with_into(shop, ", partition_by: ['bucket(4, id)', size], sort_by: [id]")
    shop.topic_more = "  new: string"
    shop.send_good(6)
    (next_run,) = next_runs(shop.plan, shop.plan.pipelines)
    assert next_run.would_run
    kinds = ["add", "partition_by", "sort_by", "format_version"]
    assert [(each.kind, each.allowed) for each in next_run.changes or ()] == [(kind, True) for kind in kinds]
    shop.run()
    assert laid_out(shop) == [(0, 0, 6), (1, 1, 6)]
    assert metadata_files(shop) == before + 4  # the changes, the attempt's branch, its rows, and the publishing commit
    assert changes(shop.pipeline, table_state.existing(shop.pipeline.table)) == ()

    with_into(shop, ", partition_by: ['bucket(8, id)']")
    shop.send_good(6)
    shop.run()
    assert laid_out(shop) == [(0, 0, 6), (1, 1, 6), (2, 0, 6)]
    with_into(shop, "")
    shop.send_good(6)
    shop.run()
    assert laid_out(shop) == [(0, 0, 12), (1, 1, 6), (2, 0, 6)]
    with_into(shop, ", partition_by: ['bucket(4, id)', size], sort_by: [id]")  # as it was once
    shop.send_good(6)
    shop.run()
    assert laid_out(shop) == [(0, 0, 12), (1, 1, 12), (2, 0, 6)]
    assert changes(shop.pipeline, table_state.existing(shop.pipeline.table)) == ()
    assert len(shop.sql("select id from {table} where id = 7 and size = 'NORMAL'")) == 1
    shop.assert_exactly_once()


def metadata_files(project: Project) -> int:
    """How many commits there were."""
    return len(list((project.lake / "warehouse" / project.namespace / "trades" / "metadata").glob("*.metadata.json")))
