"""Rows from several topics, and from a table."""

from __future__ import annotations

from typing import Any

import pytest

from framework.base.errors import BatchError, RefusedError
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.iceberg.updates import CommitCall, commit_transaction
from framework.core.publish.batch import Batch
from framework.core.run import run as loop
from framework.core.spark.java_errors import CommitRefused
from tests.support.project import Project, good, plan_for
from tests.support.runs import errors

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOPIC = """
topic: {name}
kafka_name: {kafka}
value: json
start_from: {start}
columns: {{id: {{type: bigint, required: true}}, price: double}}
"""
MERGED = """
---
pipeline: merged
from: {{topics: [{names}]}}
steps: [{{derive: {{came_from: _kafka_topic}}}}]
into: {{table: {namespace}.trades}}
"""
REPLACED = """
---
pipeline: large
from: {{table: {namespace}.trades}}
steps:
  - filter: price > 1
  - derive: {{ratio: 100 / (price - 7)}}
into: {{table: {namespace}.large, write: replace}}
expect: [{{column: id, not_null: true}}]
"""


class Both:
    """Two topics, `a` and `b`, each of a project of its own."""

    def __init__(self, a: Project, b: Project) -> None:
        self.a, self.b = a, b
        self.start = "earliest"

    def run(self, *names: str, commit: CommitCall = commit_transaction) -> list[Batch]:
        topics = [TOPIC.format(name=name, kafka=getattr(self, name).topic, start=self.start) for name in names]
        specs = "---".join(topics) + MERGED.format(names=", ".join(names), namespace=self.a.namespace)
        context = Context(plan_for(self.a.lake, self.a.bootstrap, specs), spark=lambda: self.a.spark, commit=commit)
        return list(loop.batches(context, context.plan.pipelines[0]))

    def landed(self) -> dict[str, int]:
        rows = self.a.sql(
            "select _kafka_topic, count(*), count(distinct _kafka_partition, _kafka_offset) from {table} group by 1"
        )
        assert all(every == distinct for _, every, distinct in rows)
        return {{self.a.topic: "a", self.b.topic: "b"}[topic]: count for topic, count, _ in rows}


@pytest.fixture
def two_topics(project: Project) -> Both:
    other_project = Project(project.folder, project.lake, project.bootstrap, project.spark)
    project.make_topic()
    other_project.make_topic(partitions=5)
    return Both(project, other_project)


def test_several_topics_land_in_one_table(two_topics: Both) -> None:
    two_topics.a.send_good(30, bad_every=10)
    two_topics.b.send_good(20)

    (batch,) = two_topics.run("a", "b")

    assert (batch.read, batch.rows, batch.bad) == (50, 47, 3)
    assert two_topics.landed() == {"a": 27, "b": 20}
    assert {row["topic"] for row in two_topics.a.rows(bad=True)} == {two_topics.a.topic}
    assert two_topics.run("a", "b") == []


def test_a_topic_joins_and_none_leaves(two_topics: Both) -> None:
    two_topics.a.send_good(10)
    two_topics.b.send_good(10)
    two_topics.run("a")
    two_topics.start = "latest"

    assert two_topics.run("a", "b") == []
    two_topics.b.send_good(4)
    two_topics.a.send_good(1)
    (batch,) = two_topics.run("a", "b")

    assert (batch.read, two_topics.landed()) == (5, {"a": 11, "b": 4})
    with pytest.raises(RefusedError, match="belongs to the pipeline merged from"):
        two_topics.run("b")


def test_a_catalog_that_lets_no_topic_join_is_told_and_ends_the_run(two_topics: Both) -> None:
    two_topics.run("a")
    commits: list[Any] = []

    def commit(transaction: Any) -> None:
        commits.append(transaction)
        raise CommitRefused("this catalog is read only")

    with pytest.raises(BatchError, match=r"did not accept a batch of .* in 5 tries: this catalog is read only") as error:
        two_topics.run("a", "b", commit=commit)
    assert (error.value.code, len(commits)) == ("table-busy", 5)
    two_topics.b.send_good(3)
    assert [batch.read for batch in two_topics.run("a", "b")] == [3]


class Large:
    """A table that is computed from the project's table."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.template += REPLACED

    def run(self, price: str = "1", *names: str) -> dict[str, list[Batch]]:
        self.project.template = self.project.template.replace("filter: price > 1", f"filter: price > {price}")
        context = self.project.context()
        batches: dict[str, list[Batch]] = {"trades": [], "large": []}
        for error in errors(context, context.plan.pipelines, lambda batch: batches[batch.pipeline].append(batch)):
            raise error
        return batches

    def rows(self) -> list[int]:
        table = table_state.table(self.project.pipeline.table.catalog, f"{self.project.namespace}.large")
        return [] if table is None else sorted(row["id"] for row in table.scan().to_arrow().to_pylist())

    def bad(self) -> list[bytes]:
        table = table_state.table(self.project.pipeline.table.catalog, f"{self.project.namespace}.large__bad_rows")
        return [] if table is None else [row["value"] for row in table.scan().to_arrow().to_pylist()]


def test_a_table_is_computed_anew_from_another(project: Project) -> None:
    large = Large(project)
    project.make_topic()
    project.send_good(10)

    batches = large.run()

    (batch,) = batches["large"]
    assert (batch.read, batch.rows, batch.filtered, batch.bad) == (10, 7, 2, 1)
    assert large.rows() == [2, 3, 4, 5, 6, 8, 9]
    (bad,) = large.bad()
    assert b'"id":7,' in bad
    assert large.run() == {"trades": [], "large": []}

    project.send_good(10)
    (batch,) = large.run()["large"]
    assert (batch.read, batch.rows) == (20, 17)
    assert len(large.rows()) == 17
    assert len(large.bad()) == 1  # the bad rows of the run before are gone

    assert len(large.run("15")["large"]) == 1  # another spec
    assert large.rows() == [16, 17, 18, 19]
    assert large.bad() == []
    assert project.branches() == []


def test_a_table_without_rows_empties_what_is_computed_of_it(project: Project) -> None:
    large = Large(project)
    project.make_topic()
    project.send_good(5)
    large.run()
    project.sql("delete from {table} where true")

    (batch,) = large.run()["large"]

    assert (batch.read, large.rows()) == (0, [])


def test_a_table_that_is_not_there_yet_is_named(project: Project) -> None:
    large = Large(project)
    context = large.project.context()
    with pytest.raises(BatchError, match=r"run `trades`, which writes it, first|does not exist yet"):
        list(loop.batches(context, context.plan.pipelines[0]))


def test_what_was_rolled_back_is_computed_again(project: Project) -> None:
    large = Large(project)
    project.make_topic()
    project.send_good(5)
    large.run()
    name = f"lake.{project.namespace}.large"
    first_snapshot = project.spark.sql(f"select snapshot_id from {name}.snapshots order by committed_at").collect()[0][0]
    project.spark.sql(f"call lake.system.rollback_to_snapshot('{name.removeprefix('lake.')}', {first_snapshot})")
    assert large.rows() == []

    assert len(large.run()["large"]) == 1
    assert large.rows() == [2, 3, 4]
    assert good(0)
