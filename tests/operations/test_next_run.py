"""`sluice plan`: its lines about the next run, without any server and beside a real Kafka, and a run that then does the same."""

from __future__ import annotations

import json
import re
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import RefusedError, SluiceError, UnreachableError, Where
from framework.base.types import DOUBLE, FLOAT, STRING
from framework.core.iceberg import table_state
from framework.core.kafka.backlog import Waiting
from framework.core.maintain.due import Due
from framework.core.rules import protocol, refusals
from framework.core.rules.protocol import Position
from framework.host.cli import plan as command
from framework.operations.observe.next_run import NextRun, Recompute, next_runs
from framework.operations.rebuild.estimate import Estimate, ForeignCommit, LostRows
from framework.plan import Pipeline, Plan
from framework.plan.change import Change
from tests.support.project import Project, plan_for
from tests.support.runs import errors
from tests.support.shop import COPY, NOWHERE, OTHER, append, catalog, made_by_hand, planned, pointed, sluice, specs
from tests.support.time_limits import bar

ROOT = Path(__file__).resolve().parents[2]
TABLE = "n: bigint; price: double"  # the columns of a table that is made by hand
V2 = ", format_version: 2"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def next_run(name: str, *arguments: str) -> list[str]:
    """The lines about a pipeline's next run."""
    text = sluice("plan", *arguments).output.partition(f"\n{name}, the next run\n")[2]
    return [line.removeprefix("  ") for line in text.partition("\n\n")[0].splitlines()]


def document(*arguments: str) -> dict[str, Any]:
    (pipeline,) = json.loads(sluice("plan", "--json", *arguments).output)["pipelines"]
    assert isinstance(pipeline, dict)
    return pipeline


# Kafka or a catalog is away


@pytest.mark.timed
def test_plan_without_kafka_shows_the_new_table_and_names_the_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(folder / "home"))  # in which no Kafka runs
    planned(folder, "n: bigint")
    began = time.monotonic()
    done = sluice("plan")
    assert time.monotonic() - began < bar(2)
    assert done.exit_code == 0
    assert done.output.startswith("pipeline trades  (")
    assert "trades, the next run\n  creates table shop.trades (" in done.output
    assert done.output.endswith(
        "not checked: Kafka at 127.0.0.1:1 does not answer (is it running? `sluice services up kafka` starts one on this machine)\n"
    )
    assert not Path("lake.db").exists()
    away = document()
    assert ([problem["code"] for problem in away["unseen"]], away["waiting"], away["would_run"]) == (
        ["kafka-unreachable"],
        None,
        True,
    )


@pytest.mark.slow
@pytest.mark.timed
def test_a_silent_kafka_is_asked_once(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        second_pipeline = "---\npipeline: again\nfrom: {topic: trades}\ninto: {table: shop.again}\n"
        plan = plan_for(folder, f"127.0.0.1:{mute.getsockname()[1]}", specs("n: int") + second_pipeline)
        began = time.monotonic()
        runs = list(next_runs(plan, plan.pipelines, patience=0.2))
    assert time.monotonic() - began < bar(2)
    assert [[error.code for error in run.unreachable] for run in runs] == [["kafka-unreachable"], ["kafka-unreachable"]]
    assert runs[0].unreachable[0] is runs[1].unreachable[0]  # it was asked once


def test_a_secret_that_is_missing_is_named(folder: Path) -> None:
    login = 'bootstrap: "127.0.0.1:1"\nsecurity: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: "${secret:none}"}'
    planned(folder, "n: int")
    (file,) = Path("specs").rglob("main.yaml")
    with socket.create_server(("127.0.0.1", 0)) as server:
        file.write_text(file.read_text().replace('bootstrap: "127.0.0.1:1"', login.replace(":1", f":{server.getsockname()[1]}")))
        done = sluice("plan")
    assert done.exit_code == 0
    assert done.output.count("not checked: ") == 1
    assert "`none`" in done.output.partition("not checked: ")[2]


def test_a_broken_catalog_is_one_line(folder: Path) -> None:
    planned(folder, "n: bigint")
    Path("lake.db").write_text("this is no database " * 100)
    done = sluice("plan")
    assert done.exit_code == 0
    assert re.search(r"\nnot checked: the catalog `lake` cannot be read: .+ \(see `uri` and `warehouse` of .+\)\n\Z", done.output)
    assert "the next run" not in done.output
    assert (document()["changes"], [problem["code"] for problem in document()["unseen"]]) == (None, ["catalog-unreachable"])


@pytest.mark.slow  # it loads PySpark
def test_a_run_finds_a_broken_catalog_before_it_starts_a_jvm(folder: Path) -> None:
    planned(folder, "n: bigint")
    Path("lake.db").write_text("this is no database " * 100)
    ran = sluice("run")
    assert (ran.exit_code, "trades: catalog-unreachable: the catalog `lake` cannot be read" in ran.output) == (1, True)


@pytest.mark.slow
def test_a_table_whose_files_are_gone_is_a_catalog_that_cannot_be_read(folder: Path) -> None:
    pipeline = planned(folder, TABLE, into=V2)
    made_by_hand(refusals.owner(pipeline))
    for file in Path("warehouse").rglob("*.metadata.json"):
        file.unlink()
    done = sluice("plan")
    assert (done.exit_code, "not checked: the catalog `lake` cannot be read: " in done.output) == (0, True)


def test_a_broken_catalog_of_the_source_table_is_named(folder: Path) -> None:
    other_catalog = "---\ncatalog: other\ntype: sql\nuri: sqlite:///other.db\nwarehouse: other\n"
    text = specs(TABLE, into=", catalog: other") + COPY.replace("shop.copy", "shop.copy, catalog: lake") + other_catalog
    plan_for(folder, NOWHERE, text)
    Path("other.db").write_text("this is no database " * 100)
    done = sluice("plan", "copy")
    assert done.exit_code == 0
    assert "copy, the next run\n  creates table shop.copy (" in done.output
    assert "not checked: the catalog `other` cannot be read: " in done.output


def test_no_look_shows_only_the_specs(folder: Path) -> None:
    planned(folder, "n: bigint")
    Path("lake.db").write_text("nobody looks at this")
    done = sluice("plan", "--no-look")
    assert (done.exit_code, "next run" in done.output, "not checked" in done.output) == (0, False, False)
    content = document("--no-look")
    assert [content[key] for key in ("would_run", "changes", "waiting", "recompute", "rebuild", "refused", "unseen")] == [
        None
    ] * 5 + [[], []]
    assert [column["name"] for column in content["columns"]] == ["n"]


# a table, made by hand


def test_changes_of_the_table_are_shown(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint; at: timestamp", into=V2)
    made_by_hand(refusals.owner(pipeline))
    assert sluice("plan").exit_code == 0
    added, dropped = next_run("trades")
    assert re.fullmatch(r"adds column at timestamp \(.+main\.yaml:\d+:3\)", added)
    assert dropped == "keeps price double, null in new rows (no longer in the spec)"

    content = document()
    added, dropped = content["changes"]
    assert (added["kind"], added["name"], added["from"], added["to"], added["allowed"]) == ("add", "at", None, "timestamp", True)
    assert (dropped["kind"], dropped["name"], dropped["from"], dropped["to"]) == ("drop", "price", "double", None)
    assert pointed(Where(added["file"], added["line"], added["column"])) == "at: timestamp"
    assert (content["waiting"], content["recompute"], content["would_run"]) == (None, None, True)
    assert [column["name"] for column in content["columns"]] == ["n", "at"]


def test_a_refusal_of_the_run_is_shown(folder: Path) -> None:
    pipeline = planned(folder, "n: int; price: double", into=V2)
    made_by_hand(refusals.owner(pipeline))
    done = sluice("plan")
    assert done.exit_code == 1
    refused, hint = next_run("trades")
    assert refused.startswith("REFUSED `n` is bigint, the spec says int, which does not hold all of its values (")
    rebuild = "`sluice rebuild trades` rebuilds the table from the spec"
    assert hint == f"  hint: write the type that the table has, or a new column; {rebuild}"
    (change,) = document()["changes"]
    assert (change["allowed"], change["hint"], document()["would_run"]) == (False, hint.strip().removeprefix("hint: "), False)
    assert sluice("plan", "--no-look").exit_code == 0


def test_a_table_as_the_spec_says_has_no_changes(folder: Path) -> None:
    made_by_hand(refusals.owner(planned(folder, TABLE, into=V2)))
    assert next_run("trades") == ["table is as the spec says"]


@pytest.mark.parametrize(("owner", "code"), [(None, "table-not-ours"), (OTHER, "table-of-another")])
@pytest.mark.slow
def test_changes_of_another_owners_table_are_not_shown(folder: Path, owner: str | None, code: str) -> None:
    planned(folder, "n: int")
    made_by_hand(owner)
    assert sluice("plan").exit_code == 1
    refused, hint = next_run("trades")
    assert (refused.startswith(f"REFUSED {code}: the table shop.trades "), hint.startswith("  hint: ")) == (True, True)
    assert (document()["changes"], [problem["code"] for problem in document()["refused"]]) == (None, [code])


def test_a_paused_pipeline_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(folder / "home"))
    made_by_hand(refusals.owner(planned(folder, TABLE, into=V2)))
    sluice("pause", "trades")
    assert sluice("plan").exit_code == 1
    paused, hint, same = next_run("trades")
    assert (paused.startswith("FAILS pipeline-paused: trades is paused since "), same) == (True, "table is as the spec says")
    assert hint == "  hint: `sluice resume trades` resumes it"
    sluice("resume", "trades")
    assert next_run("trades") == ["table is as the spec says"]


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.slow
def test_bad_rows_of_a_former_table_are_refused(folder: Path, is_gone: bool) -> None:
    pipeline = planned(folder, TABLE, into=V2)
    made_by_hand("of nobody", "trades__bad_rows")
    if not is_gone:
        made_by_hand(refusals.owner(pipeline))
    refused, hint = next_run("trades")
    assert refused.startswith("REFUSED table-recreated: the table shop.trades is gone or new, but shop.trades__bad_rows ")
    assert hint.startswith("  hint: `sluice accept trades`: ")


@pytest.mark.slow
def test_the_speed_is_that_of_the_fastest_large_batch(folder: Path) -> None:
    pipeline = planned(folder, TABLE)
    made_by_hand("me")
    assert table_state.speed(pipeline.table) is None
    table = catalog().load_table("shop.trades")
    end = 0
    for messages, seconds in ((4_000_000, 400), (50_000, 1), (3_000_000, 100), (2_000_000, 200)):
        end += messages
        began = f"{int((time.time() - seconds) * 1000):012x}"
        ends = Position(attempt=began, batch=1, cluster="c", topics={"trades": "t"}, ends={"trades/0": end})
        properties = {protocol.ATTEMPT: began + "a" * 20, protocol.POSITION: ends.text()}
        table.append(table.scan(limit=1).to_arrow(), snapshot_properties=properties)
    assert table_state.speed(pipeline.table) == pytest.approx(30_000, rel=0.1)


# a table that is computed from another


def copying(folder: Path, name: str = "copy") -> Pipeline:
    pipelines = plan_for(
        folder, NOWHERE, specs(TABLE, into=V2) + COPY.replace("shop.copy", "shop.copy, format_version: 2")
    ).pipelines
    return next(pipeline for pipeline in pipelines if pipeline.name == name)


def copied(folder: Path, spec: str | None = None) -> None:
    """Makes both tables, of which one is computed from the other."""
    pipeline = copying(folder)
    made_by_hand("me")
    made_by_hand(refusals.owner(pipeline), "copy", pipeline.spec if spec is None else spec, "shop.trades")


def test_a_table_that_is_not_there_yet_cannot_be_read(folder: Path) -> None:
    copying(folder)
    assert sluice("plan", "copy").exit_code == 1
    assert next_run("copy", "copy") == [
        "FAILS source-missing: the table shop.trades, which copy reads, does not exist yet",
        "  hint: run `trades`, which writes it, first",
    ]
    result = sluice("plan")  # a run of both makes it first
    assert result.exit_code == 0
    assert result.output.index("trades, the next run") < result.output.index("copy, the next run")
    created, computed = next_run("copy")
    assert created.startswith("creates table shop.copy (")
    assert computed == "recomputes the table from shop.trades, once `trades` has created it"


def test_a_table_is_computed_for_the_first_time(folder: Path) -> None:
    copying(folder)
    made_by_hand("me")
    assert next_run("copy", "copy")[1:] == [
        "recomputes the table from shop.trades, for the first time: 1 row now, about a second once Spark has started"
    ]
    content = document("copy")
    assert content["from_table"] == {"catalog": "lake", "name": "shop.trades", "pipeline": "trades"}
    assert content["recompute"] == {"computes": True, "because": "for the first time", "rows": 1, "about_seconds": 0.0}
    assert (content["topics"], content["waiting"]) == ([], None)


@pytest.mark.slow
def test_a_table_is_computed_again_where_what_it_reads_has_changed(folder: Path) -> None:
    copied(folder)
    as_it_was = ["table is as the spec says", "shop.trades has not changed since the table was computed: nothing to do"]
    assert next_run("copy", "copy") == as_it_was
    assert document("copy")["recompute"]["computes"] is False

    append("trades")
    changed = "recomputes the table from shop.trades, which has changed: 2 rows now, about a second once Spark has started"
    assert next_run("copy", "copy") == ["table is as the spec says", changed]

    catalog().drop_table("shop.trades")
    made_by_hand("me")
    assert "from shop.trades, which was created again: 1 row now" in next_run("copy", "copy")[1]


def test_a_table_is_computed_again_by_another_spec(folder: Path) -> None:
    copied(folder, spec="before")
    assert "from shop.trades, since the spec has changed: 1 row now" in next_run("copy", "copy")[1]


@pytest.mark.slow
def test_a_table_is_computed_again_where_it_was_rolled_back(folder: Path) -> None:
    copied(folder)
    table = catalog().load_table("shop.copy")
    with table.transaction() as transaction:
        position = json.loads(table.properties[protocol.POSITION])
        transaction.set_properties({protocol.POSITION: json.dumps({**position, "snapshot": 1})})
    assert "from shop.trades, since the table was rolled back: 1 row now" in next_run("copy", "copy")[1]


def test_a_table_without_a_batch_is_computed_for_the_first_time(folder: Path) -> None:
    copied(folder)
    table = catalog().load_table("shop.copy")
    with table.transaction() as transaction:
        position = json.loads(table.properties[protocol.POSITION])
        transaction.set_properties({protocol.POSITION: json.dumps({**position, "attempt": protocol.BORN, "ends": {}})})
    assert "from shop.trades, for the first time: 1 row now" in next_run("copy", "copy")[1]


def test_changes_of_a_computed_table_wait_for_its_source(folder: Path) -> None:
    copied(folder)
    with catalog().load_table("shop.copy").update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("price")
    assert next_run("copy", "copy")[1:] == [
        "shop.trades has not changed since the table was computed: nothing to do",
        "schema changes apply when shop.trades changes; until then a run finds nothing to do",
    ]


# a rebuild


def test_an_estimate_of_a_rebuild_is_printed(folder: Path) -> None:
    pipeline = planned(folder, "n: int")
    lost = (
        LostRows(topic="t", rows=1, bad=2, because="which are gone"),
        LostRows(topic="u", rows=1_000, bad=0, because="which are gone", messages=True),
    )
    run = NextRun(
        pipeline,
        (),
        (),
        rebuild=Estimate(
            waiting=(waiting(12),),
            rows=None,
            done=40,
            lost=lost,
            foreign=(ForeignCommit(7, "spark", "append", added=5, deleted=0),),
        ),
        rows_differ=True,
    )
    assert list(command.next_run_lines(run))[1:] == [
        "existing rows stay as the previous spec made them",
        "`sluice rebuild trades` rebuilds the table: reads 12 messages of t, 2 partitions, about 100 bytes: about a second at 250,000/s "
        "once Spark has started",
        "  continues an interrupted rebuild, which has read 40 messages",
        "  without 1 row and 2 bad rows of t, which are gone",
        "  without the rows of up to 1,000 messages of u, which are gone",
        "  undoes append by spark (snapshot 7: 5 rows added, 0 deleted)",
    ]


# words


def waiting(messages: int, bytes_: int | None = 100, speed: float = 250_000.0, measured: bool = False) -> Waiting:
    return Waiting(topic="t", offsets=((0, 10, 10 + messages), (1, 5, 5)), bytes=bytes_, speed=speed, measured=measured)


@pytest.mark.parametrize(
    ("waits", "line"),
    [
        (waiting(0), "nothing waits in t, 2 partitions"),
        (waiting(1), "reads 1 message of t, 2 partitions, about 100 bytes: about a second at 250,000/s once Spark has started"),
        (
            waiting(12_000, 2_202_009),
            "reads 12,000 messages of t, 2 partitions, about 2.1 MiB: about a second at 250,000/s once Spark has started",
        ),
        (
            waiting(5_000_000, 5 << 30, 100_000, True),
            "reads 5,000,000 messages of t, 2 partitions, about 5.0 GiB: about 50 s at 100,000/s as before",
        ),
        (
            waiting(60_000_000, None, 50_000, True),
            "reads 60,000,000 messages of t, 2 partitions, size unknown: about 20 min at 50,000/s as before",
        ),
        (
            waiting(2_000_000_000, 3 << 40, 50_000, True),
            "reads 2,000,000,000 messages of t, 2 partitions, about 3.0 TiB: about 11 h at 50,000/s as before",
        ),
    ],
)
def test_waiting_messages_are_printed(folder: Path, waits: Waiting, line: str) -> None:
    assert list(command.next_run_lines(NextRun(planned(folder, "n: int"), (), (waits,))))[1:] == [line]


def test_columns_change_when_the_next_message_arrives(folder: Path) -> None:
    pipeline = planned(folder, "n: int")
    added = Change("add", "adds column n int", Where("a.yaml", 1, 2), allowed=True, path=("n",))
    dropped = Change("drop", "keeps m int, null in new rows", Where("a.yaml", 1, 2), allowed=True, path=("m",))
    notice = "schema changes apply when the next message arrives; until then a run finds nothing to do"
    assert list(command.next_run_lines(NextRun(pipeline, (added,), (waiting(0),))))[-1] == notice
    assert list(command.next_run_lines(NextRun(pipeline, (replace(added, allowed=False),), (waiting(0),))))[-1] == notice
    for idle in (
        NextRun(pipeline, (added,), (waiting(1),)),
        NextRun(pipeline, (dropped,), (waiting(0),)),
        NextRun(pipeline, (added,)),
    ):
        assert notice not in command.next_run_lines(idle)


# docs/plan.md


def described(folder: Path) -> tuple[str, Any, list[NextRun]]:
    """The text and the JSON that the page shows, and the runs behind them."""
    page = (ROOT / "docs" / "plan.md").read_text(encoding="utf-8")
    text, shape = (re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0] for kind in ("", "json"))
    plan = plan_for(folder, NOWHERE, specs("n: int", "steps: [{filter: n > 0}]") + COPY)
    copy, trades = plan.pipelines
    file = "specs/orders.yaml"
    orders = replace(trades, name="orders")
    assert copy.source is not None
    large = replace(
        copy, name="large_orders", source=copy.source.mapped(table=lambda table: replace(table, identifier="shop.orders"))
    )
    changes = (
        Change("add", "adds column country string", Where(file, 5, 3), allowed=True, path=("country",), old=None, new=STRING),
        Change(
            "widen",
            "widens amount from float to double",
            Where(file, 4, 3),
            allowed=True,
            path=("amount",),
            old=FLOAT,
            new=DOUBLE,
        ),
        Change(
            "drop", "keeps note string, null in new rows", Where(file, 1, 1), allowed=True, path=("note",), old=STRING, new=None
        ),
    )
    waits = Waiting(
        topic="orders", offsets=tuple((number, 0, 2000) for number in range(6)), bytes=2_202_009, speed=250_000.0, measured=False
    )
    rebuild_waits = Waiting(topic="orders", offsets=((0, 0, 36_000),), bytes=6_606_027, speed=250_000.0, measured=False)
    rebuilt = Estimate(
        waiting=(rebuild_waits,),
        rows=None,
        done=0,
        lost=(LostRows(topic="orders", rows=3, bad=0, because="…"),),
        foreign=(ForeignCommit(1, "spark 4.1.1", "delete", added=0, deleted=1),),
    )
    refused, unseen = RefusedError("topic-recreated", "…", "…"), UnreachableError("kafka-unreachable", "…", "…")
    return text, json.loads(shape), [
        NextRun(orders, changes, (waits,)),
        NextRun(large, (), recompute=Recompute("which has changed", 48_000)),
        NextRun(orders, changes, (waits,), refused=(refused,), unreachable=(unseen,), rebuild=rebuilt),
    ]  # fmt: skip


def test_the_page_on_plan_shows_the_real_output(folder: Path) -> None:
    text, _, (orders, large, _) = described(folder)
    blocks = [
        "".join(
            f"{line}\n" for line in (f"{run.pipeline.name}, the next run", *(f"  {line}" for line in command.next_run_lines(run)))
        )
        for run in (orders, large)
    ]
    assert text == "\n".join(blocks)


def shape(value: Any) -> Any:
    """The shape of a value: the keys of objects, the keys of all items of a list together, and the types of all else."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        items = [shape(item) for item in value]
        return (
            [{key: inner for item in items for key, inner in item.items()}] if items and isinstance(items[0], dict) else items[:1]
        )
    return "null" if value is None else type(value).__name__


def test_the_page_on_plan_has_every_key_of_the_json(folder: Path) -> None:
    _, page, (first_run, *other_runs) = described(folder)
    (written,) = page["pipelines"]
    runs = (replace(first_run, maintenance=(Due(identifier="shop.orders", compact=True, why="many small files"),)), *other_runs)
    topics, table, refused = (json.loads(json.dumps(command.document(run.pipeline, run))) for run in runs)
    assert topics.keys() == table.keys() == refused.keys() == written.keys()
    for key, value in written.items():
        real_value: Any = next((real[key] for real in (topics, table, refused) if real[key] not in (None, [])), [])
        if key == "changes":
            real_value = real_value[1:2]  # in the other changes, one of the types is null
        if key == "table":
            value, real_value = {**value, "partition_by": []}, {**real_value, "partition_by": []}
        assert shape(value) == shape(real_value), key
    planned_ = sluice("plan", "--json", "--no-look")
    assert json.loads(planned_.output).keys() == page.keys()


def test_json_lists_problems_of_the_specs(folder: Path) -> None:
    planned(folder, "n: bigint")
    (file,) = Path("specs").rglob("main.yaml")
    file.write_text("topic: a\nvalue: jsn\n")
    done = sluice("plan", "--json")
    problems = [(problem["line"], problem["column"], problem["code"]) for problem in json.loads(done.output)]
    assert (done.exit_code, problems) == (1, [(1, 1, "no-cluster"), (2, 8, "unknown-value")])
    assert done.output == sluice("check", "--json").output


def test_names_choose_the_pipelines(folder: Path) -> None:
    planned(folder, "n: int")
    assert sluice("plan", "--json", "trades").exit_code == 0
    done = sluice("plan", "trade")
    assert (done.exit_code, "unknown-pipeline" in done.output) == (1, True)


# beside a real Kafka


@pytest.fixture
def shop(project: Project) -> Project:
    project.make_topic()
    return project


def planned_run(plan: Plan, name: str = "trades") -> NextRun:
    return next(run for run in next_runs(plan, plan.pipelines) if run.pipeline.name == name)


def codes(errors: tuple[SluiceError, ...]) -> list[str]:
    return [error.code for error in errors]


@pytest.mark.spark
@pytest.mark.kafka
def test_the_run_reads_what_plan_announced(shop: Project) -> None:
    shop.send_good(600)
    unborn = planned_run(shop.plan)
    assert [change.kind for change in unborn.changes or ()] == ["create"]
    (waits,) = unborn.waiting or ()
    assert (waits.topic, waits.messages, waits.seconds, waits.measured) == (shop.topic, 600, 600 / 250_000, False)
    assert waits.offsets == ((0, 0, 200), (1, 0, 200), (2, 0, 200))
    mean = sum(len(json.dumps({"id": number, "price": number})) + len(f"k{number}") for number in range(600)) / 600
    assert waits.bytes == pytest.approx(600 * mean, rel=0.2)

    shop.topic_more = "start_from: latest"
    assert [waiting.messages for waiting in planned_run(shop.plan).waiting or ()] == [0]
    shop.topic_more = ""

    (batch,) = shop.run()
    state = table_state.state(shop.pipeline.table)
    assert state is not None
    assert state.position is not None
    assert (batch.read, state.position.ends) == (600, {f"{shop.topic}/{number}": end for number, _, end in waits.offsets})
    shop.send_good(30)
    after = planned_run(shop.plan)
    assert (after.changes, after.refused, after.unreachable, after.idle) == ((), (), (), False)
    assert [waiting.messages for waiting in after.waiting or ()] == [30]
    shop.run()
    assert planned_run(shop.plan).idle
    assert shop.run() == []


@pytest.mark.spark
@pytest.mark.kafka
def test_a_missing_topic_waits_and_a_recreated_one_is_refused(shop: Project) -> None:
    shop.send_good(3)
    shop.run()
    shop.delete_topic()
    missing = planned_run(shop.plan)
    assert (codes(missing.unreachable), missing.waiting) == (["no-topic"], None)
    line, hint, *_ = command.next_run_lines(missing)
    assert line.startswith(f"WAITS for its topic: there is no topic `{shop.topic}` in the cluster `main` (")
    assert hint.startswith("  hint: `sluice topics create trades` creates it; or correct `kafka_name` of the topic at ")
    with pytest.raises(UnreachableError, match="there is no topic"):
        shop.run()
    shop.make_topic()
    recreated = planned_run(shop.plan)
    assert (codes(recreated.refused), codes(recreated.unreachable), recreated.would_run) == (["topic-recreated"], [], False)
    with pytest.raises(RefusedError, match="deleted and created again"):
        shop.run()


@pytest.mark.spark
@pytest.mark.kafka
def test_each_of_several_topics_has_its_line(shop: Project) -> None:
    other_project = Project(shop.folder, shop.lake, shop.bootstrap, shop.spark)
    other_project.make_topic(partitions=1)
    shop.send_good(9)
    other_project.send_good(4, partition=0)
    shop.run()
    written = shop.template
    columns = "columns: {{id: {{type: bigint, required: true}}, price: double}}"
    second_topic = f"topic: more\nkafka_name: {other_project.topic}\nvalue: json\n{columns}\n---\n"
    shop.template = f"\n{second_topic}{written.strip()}\n".replace("from: {{topic: trades}}", "from: {{topics: [trades, more]}}")
    shop.send_good(3)

    run = planned_run(shop.plan)
    assert [(waits.topic, waits.messages, waits.offsets) for waits in run.waiting or ()] == [
        (shop.topic, 3, ((0, 3, 4), (1, 3, 4), (2, 3, 4))),
        (other_project.topic, 4, ((0, 0, 4),)),
    ]
    assert [(change.kind, change.path, change.allowed) for change in run.changes or ()] == [("add", ("_kafka_topic",), True)]
    (batch,) = shop.run()
    assert batch.read == 7
    assert {(row["_kafka_topic"]) for row in shop.rows()} == {None, shop.topic, other_project.topic}
    assert planned_run(shop.plan).changes == ()
    other_project.close()


@pytest.mark.spark
@pytest.mark.kafka
def test_a_computed_table_follows_the_runs_of_its_source(shop: Project) -> None:
    shop.template += "---\npipeline: with_large\nfrom: {{table: {namespace}.trades}}\nsteps: [{{filter: id > 1}}]\n"
    shop.template += "into: {{table: {namespace}.large, write: replace}}\n"
    source = f"{shop.namespace}.trades"

    def caught_up() -> list[str]:
        done: list[str] = []
        context = shop.context()
        assert errors(context, context.plan.pipelines, lambda batch: done.append(batch.pipeline)) == []
        return done

    def because() -> str:
        recompute = planned_run(shop.plan, "with_large").recompute
        assert recompute is not None
        return recompute.because

    shop.send_good(5)
    assert because() == "once `trades` has created it"
    assert caught_up() == ["trades", "with_large"]
    assert (because(), caught_up()) == ("", [])

    shop.send_good(1)
    assert because() == "once `trades` has run"
    shop.run()
    assert because() == "which has changed"
    assert caught_up() == ["with_large"]

    shop.template = shop.template.replace("filter: id > 1", "derive: {{twice: id * 2}}")
    run = planned_run(shop.plan, "with_large")
    assert [change.what for change in run.changes or ()] == ["adds column twice bigint"]
    assert (because(), list(command.next_run_lines(run))[-1]) == (
        "since the spec has changed",
        f"recomputes the table from {source}, since the spec has changed: 6 rows now, about a second once Spark has started",
    )
    assert caught_up() == ["with_large"]
    table = table_state.table(run.pipeline.table.catalog, f"{shop.namespace}.large")
    assert table is not None
    assert (len(table.metadata.schemas), sorted(table.scan().to_arrow().column("twice").to_pylist())) == (2, [0, 2, 4, 6, 8, 10])
    assert (because(), planned_run(shop.plan, "with_large").changes) == ("", ())


@pytest.mark.spark
@pytest.mark.kafka
def test_json_has_the_offsets_of_a_real_kafka(shop: Project) -> None:
    from click.testing import CliRunner

    from framework.host.cli import main

    shop.send_good(9)
    shop.run()
    shop.send_good(3, partition=1)
    shop.template = shop.template.replace("  price: double\n", "  price: double\n  new: int\n")
    folder = str(Path(shop.pipeline.where.file).parent)
    done = CliRunner().invoke(main, ["plan", "--json", "--specs", folder])
    assert done.exit_code == 0, done.output
    (content,) = json.loads(done.output)["pipelines"]
    assert content["unseen"] == content["refused"] == []
    assert [(change["kind"], change["name"]) for change in content["changes"]] == [("add", "new")]
    (waits,) = content["waiting"]
    assert [
        (partition["partition"], partition["next"], partition["end"], partition["messages"]) for partition in waits["partitions"]
    ] == [(0, 3, 3, 0), (1, 3, 6, 3), (2, 3, 3, 0)]
    assert (waits["messages"], waits["about_bytes"] > 50) == (3, True)
    output = CliRunner().invoke(main, ["plan", "--specs", folder]).output
    assert re.search(
        rf"  reads 3 messages of {shop.topic}, 3 partitions, about \d+ bytes: about a second at 250,000/s once", output
    )
