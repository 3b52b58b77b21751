"""`sluice rebuild` of tables with keys: their rows, their delete files, and the deletes that they remember."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from framework.base.errors import ColumnsChanged, RefusedError
from framework.core.publish.batch import next_batch
from framework.core.query.one_select import ask
from tests.support.project import Project
from tests.support.rebuilds import nothing_left, run_rebuild
from tests.support.selection import few
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
SPEC = """
topic: trades
kafka_name: {topic}
value: json
event_time: at
columns: {{id: bigint, name: string, gone: boolean, at: {{type: timestamp, format: epoch_millis}}}}
{topic_more}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades, INTO}}
batch: {{rows: 8}}
{more}
"""
BY_ID, BY_NAME = "write: upsert, keys: [id], deletes: {when: gone}", "write: upsert, keys: [name], deletes: {when: gone}"


def with_into(project: Project, into: str) -> None:
    project.template = SPEC.replace("INTO", into.replace("{", "{{").replace("}", "}}"))


def send(project: Project, *rows: tuple[int, str, int], is_deleted: bool = False) -> None:
    project.send(
        (json.dumps({"id": id_, "name": name, "at": seconds * 1000, "gone": is_deleted}).encode() for id_, name, seconds in rows),
        0,
    )


def current_rows(project: Project) -> list[tuple[int, str]]:
    """Returns ids and names, after three engines have counted the same rows."""
    table = project.pipeline.table
    current = "where is_current" if table.write.name == "history" else ""
    rows = project.rows()
    assert len(project.sql("select * from {table}")) == len(rows)
    assert list(ask([table.catalog], f"select count(*) as n from {table.identifier}").rows()) == [[len(rows)]]
    return sorted(project.sql(f"select id, name from {{table}} {current}"))


@pytest.fixture
def keyed(project: Project) -> Project:
    with_into(project, BY_ID)
    project.make_topic(1)
    send(project, *((id_, "ab"[id_ % 2], 10 + id_) for id_ in range(10)))
    send(project, *((id_, "c", 30 + id_) for id_ in range(4)))
    send(project, (8, "a", 50), is_deleted=True)
    send(project, (9, "d", 60), is_deleted=True)
    project.run()
    assert current_rows(project) == [(0, "c"), (1, "c"), (2, "c"), (3, "c"), (4, "a"), (5, "b"), (6, "a"), (7, "b")]
    return project


@pytest.mark.long
@pytest.mark.parametrize("options", few(["", ", format_version: 2", ", partition_by: [name]"], ""))
def test_a_table_gets_other_keys(keyed: Project, options: str) -> None:
    if "2" in options:
        with_into(keyed, BY_ID + options)
        keyed.sql("DROP TABLE {table}")
        keyed.run()
    with_into(keyed, BY_NAME + options)
    send(keyed, (1, "a", 49))
    with pytest.raises(ColumnsChanged, match="one row per id, the newest by at, the spec says one row per name"):
        keyed.run()
    old = "older_than => timestamp'2100-01-01', retain_last => 1"
    keyed.sql(f"CALL lake.system.expire_snapshots(table => '{{bare}}', {old})")
    assert run_rebuild(keyed) is not None
    assert current_rows(keyed) == [(3, "c"), (9, "b")], "d and a were deleted"
    if "2" not in options:  # the dropped table leaves files
        nothing_left(keyed)
    send(keyed, (2, "d", 59), (3, "b", 5))
    keyed.run()
    assert current_rows(keyed) == [(3, "c"), (9, "b")], "what was deleted comes back, or an older row wins"
    send(keyed, (1, "a", 51))
    keyed.run()
    assert current_rows(keyed) == [(1, "a"), (3, "c"), (9, "b")]


@pytest.mark.long
def test_a_key_gets_another_type(keyed: Project) -> None:
    """Deletes that were remembered by the former column are not kept: nothing could be compared with them."""
    keyed.template = keyed.template.replace("id: bigint", "id: 'decimal(20, 0)'")
    assert run_rebuild(keyed) is not None
    assert current_rows(keyed) == [(0, "c"), (1, "c"), (2, "c"), (3, "c"), (4, "a"), (5, "b"), (6, "a"), (7, "b")]
    branches = [name for (name,) in keyed.sql("select name from {table}.refs where name like 'sluice-deletes-%'")]
    remembered = [keyed.sql(f"select id from {{table}}.`branch_{branch}`") for branch in branches]
    assert sorted(id_ for rows in remembered for (id_,) in rows) == [8, 9]
    send(keyed, (8, "late", 45))
    keyed.run()
    assert len(current_rows(keyed)) == 8
    nothing_left(keyed)


@pytest.mark.long
def test_to_a_history_and_back_to_appends(keyed: Project) -> None:
    with_into(keyed, "write: history, keys: [id], deletes: {when: gone}")
    assert run_rebuild(keyed) is not None
    assert current_rows(keyed) == [(0, "c"), (1, "c"), (2, "c"), (3, "c"), (4, "a"), (5, "b"), (6, "a"), (7, "b")]
    assert len(keyed.rows()) == 14
    send(keyed, (8, "late", 45))
    keyed.run()
    assert [str(row["valid_to"]) for row in keyed.rows() if row["name"] == "late"] == ["1970-01-01 00:00:50+00:00"]
    with_into(keyed, "write: append")
    assert run_rebuild(keyed) is not None
    assert len(keyed.rows()) == 17
    assert keyed.sql("select name from {table}.refs where name not in ('main', 'sluice')") == []
    keyed.run()
    with_into(keyed, BY_ID)
    assert run_rebuild(keyed) is not None
    assert len(current_rows(keyed)) == 8
    nothing_left(keyed)


@pytest.mark.long
@pytest.mark.parametrize("point", ["rebuild_checked", "rebuild_published"])
def test_a_rebuild_by_other_keys_goes_on_after_a_kill_at(keyed: Project, point: str) -> None:
    with_into(keyed, BY_NAME)
    with victim(keyed, point, signal.SIGKILL, "rebuild") as process:
        process.wait(PATIENCE)
    run_rebuild(keyed)
    send(keyed, (1, "a", 49), (2, "d", 59))
    keyed.run()
    assert current_rows(keyed) == [(3, "c"), (9, "b")]
    nothing_left(keyed)


@pytest.mark.long
def test_runs_go_on_meanwhile(keyed: Project) -> None:
    """A delete that another run commits during a rebuild is remembered afterwards."""
    before = keyed.context()
    with_into(keyed, BY_NAME)
    pending: list[Any] = [1]

    def hook(point: str) -> None:
        if point == "rebuild_checked" and pending:
            pending.pop()
            send(keyed, (3, "c", 70), is_deleted=True)
            assert next_batch(before, before.plan.pipelines[0]) is not None

    run_rebuild(keyed, hook)
    send(keyed, (3, "c", 69))
    keyed.run()
    assert current_rows(keyed) == [(9, "b")]


def test_deletes_that_kafka_no_longer_has(keyed: Project) -> None:
    with_into(keyed, BY_ID + ", sort_by: [name]")
    end = len(keyed.messages())
    for answer in keyed.admin.delete_records([TopicPartition(keyed.topic, 0, end)]).values():
        answer.result()
    with pytest.raises(RefusedError, match="no longer has them"):
        run_rebuild(keyed)
    assert run_rebuild(keyed, without_lost=True) is not None
    assert current_rows(keyed) == []
    send(keyed, (8, "late", 49), (7, "new", 49))
    keyed.run()
    assert current_rows(keyed) == [(7, "new")]


def test_a_topic_that_kafka_compacts(project: Project) -> None:
    """A history is refused, since compaction may have dropped versions; an upsert needs only the newest row."""
    with_into(project, "write: history, keys: [id]")
    project.make_topic(1, **{"cleanup.policy": "compact"})
    send(project, (1, "a", 1), (1, "b", 2))
    project.run()
    with pytest.raises(RefusedError, match="which Kafka compacts: it may have only"):
        run_rebuild(project)
    with_into(project, "write: upsert, keys: [id]")
    assert run_rebuild(project) is not None
    assert current_rows(project) == [(1, "b")]
