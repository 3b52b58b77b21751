"""Tables with many commits whose snapshots expire early, while other pipelines read them, rows wait, and people go back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from framework.base.errors import RefusedError
from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import main_line, own_batch
from framework.core.maintain.maintain import maintain
from framework.core.maintain.readers import needs
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.core.run.run import batches
from framework.operations.undo import accept, rollback
from framework.plan import Pipeline
from tests.support.project import Project
from tests.support.rollbacks import QUOTES, rolled_back, send

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
READERS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, n: bigint}}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades, write: upsert, keys: [id]}}
maintain: {{keep_at_least: 1}}
---
pipeline: copied
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.copied, write: upsert, keys: [id]}}
---
pipeline: chosen
from: {{tables: ["{namespace}.trades"]}}
steps: [sql: "select id, n from {namespace}.trades where n > 1"]
into: {{table: {namespace}.chosen, write: replace}}
"""


def tended(project: Project, names: tuple[str, ...], minutes: float) -> None:
    """Maintains tables so many minutes later."""
    project.clock = lambda: datetime.now(timezone.utc) + timedelta(minutes=minutes)
    context = project.context()
    for name in names:
        list(maintain(context, found(context.plan.pipelines, name)))
    project.clock = lambda: datetime.now(timezone.utc)


def found(pipelines: tuple[Pipeline, ...], name: str) -> Pipeline:
    return next(pipeline for pipeline in pipelines if pipeline.name == name)


def run(project: Project, *names: str) -> None:
    context = project.context()
    for name in names:
        list(batches(context, found(context.plan.pipelines, name)))


def test_pipelines_read_each_change_of_a_table_whose_snapshots_expire_early(project: Project) -> None:
    project.template = READERS
    project.make_topic(1)
    newest: dict[int, int] = {}
    for number in range(9):
        values = dict.fromkeys(range(number, number + 5), number % 4)
        newest |= values
        project.send([json.dumps({"id": key, "n": value}).encode() for key, value in values.items()], 0)
        run(project, "trades")
        if number % 3 == 2:
            run(project, "copied", "chosen")
        if number % 2:
            tended(project, ("trades", "copied", "chosen"), 2)
    run(project, "copied", "chosen")
    for name in ("trades", "copied"):
        assert sorted(project.sql(f"select id, n from lake.{project.namespace}.{name}")) == sorted(newest.items())
    chosen = {id_: n for id_, n in newest.items() if n > 1}
    assert sorted(project.sql(f"select id, n from lake.{project.namespace}.chosen")) == sorted(chosen.items())
    table = metadata.read(project.pipeline.table.catalog, f"{project.namespace}.trades")
    assert table is not None and len(list(main_line(table))) < 10
    target = next(id_ for id_ in snapshots_of(project, "copied")[1:])
    meaning = rollback.judged(project.context(), found(project.plan.pipelines, "copied"), target)
    assert meaning.undone == 1
    tended(project, ("copied",), 1)
    context = project.context()
    copied = found(context.plan.pipelines, "copied")
    accept.move(context, copied, rollback.judged(context, copied, target).moves)
    run(project, "copied")
    assert sorted(project.sql(f"select id, n from lake.{project.namespace}.copied")) == sorted(newest.items())


def snapshots_of(project: Project, name: str) -> list[int]:
    table = metadata.read(project.pipeline.table.catalog, f"{project.namespace}.{name}")
    assert table is not None
    return [snapshot["snapshot-id"] for snapshot in main_line(table)]


def copy_three_rows(project: Project) -> None:
    """Each row is a commit of the table and of its copy."""
    project.template = READERS
    project.make_topic(1)
    for number in range(3):
        project.send([json.dumps({"id": number, "n": number}).encode()], 0)
        run(project, "trades", "copied")


def test_a_rebuild_under_way_is_a_reader_too(project: Project) -> None:
    copy_three_rows(project)
    source, copied = (
        metadata.read(project.pipeline.table.catalog, f"{project.namespace}.{name}") for name in ("trades", "copied")
    )
    assert source is not None and copied is not None
    trades = found(project.plan.pipelines, "trades")
    position = Position.read(copied.properties[protocol.POSITION])
    first = position.ends[f"{project.namespace}.trades/0"]
    assert needs(source, trades, datetime.now(timezone.utc)).unread == -1  # `chosen` has read nothing
    run(project, "chosen")
    assert needs(source, trades, datetime.now(timezone.utc)).unread == first
    second = found(project.plan.pipelines, "copied").table.second.identifier
    earlier_position = replace(position, ends={f"{project.namespace}.trades/0": first - 1}).text()
    project.spark.sql(
        f"create table lake.{second} (id bigint) using iceberg tblproperties"
        f" ('{protocol.POSITION}' = '{earlier_position}', '{protocol.OF}' = '{copied.uuid}')"
    )
    of_rebuild = needs(source, trades, datetime.now(timezone.utc))
    assert of_rebuild.unread == first - 1
    assert needs(source, trades, datetime.now(timezone.utc) + timedelta(days=2)).unread == first  # given up
    assert {id_ for id_, entry in source.snapshots.items() if entry["sequence-number"] == first - 1} <= of_rebuild.snapshots


def test_a_table_cannot_go_back_to_where_what_it_reads_has_expired(project: Project) -> None:
    copy_three_rows(project)
    (newest, *_, oldest) = snapshots_of(project, "copied")[:-1]
    read_then = snapshots_of(project, "trades")[2]
    project.sql(f"call lake.system.expire_snapshots(table => '{project.namespace}.trades', snapshot_ids => array({read_then}))")
    with pytest.raises(RefusedError) as refused:
        rollback.judged(project.context(), found(project.plan.pipelines, "copied"), oldest)
    assert refused.value.code == "cannot-roll-back" and "has expired" in refused.value.message
    assert rollback.judged(project.context(), found(project.plan.pipelines, "copied"), newest).undone == 0


def test_each_batch_that_is_left_can_be_gone_back_to(project: Project) -> None:
    """Also the state of a table that remembers deleted keys."""
    project.template, project.more = QUOTES + "maintain: {{keep_at_least: 1}}\n", "symbol"
    project.make_topic(1)
    for number in range(12):
        send(project, {"A": number, "B": None if number % 2 else number, f"C{number}": number})
        project.run()
    tended(project, ("trades",), 0.6)
    table = metadata.read(project.pipeline.table.catalog, f"{project.namespace}.trades")
    assert table is not None
    left = [(snapshot["snapshot-id"], batch) for snapshot in main_line(table) if (batch := own_batch(snapshot))]
    assert 2 <= len(left) < 12
    for target, _ in left[1:]:
        rolled_back(project, target)
        project.run()
        prices = {row["symbol"]: row["price"] for row in project.rows()}
        assert prices == {"A": 11, **{f"C{number}": number for number in range(12)}}
