"""Changes by others to a table, topic or catalog, between and within batches: the rows are right, or an error says what to do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError

from framework.base.errors import (
    BadRowsStop,
    BatchError,
    OffsetsGone,
    RefusedError,
    RolledBack,
    TableRecreated,
    TopicRecreated,
    Transient,
)
from framework.base.home import home
from framework.core.iceberg import table_state
from framework.core.iceberg.updates import commit_transaction
from framework.core.publish.batch import next_batch
from framework.core.rules import attempts, journal, protocol
from framework.core.spark.causes import commit_failed, is_spark_gone
from framework.core.spark.java_errors import CommitRefused
from tests.support.kill_points import once
from tests.support.project import Project, good, losing_answers
from tests.support.refusals import accept_it, begun
from tests.support.runs import errors
from tests.support.selection import few

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.parametrize(
    "point", few([None, "opened", "ranged", "branched", "staged", "staged_bad_rows", "checked"], None, "checked")
)
def test_foreign_commits_between_and_within_batches(project: Project, point: str | None) -> None:
    begun(project)
    foreign = partial(project.sql, "delete from {table} where id = 1")
    project.send_good(12, bad_every=4)
    if point is None:
        foreign()
        project.run()
    else:
        project.run(at=once(foreign, point))
    (lost_message,) = [row for row in project.messages() if row not in project.where()]
    project.assert_exactly_once(project.messages() - {lost_message})
    assert project.branches() == []


def test_foreign_commits_to_the_bad_rows(project: Project) -> None:
    begun(project)
    project.send_good(12, bad_every=4)
    foreign = partial(project.sql, "delete from {table}__bad_rows where offset = 0 and partition = 0")
    project.run(at=once(foreign, "published"))
    project.assert_exactly_once(project.messages() - {(0, 0)})
    assert project.branches() == []


def test_a_branch_that_is_called_like_a_path_deletes_nothing(project: Project) -> None:
    begun(project)
    victim = home().parent / "victim.yaml"
    victim.write_text("x")
    branch = f"{protocol.BRANCH}../../{victim.name}"
    lake = project.context().lake(project.pipeline)
    table: Any = lake.load(project.pipeline.table.identifier)
    lake.branch_as(table, branch, table.currentSnapshot().snapshotId())
    project.send_good(6)
    project.run()
    assert victim.exists() and project.branches() == [branch]
    project.assert_exactly_once()
    victim.unlink()


def test_a_dead_attempt_that_names_files_of_others_deletes_none(project: Project, tmp_path: Path) -> None:
    """The attempt's branch is deleted, but not the files outside of the table's folder that its snapshot names."""
    begun(project)
    victim = tmp_path / "victim.parquet"
    victim.write_bytes(b"x")
    with attempts.attempt() as attempt:
        pass
    lake = project.context().lake(project.pipeline)
    table: Any = lake.load(project.pipeline.table.identifier)
    lake.branch(table, attempt, table.currentSnapshot().snapshotId())
    builder = lake.iceberg.DataFiles.builder(table.spec()).withPath(f"file://{victim}").withFormat("parquet")
    file = builder.withFileSizeInBytes(1).withRecordCount(1).build()
    append = table.newFastAppend().appendFile(file).set(protocol.ATTEMPT, attempt)
    append.toBranch(protocol.BRANCH + attempt).commit()
    assert project.branches() == [protocol.BRANCH + attempt]
    project.send_good(6)
    project.run()
    assert victim.exists() and project.branches() == []
    assert attempt not in {path.name for path in (home() / "attempts").iterdir()}
    project.assert_exactly_once()


@pytest.mark.parametrize("point", few([None, "branched", "staged", "checked"], "staged"))
def test_expiry_between_and_within_batches(project: Project, point: str | None) -> None:
    begun(project)
    project.send_good(6, bad_every=3)
    project.sql("delete from {table} where id = 1")
    expire = partial(
        project.sql,
        "call lake.system.expire_snapshots(table => '{bare}', older_than => timestamp '2999-01-01', retain_last => 1)",
    )
    if point is None:
        expire()
        project.run()
    else:
        project.run(at=once(expire, point))
    project.send_good(3)
    project.run()
    (lost_message,) = [row for row in project.messages() if row not in project.where()]
    project.assert_exactly_once(project.messages() - {lost_message})


def test_a_table_that_was_rolled_back(project: Project) -> None:
    begun(project)
    before = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    project.send_good(12, bad_every=4)
    project.run()
    project.sql(f"call lake.system.rollback_to_snapshot('{{bare}}', {before})")

    with pytest.raises(RolledBack, match="was rolled back"):
        project.run()
    accept_it(project)
    project.run()

    project.assert_exactly_once()


def test_a_table_that_is_rolled_back_to_its_birth_and_written_by_others(project: Project) -> None:
    begun(project)
    first_snapshot = project.sql("select snapshot_id from {table}.snapshots order by committed_at limit 1")[0][0]
    project.sql(f"call lake.system.rollback_to_snapshot('{{bare}}', {first_snapshot})")
    project.sql("insert into {table} select -1, 1.0, 'x', 0, 1000000, timestamp '2026-01-01'")
    with pytest.raises(RolledBack):
        project.run()
    accept_it(project)
    project.run()
    project.assert_exactly_once(project.messages() | {(0, 1000000)})


@pytest.mark.parametrize("point", few(["staged", "checked"], "checked"))
def test_a_rollback_within_a_batch(project: Project, point: str) -> None:
    begun(project)
    before = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    project.send_good(3)
    project.run()
    project.send_good(12, bad_every=4)
    rollback = partial(project.sql, f"call lake.system.rollback_to_snapshot('{{bare}}', {before})")
    with pytest.raises(RolledBack):
        project.run(at=once(rollback, point))
    accept_it(project)
    project.run()
    project.assert_exactly_once()


def test_a_table_that_was_dropped(project: Project) -> None:
    begun(project)
    project.sql("drop table {table} purge")
    with pytest.raises(TableRecreated, match="bad rows"):
        project.run()
    accept_it(project)
    project.run()
    project.assert_exactly_once()


def test_a_table_without_bad_rows_that_was_dropped_is_made_again(project: Project) -> None:
    begun(project, bad_every=0)
    project.sql("drop table {table} purge")
    project.run()
    project.assert_exactly_once()


def test_a_table_dropped_and_made_again_within_a_batch(project: Project) -> None:
    begun(project, bad_every=0)
    project.send_good(3)
    with pytest.raises(BatchError, match="was dropped"):
        project.run(at=once(lambda: project.sql("drop table {table} purge"), "staged"))
    project.run()
    project.assert_exactly_once()


def test_a_table_that_others_made(project: Project) -> None:
    project.make_topic()
    project.send_good(3)
    project.sql(f"create namespace if not exists lake.{project.namespace}")
    project.sql("create table {table} (id bigint) using iceberg")
    project.sql("insert into {table} values (1)")
    with pytest.raises(RefusedError, match="Sluice did not create it"):
        project.run()


def test_a_table_of_another_pipeline(project: Project) -> None:
    begun(project)
    project.template = project.template.replace("pipeline: trades", "pipeline: others")
    with pytest.raises(RefusedError, match="belongs to the pipeline trades"):
        project.run()


@pytest.mark.parametrize("count", [3, 40])
def test_a_topic_that_was_made_again(project: Project, count: int) -> None:
    begun(project, bad_every=0)
    project.delete_topic()
    project.make_topic()
    project.send_good(count)

    with pytest.raises(TopicRecreated, match="was deleted and created again"):
        project.run()
    accept_it(project)
    project.run()

    assert sorted(row["id"] for row in project.rows()) == list(range(12 + count))


def test_what_was_read_ahead_of_a_topic_that_was_made_again(project: Project) -> None:
    """The old topic's consumers are still open and hold messages that no batch has read."""
    project.more = "batch: {rows: 4}"
    project.make_topic(1)
    project.send_good(12, partition=0)
    context = project.context()
    assert next_batch(context, context.plan.pipelines[0]) is not None
    project.delete_topic()
    project.make_topic(1)
    project.send_good(12, partition=0)

    accept_it(project)
    project.run()

    assert sorted(row["id"] for row in project.rows()) == [*range(4), *range(12, 24)]


def test_a_topic_made_again_within_a_batch(project: Project) -> None:
    begun(project, bad_every=0)
    project.send_good(6)

    def again() -> None:
        project.delete_topic()
        project.make_topic()
        project.send_good(30)

    with pytest.raises(TopicRecreated):
        project.run(at=once(again, "staged"))
    assert len(project.rows()) == 12


def test_messages_that_kafka_no_longer_has(project: Project) -> None:
    from confluent_kafka import TopicPartition

    begun(project, bad_every=0)
    project.send_good(9, partition=1)
    project.admin.delete_records([TopicPartition(project.topic, 1, 10)])[TopicPartition(project.topic, 1)].result()

    with pytest.raises(OffsetsGone, match=r"no longer has 6 messages .* \(topic_\w+/1: next is 4, Kafka begins at 10\)"):
        project.run()
    accept_it(project)
    project.run()

    assert len(project.rows()) == 12 + 3


def test_messages_that_kafka_loses_while_they_are_read(project: Project) -> None:
    from confluent_kafka import TopicPartition

    begun(project, bad_every=0)
    project.send_good(9, partition=1)

    def lose() -> None:
        end = TopicPartition(project.topic, 1, 10)
        project.admin.delete_records([end])[end].result()

    with pytest.raises(Transient, match=rf"^messages-gone: Kafka lost messages of {project.topic} while they were read"):
        project.run(at=once(lose, "branched"))
    with pytest.raises(OffsetsGone):
        project.run()
    accept_it(project)
    project.run()

    assert len(project.rows()) == 12 + 3


def test_bad_rows_stop_until_they_are_accepted(project: Project) -> None:
    project.more = "bad_rows: stop"
    project.make_topic(1)
    project.send([good(0), b"not json", good(2)], partition=0)

    for _ in range(2):
        with pytest.raises(BadRowsStop, match=r"topic_\w+/0 at offset 1: undecodable"):
            project.run()
    assert project.rows() == []
    accept_it(project)
    project.run()
    project.assert_exactly_once()
    assert len(project.rows(bad=True)) == 1

    project.send([b"again not"], partition=0)
    with pytest.raises(BadRowsStop, match="offset 3"):
        project.run()


@pytest.mark.parametrize("times", [1, 3])
def test_catalog_answers_that_are_lost(project: Project, times: int) -> None:
    begun(project)
    project.send_good(12, bad_every=4)
    commit, lost = losing_answers(times)
    project.run(commit=commit)
    project.assert_exactly_once()
    assert len(lost) == min(times, 2)  # the table and the bad rows are one commit each
    assert project.branches() == []


def test_catalog_commits_that_fail_before_they_arrive(project: Project) -> None:
    begun(project)
    project.send_good(12, bad_every=4)
    failed: list[Any] = []

    def commit(transaction: Any) -> None:
        if len(failed) < 2:
            failed.append(transaction)
            raise ConnectionResetError("never arrived")
        commit_transaction(transaction)

    project.run(commit=commit)
    project.assert_exactly_once()


def test_a_catalog_that_refuses_every_commit(project: Project) -> None:
    begun(project)
    project.send_good(12, bad_every=4)

    def commit(transaction: Any) -> None:
        raise CommitRefused("not today")

    with pytest.raises(BatchError, match="did not accept a commit"):
        project.run(commit=commit)
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []


@pytest.mark.long
def test_a_full_disk(project: Project) -> None:
    begun(project)
    project.send_good(3000, bad_every=100)
    data = project.lake / "warehouse" / project.namespace / "trades" / "data"
    specs = Path(project.pipeline.where.file).parent
    # The disk has one page.
    run = in_own_mounts(
        f"mount -t tmpfs -o size=4k none {data} && exec {sys.executable} -m tests.support.victim {specs} nowhere SIGCONT"
    )

    assert "refused disk-full: Spark failed, since the disk is full: No space left on device" in run.stdout
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []


@pytest.mark.parametrize(
    ("fault", "code"), few([("full", "disk-full"), ("read-only", "permission-denied")], ("full", "disk-full"))
)
def test_metadata_that_cannot_be_written(project: Project, fault: str, code: str) -> None:
    """The error names the disk: `table-busy` would blame another writer, and there is none."""
    begun(project)
    project.send_good(30, bad_every=10)
    folder = project.lake / "warehouse" / project.namespace / "trades" / "metadata"
    specs, copy = Path(project.pipeline.where.file).parent, project.folder / "copy"
    ends = f"cat /dev/zero > {folder}/fill 2>&1; true" if fault == "full" else f"mount -o remount,ro {folder}"
    mount = f"cp -a {folder} {copy} && mount -t tmpfs -o size=1m none {folder} && cp -a {copy}/. {folder}"
    run = in_own_mounts(f"{mount} && ({ends}) && exec {sys.executable} -m tests.support.victim {specs} nowhere SIGCONT")
    refusal = re.search(rf"refused {code}: Spark failed, since .*: .*; nothing of this batch was published", run.stdout)
    assert refusal and (str(folder) in refusal[0]) is (fault == "read-only"), run.stdout
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []


def in_own_mounts(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell script that can mount file systems of its own."""
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    if subprocess.run([*command[:3], "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets no test mount a small disk: not shown here")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def test_causes_that_the_machine_has_are_named() -> None:
    assert is_spark_gone(RuntimeError("Job 1 cancelled because SparkContext was shut down"))
    assert not is_spark_gone(
        Py4JError("An error occurred while calling o1.x. Trace:\npy4j.Py4JException: Method x([]) does not exist")
    )
    for message, code in {
        "/w/a.json (Permission denied)": "permission-denied",
        "[SQLITE_BUSY] The database file is locked (database is locked)": "catalog-locked",
        "attempt to write a readonly database": "permission-denied",
        "/w/a.json (No space left on device)": "disk-full",
        "Cannot commit: stale metadata": "table-busy",
        "": "table-busy",
    }.items():
        error = commit_failed("table-busy", "the catalog took nothing", message, "run again")
        assert error.code == code and error.message.startswith("the catalog took nothing") and error.message.endswith(message)


def test_two_writers_to_the_catalog_at_the_last_moment(project: Project) -> None:
    begun(project)
    project.send_good(12, bad_every=4)
    other_runs: list[Any] = []
    project.run(at=once(lambda: other_runs.append(project.run()), "checked"))
    assert len(other_runs[0]) == 1
    project.assert_exactly_once()
    assert project.branches() == []


SECOND = """
---
pipeline: zweite
from: {{topic: trades}}
into: {{table: {namespace}.second}}
"""


def landed_in_second(project: Project) -> int:
    table = table_state.table(project.pipeline.table.catalog, f"{project.namespace}.second")
    return table.scan().count() if table else 0


def test_an_error_that_nobody_foresaw_ends_its_own_pipeline_alone(project: Project) -> None:
    project.template += SECOND
    project.make_topic()
    project.send_good(6)

    def fail() -> None:
        raise ZeroDivisionError("nobody thought\nof this")

    context = project.context(once(fail, "staged"))
    (error,) = errors(context, context.plan.pipelines)
    assert error.code == journal.read("trades").failed.code == "unexpected-error"  # type: ignore[union-attr]
    assert error.message == "ZeroDivisionError: nobody thought" and landed_in_second(project) == 6
    log = Path(re.findall(r"\S+\.log", error.hint)[0])
    assert "of this" in log.read_text() and "in fail" in log.read_text() and log.stat().st_mode & 0o777 == 0o600
    errors(project.context(once(fail, "staged")), context.plan.pipelines[:1])
    assert list(log.parent.glob("trades-*.log")) == [log], "the same error has one file"
    assert (failed := journal.read("trades").failed) and failed.code == "unexpected-error"
    project.run()
    project.assert_exactly_once()


@pytest.mark.long
def test_a_spark_that_ends_is_named_and_the_next_pipeline_gets_another(project: Project) -> None:
    project.template += SECOND
    project.make_topic()
    project.send_good(12, bad_every=4)
    specs = Path(project.pipeline.where.file).parent
    command = [sys.executable, "-m", "tests.support.victim", str(specs), "ranged", "JVM", "all"]
    for point in ("ranged", "staged", "checked"):
        command[4] = point
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert "failed trades: spark-ended: Spark ended while it worked" in run.stdout, run.stdout + run.stderr
        assert "Traceback" not in run.stdout + run.stderr, run.stderr
        assert landed_in_second(project) == 9
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []


@pytest.mark.long
def test_a_kill_of_the_whole_group_ends_without_a_traceback(project: Project) -> None:
    """A service manager stops a service this way: Spark's process also gets the signal."""
    project.make_topic()
    project.send_good(12, bad_every=4)
    specs = Path(project.pipeline.where.file).parent
    with (project.folder / "stderr").open("w+") as errors:
        command = [sys.executable, "-m", "tests.support.victim", str(specs), "staged", "SIGSTOP", "all"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, start_new_session=True)
        assert run.stdout is not None and "reached\n" in iter(run.stdout.readline, "")
        os.waitpid(run.pid, os.WUNTRACED)  # it says that it is there a moment before it stops
        os.killpg(run.pid, signal.SIGTERM)
        os.killpg(run.pid, signal.SIGCONT)
        output, _ = run.communicate(timeout=120)
        errors.seek(0)
        assert journal.read("trades").failed is None
        assert "Traceback" not in errors.read() and "failed" not in output and output.endswith("ended\n") and run.returncode == 0
    project.run()
    project.assert_exactly_once()
    assert project.branches() == []
