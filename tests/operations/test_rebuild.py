"""`sluice rebuild` builds a table next to the current one and swaps it in by one commit, despite kills and other writers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from framework.base.errors import BadRowsStop, BatchError, RefusedError, RolledBack, SluiceError
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.updates import commit_transaction
from framework.core.maintain.maintain import maintain
from framework.core.publish.batch import Batch, next_batch
from framework.core.run.run import batches
from framework.core.spark.java_errors import CommitRefused
from framework.operations.observe.next_run import next_runs
from framework.operations.rebuild import rebuild
from framework.plan.change import changes
from framework.systems import catalogs
from tests.support.kill_points import once
from tests.support.processes import SLUICE, sluice
from tests.support.project import Project, losing_answers
from tests.support.rebuilds import nothing_left, run_rebuild
from tests.support.refusals import accept_it, begun
from tests.support.repository import ROOT
from tests.support.selection import few
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def with_into(project: Project, into: str) -> None:
    line = f"into: {{{{table: {{namespace}}.trades{into}}}}}"
    project.template = re.sub(r"into: \{\{table: \{namespace\}\.trades.*\}\}", lambda _: line, project.template)


def with_flag(project: Project, above: int) -> None:
    project.template = re.sub(r"price > \d+", f"price > {above}", project.template)


def is_new(project: Project) -> None:
    """Asserts that the table is as the spec says, has each message once (as a row or a bad row), and that no leftovers stay."""
    project.assert_exactly_once()
    sizes = {row["size"] for row in project.rows() if row["price"] > 3}
    assert sizes <= {"LARGE"}, "rows of the spec before are left"
    assert changes(project.pipeline, table_state.existing(project.pipeline.table)) == ()
    nothing_left(project)


@pytest.mark.long
def test_what_a_killed_rebuild_had_written_is_deleted_by_the_next_one_and_its_row_files_by_maintenance(project: Project) -> None:
    begun(project, 30, bad_every=10)
    with_flag(project, 3)
    with victim(project, "staged", signal.SIGKILL, "rebuild") as process:
        process.wait(PATIENCE)
    run_rebuild(project)
    is_new(project)
    assert all("/trades/data/" in file for file in project.unreferenced())
    project.clock = lambda: datetime.now(timezone.utc) + timedelta(days=30)
    context = project.context()
    list(maintain(context, context.plan.pipelines[0]))
    assert project.unreferenced() == set()
    is_new(project)


# changes of the spec


@pytest.mark.long
def test_steps_of_rows_that_are_there(project: Project) -> None:
    begun(project)
    project.send_good(9, bad_every=3)
    project.run()
    assert {row["size"] for row in project.rows()} == {"NORMAL"}
    old = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    bad_before = {row["batch"] for row in project.rows(bad=True)}
    with_flag(project, 3)
    batches: list[Batch] = []

    published = run_rebuild(project, batches=batches)

    assert published is not None and (published.number, [batch.read for batch in batches]) == (3, [21])
    is_new(project)
    assert ({row["batch"] for row in project.rows(bad=True)}, bad_before) == ({3}, {1, 2})
    last_commit, emptied, before = json.loads(sluice(project, "history", "trades", "--json"))["commits"][:3]
    assert [(commit["batch"], commit["rebuilt"], commit["spec_changed"]) for commit in (last_commit, emptied, before)] == [
        (3, True, True), (None, False, False), (2, False, False),
    ]  # fmt: skip
    assert [offsets["from"] for offsets in last_commit["offsets"]] == [None, None, None]
    assert project.sql(f"select distinct size from {{table}} version as of {old}") == [("NORMAL",)]
    project.send_good(6, bad_every=3)
    project.run()
    is_new(project)
    assert {row["batch"] for row in project.rows(bad=True)} == {3, 4}
    table = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    assert [snapshot.summary.operation.value for snapshot in table.metadata.snapshots if snapshot.summary][-3:] == [
        "delete",
        "append",
        "append",
    ]


@pytest.mark.long
def test_partitions_order_format_and_columns(project: Project) -> None:
    with_into(project, ", format_version: 2, partition_by: [id, price]")
    project.template = project.template.replace("price: double", "price: double\n  old: int\n  S: 'struct<a:int,b:int>'")
    project.template = project.template.replace("price: double", "price: decimal(6,2)")
    begun(project, count=24)
    old = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    project.template = project.template.replace("id: {{type: bigint", "id: {{type: string").replace(
        "price: decimal(6,2)", "price: int"
    )
    project.template = project.template.replace("\n  old: int\n  S: 'struct<a:int,b:int>'", "\n  s: 'struct<a:int>'\n  new: date")
    with_into(project, ", partition_by: ['bucket(4, id)', size], sort_by: [price]")
    project.template = project.template.replace("json\n", "json\n", 1)
    with pytest.raises(RefusedError, match="is not what the spec says"):
        project.send_good(1)
        project.run()

    output = sluice(project, "plan", status=1)
    assert "REFUSED `id` is bigint, the spec says string" in output
    assert f"`sluice rebuild trades` rebuilds the table: reads 25 messages of {project.topic}, 3 partitions" in output
    project.send([b'{"id": "x%d", "price": %d}' % (number, number) for number in range(8)])
    run_rebuild(project)

    project.assert_exactly_once()
    nothing_left(project)
    assert changes(project.pipeline, table_state.existing(project.pipeline.table)) == ()
    numbers = [number for number in range(24) if number % 4] + [24]
    assert {row["id"] for row in project.rows()} == {*map(str, numbers), *(f"x{number}" for number in range(8))}
    columns = ["id", "price", "s", "new", "size", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
    assert list(project.rows()[0]) == columns
    assert len(project.sql(f"select id, old, S from {{table}} version as of {old} where id < 100")) == 18
    assert len(project.sql("select id from {table} where id = 'x7' and size = 'NORMAL' and price = 7")) == 1
    assert project.sql("select count(distinct _row_id), count(*) from {table}") == [(27, 27)]
    assert {spec for (spec,) in project.sql("select distinct spec_id from {table}.files")} != {0}
    project.sql("select * from {table}.partitions")
    project.sql("select * from {table}.all_data_files")
    query = f"select count(*) as n, max(id) as id from {project.namespace}.trades where id like 'x%' and price > 2"
    assert '"n": 5, "id": "x7"' in sluice(project, "query", query, "--json")
    project.send([b'{"id": "x8", "price": 8}'])
    project.run()
    assert len(project.rows()) == 28
    project.sql("call lake.system.expire_snapshots(table => '{bare}', older_than => timestamp '2999-01-01', retain_last => 1)")
    project.assert_exactly_once()


def test_what_a_rebuild_refuses(project: Project) -> None:
    begun(project)
    project.template = project.template.replace("price: double", "price: double\n  new: int")
    with_into(project, ", format_version: 2, schema_changes: {{add: refuse}}")
    with pytest.raises(BatchError, match=r"`new` int is new in the spec.*format cannot go down") as error:
        run_rebuild(project)
    assert error.value.code == "schema-change"
    project.sql("drop table {table} purge")
    with pytest.raises(BatchError, match="there is no table"):
        run_rebuild(project)


@pytest.mark.long
def test_a_table_from_a_table(project: Project) -> None:
    project.template += "---\npipeline: with_copy\nfrom: {{table: {namespace}.trades}}\nsteps: [{{filter: id > 1}}]\n"
    project.template += "into: {{table: {namespace}.copy, write: replace}}\n"
    begun(project)
    context = project.context()
    copy = context.plan.pipeline("with_copy")
    assert copy is not None
    list(batches(context, copy))
    project.template = project.template.replace("filter: id > 1", "cast: {{id: string}}")
    context = project.context()
    copy = context.plan.pipeline("with_copy")
    assert copy is not None
    with pytest.raises(RefusedError, match="`id` is bigint, the spec says string"):
        next_batch(context, copy)
    output = sluice(project, "plan", "with_copy", status=1)
    assert f"`sluice rebuild with_copy` rebuilds the table: reads {project.namespace}.trades: 9 rows" in output
    output = sluice(project, "rebuild", "with_copy", "--yes")
    assert (
        "with_copy: batch 1, 9 rows" in output
        and f"{project.namespace}.copy is rebuilt, published by one commit as batch 2" in output
    )
    assert project.spark.sql(f"select max(id) from lake.{project.namespace}.copy").collect()[0][0] == "9"
    assert list(batches(context, copy)) == []
    project.send_good(3)
    project.run()
    assert [batch.rows for batch in batches(context, copy)] == [12]


@pytest.mark.long
def test_bad_rows_stop_a_rebuild_as_well(project: Project) -> None:
    project.more = "bad_rows: stop"
    project.make_topic(1)
    project.send([b'{"id": 1, "price": 1}', b"not json", b'{"id": 3, "price": "x"}'], partition=0)
    with pytest.raises(BadRowsStop):
        project.run()
    accept_it(project)
    project.run()
    with_flag(project, 3)
    run_rebuild(project)
    is_new(project)
    assert len(project.rows(bad=True)) == 2

    project.template = project.template.replace("price: double", "price: double\n  more: string")
    project.send([b'{"id": 4, "price": 1, "more": "x"}'], partition=0)
    project.run()
    with_flag(project, 2)
    project.template = project.template.replace("more: string", "more: int")
    with pytest.raises(BatchError, match="the rebuild stops: ") as stopped:
        run_rebuild(project)
    assert stopped.value.code == "bad-rows"
    assert len(project.rows()) == 2


# rows that cannot be rebuilt


@pytest.mark.long
def test_messages_that_kafka_no_longer_has(project: Project) -> None:
    begun(project, count=30, bad_every=10)
    end = TopicPartition(project.topic, 0, 4)
    project.admin.delete_records([end])[end].result()
    with_flag(project, 3)
    pattern = rf"without 3 rows and 1 bad row of {project.topic}, whose messages come before those that would be read"

    (next_run,) = next_runs(project.plan, project.plan.pipelines)
    assert next_run.would_run and next_run.rebuild and re.search(pattern, f"without {next_run.rebuild.lost[0].words}")
    assert re.search(pattern, sluice(project, "plan"))
    with pytest.raises(RefusedError, match=pattern) as error:
        run_rebuild(project)
    assert (error.value.code, "`sluice rebuild trades --without-lost`" in error.value.hint) == ("rows-not-in-kafka", True)
    assert len(project.rows()) == 27
    assert re.search(pattern, sluice(project, "rebuild", "trades", "--without-lost", "--yes"))
    is_new(project)
    assert len(project.rows()) == 24


def test_a_table_without_kafkas_columns_counts_messages(project: Project) -> None:
    with_into(project, ", kafka_columns: false")
    begun(project, count=30, bad_every=10)
    end = TopicPartition(project.topic, 0, 4)
    project.admin.delete_records([end])[end].result()
    with pytest.raises(RefusedError, match="without the rows of up to 3 messages and 1 bad row of "):
        run_rebuild(project)


def test_latest_begins_where_the_table_began(project: Project) -> None:
    project.topic_more = "start_from: latest"
    project.make_topic()
    project.send_good(6)
    assert project.run() == []
    project.run(at=None)
    project.send_good(9)
    context = project.context()
    if table_state.state(project.pipeline.table) is None:
        next_batch(context, context.plan.pipelines[0])
        project.send_good(9)
    project.run()
    before = project.where()
    with_flag(project, 3)
    run_rebuild(project)
    assert project.where() == before and before
    nothing_left(project)


@pytest.mark.long
def test_commits_of_others(project: Project) -> None:
    begun(project)
    project.sql("delete from {table} where id = 1")
    with_flag(project, 3)
    with pytest.raises(RefusedError, match=r"commits of other programs: (delete|overwrite) by spark 4\S* \(snapshot") as error:
        run_rebuild(project)
    assert error.value.code == "commits-of-others"
    run_rebuild(project, without_lost=True)
    is_new(project)

    with_flag(project, 2)
    foreign = partial(project.sql, "delete from {table} where id = 1")
    with pytest.raises(RefusedError, match="another program changed"):
        run_rebuild(project, hook=once(foreign, "rebuild_built"))
    (missing,) = project.messages() - set(project.where())
    project.assert_exactly_once(project.messages() - {missing})
    run_rebuild(project, without_lost=True)
    is_new(project)


def test_a_compaction_changes_no_row(project: Project) -> None:
    begun(project)
    project.send_good(3)
    project.run()
    project.sql("call lake.system.rewrite_data_files(table => '{bare}', options => map('rewrite-all', 'true'))")
    with_flag(project, 3)
    run_rebuild(project)
    is_new(project)


@pytest.mark.long
def test_a_rollback_to_before_a_rebuild(project: Project) -> None:
    begun(project)
    before = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    with_flag(project, 3)
    run_rebuild(project)
    project.sql(f"call lake.system.rollback_to_snapshot('{{bare}}', {before})")
    with pytest.raises(RolledBack, match="was rolled back") as error:
        project.run()
    assert error.value.accepts is None and "`sluice rebuild trades` rebuilds it" in error.value.hint
    run_rebuild(project)
    is_new(project)
    rebuilt = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    project.send_good(9, bad_every=3)
    project.run()
    project.sql(f"call lake.system.rollback_to_snapshot('{{bare}}', {rebuilt})")
    accept_it(project)
    project.run()
    is_new(project)


@pytest.mark.parametrize("point", few(["rebuild_built", "rebuild_checked"], "rebuild_checked"))
def test_a_rollback_while_it_is_rebuilt(project: Project, point: str) -> None:
    begun(project)
    before = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    project.send_good(9, bad_every=3)
    project.run()
    with_flag(project, 3)
    with pytest.raises(RolledBack):
        run_rebuild(
            project, hook=once(partial(project.sql, f"call lake.system.rollback_to_snapshot('{{bare}}', {before})"), point)
        )


# other writers


@pytest.mark.long
@pytest.mark.parametrize("point", ["rebuild_born", "rebuild_staged", "rebuild_checked"])
def test_a_batch_comes_between(project: Project, point: str) -> None:
    project.more = "batch: {rows: 10}"
    begun(project, count=20)
    with_flag(project, 3)

    def other() -> None:
        project.send_good(9, bad_every=3)
        assert project.run()

    run_rebuild(project, hook=once(other, point))
    is_new(project)
    project.send_good(3)
    project.run()
    is_new(project)


@pytest.mark.long
def test_a_column_comes_between(project: Project) -> None:
    begun(project)
    with_flag(project, 3)
    with pytest.raises(BatchError):
        run_rebuild(project, hook=once(partial(fail, "stopped here"), "rebuild_built"))
    project.sql("alter table {table} add column extra int")
    run_rebuild(project)
    is_new(project)


def fail(message: str) -> None:
    raise BatchError("a-test", message)


@pytest.mark.long
def test_a_leftover_of_another_spec_is_thrown_away(project: Project) -> None:
    begun(project)
    with_flag(project, 500)
    with pytest.raises(BatchError):
        run_rebuild(project, hook=once(partial(fail, "stopped here"), "rebuild_built"))
    assert f"{project.namespace}.trades__rebuild" in catalogs.client_of(project.pipeline.table.catalog).tables()
    project.send_good(3)
    project.run()
    with_flag(project, 3)
    batches: list[Batch] = []
    run_rebuild(project, batches=batches)
    assert [batch.read for batch in batches] == [15]
    is_new(project)


@pytest.mark.long
def test_a_leftover_goes_with_the_table(project: Project) -> None:
    begun(project)
    with_flag(project, 3)
    with pytest.raises(BatchError):
        run_rebuild(project, hook=once(partial(fail, "stopped here"), "rebuild_built"))
    output = sluice(project, "drop", "trades", "--data", "--yes")
    assert f"{project.namespace}.trades__rebuild, 9 rows, " in output
    assert [
        name for name in catalogs.client_of(project.pipeline.table.catalog).tables() if name.startswith(project.namespace)
    ] == []
    assert [path for path in (project.lake / "warehouse" / project.namespace).rglob("*") if path.is_file()] == []
    project.run()
    is_new(project)


@pytest.mark.parametrize("times", few([1, 3], 1))
def test_answers_that_are_lost(project: Project, times: int) -> None:
    begun(project)
    with_flag(project, 3)
    commit, lost = losing_answers(times)
    run_rebuild(project, commit=commit)
    assert len(lost) == times
    is_new(project)


def test_commits_that_never_arrive_or_are_refused(project: Project) -> None:
    begun(project)
    with_flag(project, 3)
    failed: list[Any] = []

    def commit(transaction: Any) -> None:
        if len(failed) % 2 == 0 and len(failed) < 8:
            failed.append(transaction)
            raise ConnectionResetError("never arrived") if len(failed) % 4 else CommitRefused("not now")
        failed.append(transaction)
        commit_transaction(transaction)

    run_rebuild(project, commit=commit)
    is_new(project)


def test_a_catalog_that_refuses_the_publishing_commit(project: Project) -> None:
    begun(project)
    with_flag(project, 3)
    built: list[str] = []

    def commit(transaction: Any) -> None:
        if built:
            raise CommitRefused("not today")
        commit_transaction(transaction)

    with pytest.raises(BatchError, match="did not accept a commit"):
        run_rebuild(project, commit=commit, hook=lambda point: built.append(point) if point == "rebuild_checked" else None)
    assert {row["size"] for row in project.rows()} == {"NORMAL"}
    batches: list[Batch] = []
    run_rebuild(project, batches=batches)
    assert batches == []  # it was built already
    is_new(project)


# kills


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("point", ["published", *rebuild.POINTS])  # at all others a batch's own tests do it
def test_a_rebuild_goes_on_after_a_kill_at(project: Project, point: str) -> None:
    project.more = "batch: {rows: 25}"
    begun(project, count=60, bad_every=10)
    committed = project.files()
    with_flag(project, 3)

    with victim(project, point, signal.SIGKILL, "rebuild") as process:
        process.wait(PATIENCE)
    project.send_good(6)
    if point not in rebuild.POINTS[-3:]:
        assert {row["size"] for row in project.rows()} == {"NORMAL"}
        project.assert_exactly_once({(row["_kafka_partition"], row["_kafka_offset"]) for row in project.rows()} | bad(project))
    run_rebuild(project)
    project.run()

    is_new(project)
    assert all(Path(path.removeprefix("file:")).exists() for path in committed), "a file of an old snapshot is gone"


def bad(project: Project) -> set[tuple[int, int]]:
    return {(row["partition"], row["offset"]) for row in project.rows(bad=True)}


@pytest.mark.long
def test_ctrl_c_and_then_it_goes_on(project: Project) -> None:
    project.more = "batch: {rows: 20}"
    begun(project, count=200, bad_every=10)
    with_flag(project, 3)
    specs = str(Path(project.pipeline.where.file).parent)
    command = [*SLUICE, "rebuild", "trades", "--yes", "--specs", specs]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        if "batch 1," in line:
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)

    assert (process.returncode, "Traceback" in errors) == (130, False), errors
    table = project.pipeline.table.identifier
    next_command = f"sluice rebuild trades --specs {specs}"
    assert output.endswith(f"trades: stopped, {table} is unchanged; `{next_command}` continues from here\n")
    assert {row["size"] for row in project.rows()} == {"NORMAL"}
    assert not project.branches()
    batches: list[Batch] = []
    run_rebuild(project, batches=batches)
    assert 1 < batches[0].number <= 10, "it began again"
    is_new(project)


@pytest.mark.slow
@pytest.mark.long
def test_killed_behind_publishing_and_a_run_follows(project: Project) -> None:
    begun(project, count=60, bad_every=10)
    with_flag(project, 3)
    with victim(project, "rebuild_published", signal.SIGKILL, "rebuild") as process:
        process.wait(PATIENCE)
    project.send_good(6, bad_every=3)
    project.run()
    project.assert_exactly_once()
    with_flag(project, 2)
    run_rebuild(project)
    is_new(project)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("point", ["published", "rebuild_checked"])
def test_stopped_at_while_another_goes_on(project: Project, point: str) -> None:
    begun(project, count=60, bad_every=10)
    with_flag(project, 3)
    with victim(project, point, signal.SIGSTOP, "rebuild") as process:
        project.send_good(9, bad_every=3)
        project.run()
        run_rebuild(project)
        project.send_good(5)
        project.run()
        os.kill(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "ended" in output
    project.run()
    project.assert_exactly_once()
    assert metadata.read(project.pipeline.table.catalog, f"{project.namespace}.trades") is not None


@pytest.mark.long
def test_files_that_a_stopped_rebuild_may_still_publish_stay(project: Project) -> None:
    begun(project, count=60, bad_every=10)
    with_flag(project, 500)
    with victim(project, "rebuild_checked", signal.SIGSTOP, "rebuild") as process:
        with_flag(project, 3)
        with pytest.raises(SluiceError, match="a batch is being written to") as error:
            run_rebuild(project)
        assert error.value.code == "run-under-way"
        os.kill(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "Rebuilt(" in output
    project.assert_exactly_once()
    run_rebuild(project)
    is_new(project)
