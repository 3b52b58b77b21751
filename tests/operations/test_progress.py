"""The progress of pipelines, against tables that Spark wrote and topics of a real Kafka."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from framework.core.iceberg import table_state
from framework.operations.observe.progress import newest_event, read_progress
from framework.plan import Cluster, Plan, Security
from tests.support.project import Project

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def elsewhere(plan: Plan) -> Plan:
    """The plan, with a Kafka that nobody runs."""
    return replace(
        plan,
        clusters=tuple(Cluster(name=cluster.name, bootstrap="127.0.0.1:1", security=Security()) for cluster in plan.clusters),
    )


def test_progress_counts_rows_lag_and_files(project: Project) -> None:
    project.make_topic()
    project.send_good(60, bad_every=6)
    unborn = read_progress(project.plan)[0]
    assert (unborn.rows, unborn.bad_rows, unborn.lag, unborn.position, unborn.committed, unborn.files) == (
        0,
        0,
        60,
        None,
        None,
        0,
    )
    assert newest_event(project.pipeline) is None
    project.topic_more = "start_from: latest"
    assert read_progress(project.plan)[0].lag == 0
    project.topic_more = f"start_from: {datetime.now(timezone.utc) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    assert read_progress(project.plan)[0].lag == 60
    project.topic_more = ""

    project.run()
    project.send_good(9)
    progress = read_progress(project.plan)[0]
    assert (progress.pipeline, progress.rows, progress.bad_rows, progress.lag, progress.trouble) == ("trades", 50, 10, 9, None)
    assert progress.position is not None
    assert sum(progress.position.ends.values()) == 60
    assert progress.committed is not None
    assert abs((datetime.now(timezone.utc) - progress.committed).total_seconds()) < 60
    assert progress.files == len(project.files())
    assert progress.bytes > 1000
    table = table_state.table(project.pipeline.table.catalog, progress.table)
    assert table is not None
    times = table.scan(selected_fields=("_kafka_timestamp",)).to_arrow().column(0).to_pylist()
    assert newest_event(project.pipeline) == max(times)

    away = read_progress(elsewhere(project.plan))[0]
    assert (away.rows, away.lag, away.trouble and away.trouble.code) == (50, None, "kafka-unreachable")


def test_a_refusal_is_the_trouble(project: Project) -> None:
    project.make_topic()
    project.send_good(30)
    project.run()
    project.delete_topic()
    project.make_topic()
    progress = read_progress(project.plan)[0]
    assert (progress.rows, progress.lag, progress.trouble and progress.trouble.code) == (30, None, "topic-recreated")


class Killed(BaseException):
    """Stands for a death at a kill point."""


def test_bad_rows_that_still_wait_are_counted(project: Project) -> None:
    def die(point: str) -> None:
        if point == "published":
            raise Killed

    project.make_topic()
    project.send_good(30, bad_every=3)
    with pytest.raises(Killed):
        project.run(at=die)
    assert (read_progress(project.plan)[0].rows, read_progress(project.plan)[0].bad_rows) == (20, 10)
    project.run()
    assert (read_progress(project.plan)[0].rows, read_progress(project.plan)[0].bad_rows) == (20, 10)
