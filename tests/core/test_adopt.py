"""`adopt: true`: a pipeline takes over a table that another program created."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from framework.base.errors import RefusedError, SluiceError
from framework.core.iceberg import table_state
from framework.core.iceberg.updates import commit_transaction
from framework.operations.drop import drop
from framework.operations.observe.next_run import next_runs
from framework.operations.observe.status import status_of
from framework.operations.rebuild.rebuild import check_rebuild
from framework.operations.undo import accept
from tests.support.kill_points import Died
from tests.support.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ADOPTING = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: {{type: bigint, required: true}}, price: double}}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades, adopt: true}}
"""


@pytest.fixture
def adopter(project: Project) -> Project:
    project.template = ADOPTING
    project.make_topic(1)
    project.sql("CREATE NAMESPACE lake." + project.namespace)
    project.sql("CREATE TABLE {table} (id bigint NOT NULL, price double) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    project.sql("INSERT INTO {table} VALUES (-1, 1.0), (-2, 2.0)")
    return project


def ids(project: Project) -> list[int]:
    return sorted(row["id"] for row in project.rows())


def properties(project: Project) -> Any:
    table = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    return table.properties


def test_its_rows_stay_and_new_ones_come_once(adopter: Project) -> None:
    adopter.send_good(3, partition=0)
    (next_run,) = next_runs(adopter.plan, [adopter.pipeline])
    assert "takes over the table, whose rows stay" in [change.what for change in next_run.changes or ()]
    assert status_of(adopter.plan, adopter.pipeline).progress.lag == 3
    assert [batch.rows for batch in adopter.run()] == [3]
    assert ids(adopter) == [-2, -1, 0, 1, 2]
    adopter.send_good(1, partition=0)
    assert [batch.rows for batch in adopter.run()] == [1]
    assert adopter.run() == []
    assert ids(adopter) == [-2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize("point", ["opened", "staged", "published"])
def test_a_run_dies(adopter: Project, point: str) -> None:
    adopter.send_good(3, partition=0)

    def die(reached_point: str) -> None:
        if reached_point == point:
            raise Died

    with suppress(Died):
        adopter.run(die)
    adopter.run()
    assert ids(adopter) == [-2, -1, 0, 1, 2]


@pytest.mark.parametrize("kind", ["Tag", "Branch"])
def test_a_tag_or_branch_of_others_with_the_name_of_ours_is_refused_and_stays(adopter: Project, kind: str) -> None:
    def loaded() -> Any:
        return adopter.context().lake(adopter.pipeline).load(f"{adopter.namespace}.trades")

    table = loaded()
    snapshot = table.currentSnapshot().snapshotId()
    getattr(table.manageSnapshots(), f"create{kind}")("sluice", snapshot).commit()
    adopter.send_good(3, partition=0)
    with pytest.raises(RefusedError, match=r"name-taken: .* has a tag or branch `sluice` of another program"):
        adopter.run()
    assert loaded().refs()["sluice"].snapshotId() == snapshot
    table.manageSnapshots().createTag("theirs", snapshot).commit()
    getattr(table.manageSnapshots(), f"remove{kind}")("sluice").commit()
    assert [batch.rows for batch in adopter.run()] == [3]
    assert loaded().refs()["theirs"].snapshotId() == snapshot


def test_without_adopt_it_is_refused_and_says_what_helps(adopter: Project) -> None:
    adopter.template = adopter.template.replace(", adopt: true", "")
    adopter.send_good(1, partition=0)
    with pytest.raises(SluiceError) as error:
        adopter.run()
    assert error.value.code == "table-not-ours"
    assert "adopt: true" in error.value.hint
    assert ids(adopter) == [-2, -1]


def test_other_columns_are_refused_and_nothing_is_changed(adopter: Project) -> None:
    adopter.template = adopter.template.replace("price: double", "price: string")
    adopter.send_good(1, partition=0)
    before = properties(adopter)
    with pytest.raises(SluiceError) as error:
        adopter.run()
    assert error.value.code == "schema-change"
    assert properties(adopter) == before


def test_a_change_can_be_accepted_before_it_is_taken_over(adopter: Project) -> None:
    adopter.template = adopter.template.replace(
        "{table: {namespace}.trades, ", "{table: {namespace}.trades, schema_changes: {{add: refuse}}, "
    )
    adopter.template = adopter.template.replace("price: double", "price: double, size: int")
    adopter.send_good(1, partition=0)
    with pytest.raises(SluiceError) as error:
        adopter.run()
    assert "`sluice accept trades`" in error.value.hint
    context = adopter.context()
    (pipeline,) = context.plan.pipelines
    refusal = accept.refusal(context, pipeline)
    assert refusal is not None and refusal.code == "schema-change"
    accept.accept(context, pipeline, refusal)
    assert accept.refusal(context, pipeline) is None
    adopter.run()
    assert ids(adopter) == [-2, -1, 0]


def test_a_table_that_never_had_rows_is_taken_over(project: Project) -> None:
    project.template = ADOPTING
    project.make_topic(1)
    project.sql("CREATE NAMESPACE lake." + project.namespace)
    project.sql("CREATE TABLE {table} (id bigint, price double) USING iceberg")
    project.send_good(2, partition=0)
    assert [batch.rows for batch in project.run()] == [2]
    assert project.run() == [] and ids(project) == [0, 1]


def test_a_null_that_the_table_does_not_take_is_named(adopter: Project) -> None:
    adopter.template = adopter.template.replace("{{type: bigint, required: true}}", "bigint")
    adopter.send([b'{"price": 1.0}'], partition=0)
    with pytest.raises(SluiceError) as error:
        adopter.run()
    assert error.value.code == "null-refused" and "takes no null in `id`, and a row has one" in error.value.message
    assert ids(adopter) == [-2, -1]


def test_a_commit_comes_between(adopter: Project) -> None:
    adopter.send_good(1, partition=0)
    foreign_ids = iter([-3, -4])

    def after_another(transaction: Any) -> None:
        with suppress(StopIteration):
            adopter.sql(f"INSERT INTO {{table}} VALUES ({next(foreign_ids)}, 0.0)")
        commit_transaction(transaction)

    adopter.run(commit=after_another)
    assert ids(adopter) == [-4, -3, -2, -1, 0]


def test_what_another_program_wrote_is_not_deleted(adopter: Project) -> None:
    adopter.send_good(1, partition=0)
    adopter.run()
    with pytest.raises(RefusedError, match="was there before"):
        drop.of_pipeline(adopter.pipeline)
    context = adopter.context()
    with pytest.raises(RefusedError) as error:
        check_rebuild(context, context.plan.pipelines[0], False)
    assert error.value.code == "commits-of-others"
    assert ids(adopter) == [-2, -1, 0]
