"""`sluice drop` on a table that the engine made, and the next run; and queries of such a table."""

from __future__ import annotations

import json

import pytest

from framework.core.iceberg import table_state
from framework.core.rules import journal
from tests.support.processes import sluice
from tests.support.project import Project
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.mark.parametrize("data", few([True, False], True))
def test_the_next_run_begins_again(project: Project, data: bool) -> None:
    project.make_topic()
    project.send_good(30, bad_every=10)
    project.run()
    project.send_good(10)
    project.run()
    journal.pause("trades")
    folder = project.lake / "warehouse" / project.namespace

    output = sluice(project, "drop", "trades", "--yes", *(["--data"] if data else []))
    assert f"{project.namespace}.trades, 37 rows, " in output and f"{project.namespace}.trades__bad_rows, 3 rows, " in output
    assert table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier) is None
    data_files = [path for path in folder.rglob("*") if path.is_file() and path.suffix == ".parquet"]
    assert (len(data_files) == 0) is data
    assert not journal.read("trades").paused

    batches = project.run()
    assert [(batch.number, batch.read, batch.bad) for batch in batches] == [(1, 40, 3)]
    project.assert_exactly_once()


def test_the_topic_goes_with_its_messages(project: Project) -> None:
    project.make_topic()
    project.send_good(20)
    project.run()
    output = sluice(project, "drop", "trades", "--data", "--topic", "--yes")
    assert (
        f"topic {project.topic} at {project.bootstrap}: 20 messages" in output and f"{project.topic}: deleted in Kafka" in output
    )
    assert project.topic not in project.admin.list_topics(timeout=10).topics

    project.make_topic()
    project.send_good(5)
    assert [batch.read for batch in project.run()] == [5]
    project.assert_exactly_once()


@pytest.mark.long
def test_deletes_of_format_3_are_not_in_answers(project: Project) -> None:
    project.make_topic()
    project.send_good(3000, bad_every=100)
    project.run()
    project.sql("alter table {table} set tblproperties ('write.delete.mode' = 'merge-on-read')")
    project.sql("delete from {table} where id % 7 = 3")
    table = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None and table.format_version == 3
    main = table.current_snapshot()
    assert main is not None and main.summary is not None
    assert int(main.summary.additional_properties["total-delete-files"]) > 0, "deletion vectors are what this is about"

    question = f"select count(*) as n, sum(id) as ids, min(size) as size from {project.namespace}.trades"
    (row,) = json.loads(sluice(project, "query", question, "--json"))
    ids = table.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()
    assert (row["n"], row["ids"]) == (len(ids), sum(ids)) and len(ids) == 2970 - sum(
        1 for n in range(3000) if n % 100 and n % 7 == 3
    )

    bad = f"select code, count(*) as n from {project.namespace}.trades__bad_rows group by 1"
    assert json.loads(sluice(project, "query", bad, "--json")) == [{"code": "undecodable", "n": 30}]
