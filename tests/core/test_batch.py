"""Batches on a real Kafka, Spark and Iceberg: which rows land, which runs are refused, and other writers meanwhile."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from framework.core.iceberg.lake import TableStore
from tests.support.project import Project, good, wait_for_partitions

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_messages_land_once_with_flags_and_bad_rows(project: Project) -> None:
    project.make_topic()
    project.send_good(1000, bad_every=100)

    (batch,) = project.run()

    assert (batch.read, batch.rows, batch.bad, batch.filtered, batch.waiting) == (1000, 990, 10, 0, 0)
    phases = batch.work.seconds
    assert list(phases) == ["start", "open", "stage", "publish", "sweep"]
    assert batch.seconds == pytest.approx(sum(phases.values()) - phases["start"]), "Spark's start is none of the batch's seconds"
    assert replace(batch, work=replace(batch.work, seconds={"start": 60.0, "stage": 2.0})).seconds == 2.0
    project.assert_exactly_once()
    rows = {row["id"]: row for row in project.rows()}
    assert rows[950]["size"] == "LARGE"
    assert rows[1]["size"] == "NORMAL"
    assert {(row["stage"], row["code"], row["message"], row["value"]) for row in project.rows(bad=True)} == {
        ("value", "undecodable", "the value is not JSON: `o` is not expected at byte 1", b"not json")
    }
    assert project.run() == []
    assert project.branches() == []


def test_a_second_run_goes_on_where_the_first_was(project: Project) -> None:
    project.make_topic()
    project.send_good(10)
    project.run()
    project.send_good(7)

    (batch,) = project.run()

    assert (batch.number, batch.rows) == (2, 7)
    project.assert_exactly_once()


def test_few_messages_are_one_file_and_many_are_one_of_each_partition(project: Project) -> None:
    project.make_topic()
    project.send_good(30)
    project.run()
    assert project.sql("select count(*) from {table}.files") == [(1,)]
    project.send_good(6000)
    project.run()
    assert project.sql("select count(*) from {table}.files") == [(4,)]
    project.assert_exactly_once()


def test_batches_are_cut_to_their_rows(project: Project) -> None:
    project.more = "batch: {rows: 4}"
    project.make_topic()
    project.send_good(10)

    assert [(batch.rows, batch.waiting) for batch in project.run()] == [(4, 6), (4, 2), (2, 0)]
    project.assert_exactly_once()


def test_a_topic_without_messages_makes_an_empty_table(project: Project) -> None:
    project.make_topic()
    assert project.run() == []
    assert project.rows() == []
    assert project.run() == []


def test_partitions_that_are_added_are_read_from_their_beginning(project: Project) -> None:
    from confluent_kafka.admin import NewPartitions

    project.make_topic(2)
    project.send_good(10, partition=0)
    project.run()
    project.admin.create_partitions([NewPartitions(project.topic, 4)])[project.topic].result()
    wait_for_partitions(project.admin, project.topic, 4)
    project.send_good(5, partition=3)

    project.run()

    project.assert_exactly_once()
    assert len(project.rows()) == 15


@pytest.mark.parametrize(("start", "expected"), [("earliest", 7), ("latest", 2)])
def test_a_table_begins_where_start_from_says(project: Project, start: str, expected: int) -> None:
    project.topic_more = f"start_from: {start}"
    project.make_topic()
    project.send_good(5)
    project.run()
    project.send_good(2)
    project.run()
    assert len(project.rows()) == expected


def test_a_table_begins_at_a_time(project: Project) -> None:
    project.make_topic()
    project.send_good(5)
    project.topic_more = f"start_from: {datetime.now(timezone.utc).isoformat(timespec='milliseconds')[:-6]}Z"
    project.send_good(3)
    project.run()
    assert len(project.rows()) == 3


def test_filtered_rows_are_counted_and_the_position_moves_on(project: Project) -> None:
    project.template = project.template.replace("steps:", "steps:\n  - filter: id < 0")
    project.make_topic()
    project.send_good(9, bad_every=9)

    (batch,) = project.run()

    assert (batch.read, batch.rows, batch.bad, batch.filtered) == (9, 0, 1, 8)
    assert project.run() == []


def test_a_step_that_fails_makes_a_bad_row(project: Project) -> None:
    project.template = project.template.replace(
        "steps:", "steps:\n  - derive: {{share: 1000000000000000000 * id, part: 10 / id}}"
    )
    project.make_topic()
    project.send([good(0), good(2), good(10)])

    project.run()

    assert [row["id"] for row in project.rows()] == [2]
    bad_rows = {row["value"]: (row["stage"], row["code"], row["message"]) for row in project.rows(bad=True)}
    assert bad_rows == {
        good(0): (
            "derive",
            "step_failed",
            "`part: 10 / id` cannot be computed for this row: division by zero in 10 / id (id = 0)",
        ),
        good(10): (
            "derive",
            "step_failed",
            "`share: 1000000000000000000 * id` cannot be computed for this row: long overflow in 1000000000000000000 * id (id = 10)",
        ),
    }


def test_aborted_and_open_transactions(project: Project) -> None:
    from confluent_kafka import Producer

    project.make_topic(1)

    def transaction(name: str, start: int, count: int) -> Producer:
        producer = Producer({"bootstrap.servers": project.bootstrap, "transactional.id": f"{project.topic}-{name}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(start, start + count):
            producer.produce(project.topic, good(number))
        producer.flush(30)
        return producer

    transaction("a", 0, 10).commit_transaction(30)
    transaction("b", 100, 5).abort_transaction(30)
    open_producer = transaction("c", 200, 6)

    (batch,) = project.run()
    assert sorted(row["id"] for row in project.rows()) == list(range(10))
    assert batch.read == 10
    assert project.run() == []

    open_producer.commit_transaction(30)
    deadline = time.monotonic() + 30  # Kafka answers before it has written the end of the transaction
    while not project.run():
        assert time.monotonic() < deadline
    assert sorted(row["id"] for row in project.rows()) == [*range(10), *range(200, 206)]
    assert project.run() == []


def test_new_columns_of_the_spec_are_added(project: Project) -> None:
    project.make_topic()
    project.send_good(3)
    project.run()
    project.template = project.template.replace("steps:", "steps:\n  - derive: {{twice: id * 2}}")
    project.send_good(3)
    project.run()
    assert sorted((row["id"], row["twice"]) for row in project.rows() if row["twice"] is not None) == [(3, 6), (4, 8), (5, 10)]
    assert len(project.rows()) == 6


def test_columns_that_the_spec_lost_stay_and_are_null(project: Project) -> None:
    project.template = project.template.replace("steps:", "steps:\n  - derive: {{twice: id * 2}}")
    project.make_topic()
    project.send_good(2)
    project.run()
    project.template = project.template.replace("  - derive: {{twice: id * 2}}\n", "")
    project.send_good(2)
    project.run()
    assert sorted((row["id"], row["twice"]) for row in project.rows()) == [(0, 0), (1, 2), (2, None), (3, None)]


def test_bad_rows_need_no_job_but_in_a_table_that_somebody_changed(project: Project) -> None:
    project.make_topic()
    job_count = project.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs

    def jobs_of_a_batch(bad_every: int) -> int:
        before = int(job_count())
        project.send_good(10, bad_every)
        project.run()
        return int(job_count()) - before

    jobs_of_a_batch(5)
    usual_count = jobs_of_a_batch(0)
    assert jobs_of_a_batch(5) == usual_count
    lake = TableStore(project.spark, project.pipeline.table.catalog)
    table = lake.load(project.pipeline.table.bad_rows)
    assert table is not None
    iceberg = lake.iceberg
    table.replaceSortOrder().asc(iceberg.expressions.Expressions.ref("offset"), iceberg.NullOrder.NULLS_FIRST).commit()
    assert jobs_of_a_batch(5) > usual_count
    table.refresh()
    table.replaceSortOrder().commit()
    assert jobs_of_a_batch(5) == usual_count
    table.refresh()
    table.updateProperties().set("write.format.default", "orc").commit()
    assert jobs_of_a_batch(5) > usual_count
    table.refresh()
    table.updateProperties().remove("write.format.default").commit()
    table.updateSpec().addField("offset").commit()
    assert jobs_of_a_batch(5) > usual_count
    project.assert_exactly_once()


def test_bad_rows_can_be_dropped_and_are_counted(project: Project) -> None:
    project.more = "bad_rows: drop"
    project.make_topic()
    project.send_good(10, bad_every=5)
    (batch,) = project.run()
    assert (batch.rows, batch.bad) == (8, 2)
    assert project.rows(bad=True) == []
