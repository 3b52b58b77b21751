"""`write: upsert` on real Kafka, Spark and Iceberg: one row per key, whatever the order, the batches and the kills."""

from __future__ import annotations

import json
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from framework.base.errors import ColumnsChanged, RefusedError
from framework.core.iceberg import metadata
from framework.core.rules.protocol import UPSERT_POINTS
from framework.host.cli import main
from tests.support.customers import SPEC, customers, send
from tests.support.project import Project
from tests.support.rebuilds import run_rebuild
from tests.support.refusals import accept_it
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
__all__ = ["customers"]  # a fixture


def names(project: Project) -> dict[int, str]:
    rows = project.rows()
    assert len({row["id"] for row in rows}) == len(rows), "a key has two rows"
    return {row["id"]: row["name"] for row in rows}


def test_the_newest_row_of_each_key(customers: Project) -> None:
    send(customers, (1, "a", 1000), (2, "b", 1000), (1, "a2", 3000), (1, "a1", 2000))
    (batch,) = customers.run()
    assert names(customers) == {1: "a2", 2: "b"}
    assert batch.changed and (batch.changed.inserted, batch.changed.updated, batch.changed.deleted) == (2, 0, 0)
    send(customers, (1, "late", 2500), (2, "b2", 1001), (3, "left out", 1000), partition=1)
    (batch,) = customers.run()
    assert names(customers) == {1: "a2", 2: "b2"}
    assert (batch.read, batch.rows, batch.filtered) == (3, 2, 1)
    assert batch.changed and (batch.changed.inserted, batch.changed.updated, batch.changed.deleted) == (0, 1, 0)


@pytest.mark.parametrize("more", ["", 'partition_by: ["bucket(1, id)"], '])
def test_files_of_which_no_row_is_left_are_removed(customers: Project, more: str) -> None:
    """Otherwise each batch that changes the same keys would leave a file that all later ones open."""
    customers.template = SPEC.replace("write: upsert", f"{more}write: upsert")
    send(customers, (1, "a", 1000), (2, "b", 1000), (3, "c", 1000))
    customers.run()
    for number in range(3):  # the first of these marks one row, and the others replace a file
        send(customers, (1, f"a{number}", 2000 + number))
        (batch,) = customers.run()
        assert batch.changed and (batch.changed.inserted, batch.changed.updated, batch.changed.deleted) == (0, 1, 0)
        assert _totals(customers) == {"records": 4, "position-deletes": 1, "data-files": 2, "delete-files": 1}
    send(customers, (1, "a9", 3000), (2, "b9", 3000))  # marks another row, and replaces a file: one file has both marks
    customers.run()
    assert names(customers) == {1: "a9", 2: "b9", 3: "c"}
    assert _totals(customers) == {"records": 5, "position-deletes": 2, "data-files": 2, "delete-files": 1}
    send(customers, (1, None, 4000), (2, None, 4000), (3, None, 4000))  # no row is left
    (batch,) = customers.run()
    assert batch.changed and batch.changed.deleted == 3
    assert (customers.rows(), _totals(customers)["data-files"]) == ([], 0)
    assert not customers.unreferenced()


def _totals(project: Project) -> dict[str, int]:
    """The totals of the newest snapshot."""
    table = metadata.read(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    summary = metadata.summary(table.main)
    return {name: int(summary[f"total-{name}"]) for name in ("records", "position-deletes", "data-files", "delete-files")}


@pytest.mark.long
def test_a_merge_makes_no_session(customers: Project, spark: Any) -> None:
    """Days of `run --every` must not fill the memory with sessions, which threads of Spark's pools hold while they work."""
    counts = []
    for number in range(3):
        send(customers, (1, f"ann {number}", 10 + number), (2, "bob", 20 + number), (3, None, 30 + number))
        customers.run()
        counts.append(_sessions(spark))
    assert counts[-1] <= counts[0], counts


def test_a_merge_has_settings_of_its_own(customers: Project, spark: Any) -> None:
    """Spark plans a merge of few keys without adaptive execution; later queries have it again."""
    for number in range(2):
        send(customers, (1, f"ann {number}", 10 + number))
        customers.run()
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [executions.apply(index).physicalPlanDescription() for index in range(executions.size())]
    last_plan = [plan for plan in plans if "MergeRows" in plan][-1]
    assert "AdaptiveSparkPlan" not in last_plan.splitlines()[2], last_plan  # what is read there can have its own
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"


def _sessions(spark: Any) -> int:
    """Returns the number of Spark sessions in the JVM's memory after a collection."""
    jvm = spark._jvm

    def array(type_: Any, *values: Any) -> Any:
        result = spark.sparkContext._gateway.new_array(type_, len(values))
        for index, value in enumerate(values):
            result[index] = value
        return result

    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    command = array(
        jvm.Object, commands, "gcClassHistogram", array(jvm.Object, array(jvm.String)), array(jvm.String, "[Ljava.lang.String;")
    )
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    (invoke,) = (
        method for method in jvm.Class.forName("javax.management.MBeanServer").getMethods() if method.getName() == "invoke"
    )
    lines = invoke.invoke(server, command).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split()[3:4] == ["org.apache.spark.sql.classic.SparkSession"])


def test_deletes_are_remembered(customers: Project) -> None:
    send(customers, (1, "a", 1000), (2, "b", 1000))
    customers.run()
    send(customers, (1, None, 5000), (9, None, 5000))
    (batch,) = customers.run()
    assert batch.changed and batch.changed.deleted == 1
    assert names(customers) == {2: "b"}
    send(customers, (1, "older", 4000), (9, "older", 4999), (2, None, 900), partition=1)
    customers.run()
    assert names(customers) == {2: "b"}
    send(customers, (1, "born again", 6000), partition=2)
    customers.run()
    assert names(customers) == {1: "born again", 2: "b"}


def test_a_message_without_a_key_is_a_bad_row(customers: Project) -> None:
    send(customers, (None, "a", 1000), (None, None, 1000), (1, "a", 1000))
    customers.run()
    assert names(customers) == {1: "a"}
    assert [(row["stage"], row["code"]) for row in customers.rows(bad=True)] == [("keys", "null_key")] * 2


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("point", [*UPSERT_POINTS, "published"])
def test_keys_are_right_after_a_kill_at(customers: Project, point: str) -> None:
    """A killed batch is repeated or was complete: no batch is half there, and a deleted key does not come back."""
    send(customers, *((key, "old", 1000) for key in range(20)))
    customers.run()
    send(customers, *((key, None if key % 2 else "new", 5000) for key in range(30)), (None, "bad", 1))
    with victim(customers, point, signal.SIGKILL) as process:
        process.wait(PATIENCE)
    send(customers, *((key, "late", 4000) for key in range(40)), partition=1)
    customers.run()
    assert names(customers) == {**dict.fromkeys(range(0, 30, 2), "new"), **dict.fromkeys(range(30, 40), "late")}
    assert [row["code"] for row in customers.rows(bad=True)] == ["null_key"]
    assert [ref for ref in refs(customers) if ref.startswith("sluice") and "_" in ref] == [], "what the killed run left is there"
    assert len(days(customers)) == 1


@pytest.mark.long
def test_stopped_while_another_goes_on(customers: Project) -> None:
    send(customers, *((key, "old", 1000) for key in range(20)))
    customers.run()
    send(customers, *((key, None, 5000) for key in range(10)))
    with victim(customers, "staged_state", signal.SIGSTOP) as process:
        send(customers, *((key, "late", 4000) for key in range(5)), *((key, "new", 6000) for key in range(5, 8)), partition=1)
        customers.run()
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "ended" in output
    assert "refused" not in output
    customers.run()
    assert names(customers) == {**dict.fromkeys(range(5, 8), "new"), **dict.fromkeys(range(10, 20), "old")}


def refs(project: Project) -> list[str]:
    table = project.context().lake(project.pipeline).load(f"{project.namespace}.trades")
    assert table is not None
    return list(table.refs())


@pytest.mark.long
def test_a_tombstone_from_the_command_line(customers: Project) -> None:
    send(customers, (1, "a", 1000), (2, "b", 1000))
    customers.run()
    specs = ["--specs", str(Path(customers.pipeline.where.file).parent)]
    result = CliRunner().invoke(main, ["send", "trades", "--tombstone", "--key", "1", *specs])
    assert result.exit_code == 0, result.output
    wrongs = {
        "a tombstone needs --key": ["--tombstone"],
        "a tombstone has no value": ["{}", "--tombstone"],
        "give JSON, - for": [],
    }
    for message, options in wrongs.items():
        wrong_result = CliRunner().invoke(main, ["send", "trades", *options, *specs])
        assert (wrong_result.exit_code, message in wrong_result.output) == (2, True)
    customers.run()
    assert names(customers) == {2: "b"}


def days(project: Project) -> list[str]:
    """Returns the branches of remembered deletes, one per day."""
    return [ref for ref in refs(project) if ref.startswith("sluice-deletes-")]


def test_what_people_see_of_a_delete(customers: Project) -> None:
    from framework.operations.observe.commits import history
    from framework.operations.trials.preview import preview

    send(customers, (1, "a", 1000), (2, "b", 1000))
    customers.run()
    send(customers, (1, None, 5000), (2, "b2", 5000))
    customers.run()
    messages = preview(customers.context(), customers.pipeline, 2, "latest").messages
    assert [row.fate for message in messages for row in message.rows] == ["deletes", "lands"]
    commits = history(customers.pipeline)
    assert commits is not None
    assert [(commit.added, commit.deleted) for commit in commits.commits] == [(1, 2), (2, 0), (0, 0)]
    peek = ["peek", "trades", "--json", "--specs", str(Path(customers.pipeline.where.file).parent)]
    assert [json.loads(line)["bad"] for line in CliRunner().invoke(main, peek).stdout.splitlines()] == [None] * 4


@pytest.mark.long
def test_deletes_are_forgotten_in_time(customers: Project) -> None:

    def days_ago(days: int) -> None:
        customers.clock = lambda: datetime.now(timezone.utc) - timedelta(days=days)

    days_ago(9)
    send(customers, (1, "a", 1000), (2, None, 5000))
    customers.run()
    days_ago(7)
    send(customers, (3, None, 5000))
    customers.run()
    assert len(days(customers)) == 2
    days_ago(0)
    send(customers, (2, "late", 4000), (3, "late", 4000))
    customers.run()
    assert len(days(customers)) == 1
    send(customers, (2, "late", 4001), (3, "late", 4001))
    customers.run()
    assert names(customers) == {1: "a", 2: "late"}


def rolled_back_over_two_batches(customers: Project) -> None:
    """Rolls back two batches that deleted rows by a wrong spec, and corrects the spec."""
    send(customers, (1, None, 5000), (2, "a", 1000), (3, "a", 1000))
    customers.run()
    good = customers.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    customers.template = SPEC.replace("deletes: tombstones", "deletes: {{when: \"name = 'x'\"}}")
    for key in (2, 3):
        send(customers, (key, "x", 5000))
        customers.run()
    assert names(customers) == {}
    customers.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {good})")
    customers.template = SPEC.replace("name <> 'left out'", "name <> 'x'")


def expire(customers: Project) -> None:
    before = customers.sql("select count(*) from {table}.snapshots")
    customers.sql(
        "CALL lake.system.expire_snapshots(table => '{bare}', older_than => timestamp'2100-01-01 00:00:00', retain_last => 1)"
    )
    assert customers.sql("select count(*) from {table}.snapshots") < before


@pytest.mark.long
def test_deletes_before_a_rollback_are_remembered_after_snapshots_expired(customers: Project) -> None:
    """Deletes before the rollback are remembered, and those of undone batches are forgotten."""
    rolled_back_over_two_batches(customers)
    expire(customers)
    accept_it(customers)
    send(customers, (1, "late", 4000), (2, "late", 4000), (3, "late", 4000))
    customers.run()
    assert names(customers) == {2: "late", 3: "late"}


@pytest.mark.long
def test_expiry_frees_what_was_before_a_rebuild(customers: Project) -> None:
    """Remembered deletes of a day keep their own snapshots and none of the table's."""
    send(customers, (1, "a", 1000), (2, "a", 1000), (3, "a", 1000))
    customers.run()
    send(customers, (1, None, 5000))
    customers.run()
    old = {snapshot for (snapshot,) in customers.sql("select snapshot_id from {table}.snapshots")}
    customers.template = SPEC.replace("name <> 'left out'", "name <> 'x'")
    run_rebuild(customers)
    for key in (2, 3):
        send(customers, (key, None, 6000))
        customers.run()
    expire(customers)
    assert not old & {snapshot for (snapshot,) in customers.sql("select snapshot_id from {table}.snapshots")}
    send(customers, *((key, "late", 4000) for key in (1, 2, 3)))
    customers.run()
    assert names(customers) == {}


@pytest.mark.long
def test_a_rollback_is_refused_where_it_is_not_known_any_more_what_was_deleted(customers: Project) -> None:
    """Branches of a former version allow expiry of all snapshots but one, so the deletes before a rollback are lost."""
    rolled_back_over_two_batches(customers)
    (day,) = days(customers)
    table = customers.context().lake(customers.pipeline).load(f"{customers.namespace}.trades")
    assert table is not None
    table.manageSnapshots().setMinSnapshotsToKeep(day, 1).commit()
    expire(customers)
    with pytest.raises(RefusedError, match="the pipeline's state from before the rollback is gone") as error:
        accept_it(customers)
    assert error.value.code == "deletes-expired"


@pytest.mark.long
def test_deletes_of_batches_that_are_no_more_are_forgotten(customers: Project) -> None:
    """A wrong spec deleted what it should not have; the table is rolled back, and the messages are read by the corrected one."""
    send(customers, (1, "a", 1000), (2, None, 1500), (3, "a", 1000))
    customers.run()
    good = customers.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    wrong = SPEC.replace("deletes: tombstones", "deletes: {{when: \"name = 'left out'\"}}")
    customers.template = wrong.replace("filter: \"name is null or name <> 'left out'\"", "filter: true")
    send(customers, (1, "left out", 5000))
    customers.run()
    assert names(customers) == {3: "a"}
    customers.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {good})")
    customers.template = SPEC
    accept_it(customers)
    send(customers, (1, "c", 4000), (2, "late", 1000))
    customers.run()
    assert names(customers) == {1: "c", 3: "a"}, "2 was deleted before"


@pytest.mark.long
def test_a_days_deletes_are_joined(customers: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from framework.core.staging import state

    monkeypatch.setattr(state, "_MAX_FILES", 2)  # each file takes a batch
    moment = datetime.now(timezone.utc)
    customers.clock = lambda: moment  # no test is at midnight
    for number in range(3):
        send(customers, (number, None, 5000), (9, None, 5000 + number))
        customers.run()
    (day,) = days(customers)
    table: Any = customers.context().lake(customers.pipeline).load(f"{customers.namespace}.trades")
    assert int(table.snapshot(day).summary().get("total-data-files")) <= 2
    send(customers, *((key, "late", 4000) for key in range(10)))
    customers.run()
    assert names(customers) == dict.fromkeys(range(3, 9), "late")


@pytest.mark.long
@pytest.mark.usefixtures("large_tables")
def test_large_tables_are_read_where_the_keys_are(customers: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists, ranges and bounds of keys, and hashes beside them, all find the same rows."""
    from framework.core.staging import ranges
    from framework.features.writes import upsert

    merges: list[str] = []
    statement = upsert._statement

    def seen(*given: Any) -> list[str]:
        merges.extend(lines := list(statement(*given)))
        return lines

    # Whether hashes are compared shows in no row.
    monkeypatch.setattr(upsert, "_statement", seen)
    for start in (0, 100, 200):
        send(customers, *((key, "old", 1000) for key in range(start, start + 100)))
        customers.run()
    for number, (listed, max_keys) in enumerate([(200, 200_000), (5, 200_000), (5, 3)]):
        for limit, value in (("_LISTED", listed), ("_MOST_KEYS", max_keys)):
            monkeypatch.setattr(ranges, limit, value)  # so many keys as the limits take minutes to load
        send(customers, *((key, f"new {number}", 2000 + number) for key in (*range(8), *range(210, 220), 1000 + number)))
        merges.clear()
        (batch,) = customers.run()
        assert batch.changed and (batch.changed.inserted, batch.changed.updated) == (1, 18)
        assert any("among:" in line for line in merges) == (listed == 5), "hashes are compared where the keys are not listed"
        assert {name for key, name in names(customers).items() if key in (0, 7, 210, 219)} == {f"new {number}"}


@pytest.mark.long
def test_manifests_are_joined(customers: Project) -> None:
    """Manifests stay few, since each batch reads all of them."""
    for number in range(12):
        send(customers, (1, f"a{number}", 1000 + number))
        customers.run()
    assert names(customers) == {1: "a11"}
    assert len(customers.sql(f"SELECT * FROM {customers.table}.manifests")) < 8


def test_a_spec_that_changes(customers: Project) -> None:
    send(customers, (1, "a", 1000), (2, "b", 1000))
    customers.run()
    customers.template = SPEC.replace("  name: string", "  name: string\n  more: int")
    customers.run()
    send(customers, (1, "a2", 2000))
    customers.run()
    assert names(customers) == {1: "a2", 2: "b"}
    customers.template = SPEC.replace("  - filter: \"name is null or name <> 'left out'\"", "  - select: [id, at]")
    send(customers, (1, "gone", 3000))
    customers.run()
    assert names(customers) == {1: None, 2: "b"}, "a column that the spec no longer has is null in a row that is new"
    for write in ("write: upsert, keys: [id, at]", "write: append, keys: [id]"):
        customers.template = SPEC.replace("write: upsert, keys: [id]", write).replace("deletes: tombstones", "deletes: ignore")
        customers.template = customers.template.replace("append, keys: [id]", "append")
        send(customers, (1, "b", 4000))
        with pytest.raises(ColumnsChanged, match="one row per id, the newest by at, the spec says"):
            customers.run()


def test_tombstones_behind_explode(customers: Project) -> None:
    steps = "  - explode: {{column: items, into: item}}\n  - derive: {{at: \"coalesce(at, timestamp'1970-01-01 00:00:00')\"}}"
    customers.template = SPEC.replace("  name: string", "  name: string\n  items: array<string>").replace(
        "  - filter: \"name is null or name <> 'left out'\"", steps
    )
    send(customers, (1, "a", 1000), (2, "a", 1000), (1, None, 5000), items=["x", "y"])
    customers.run()
    assert [(row["id"], row["item"]) for row in customers.rows()] == [(2, "y")], "the last item of a message is its newest row"
    assert customers.rows(bad=True) == []


def test_a_test_in_the_spec(customers: Project) -> None:
    customers.more = """tests:
  - name: a tombstone deletes, and what is older stays away
    given:
      - {id: 1, name: a, at: 2026-01-05T10:00:00Z}
      - {id: 2, name: b, at: 2026-01-05T10:00:00Z}
      - new_batch
      - {message: {key: 1, value: null, at: 2026-01-05T12:00:00Z}}
      - new_batch
      - {id: 1, name: late, at: 2026-01-05T11:00:00Z}
      - {id: 2, name: b2, at: 2026-01-05T11:00:00Z}
    expect: [{id: 2, name: b2}]
"""
    from framework.operations.trials.trial import Trials

    pipeline = customers.pipeline
    (example,) = pipeline.examples
    outcome = Trials(customers.spark, customers.plan).run(pipeline, example)
    assert outcome.error is None
    assert outcome.bad == ()
    assert [row["name"] for row in outcome.rows] == ["b2"]
