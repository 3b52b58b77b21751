"""Selects over tables, compared with plain Python in batches. For one table, only groups with changed rows are computed again."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from framework.base.errors import BatchError
from framework.base.types import STRING
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.maintain.maintain import maintain
from framework.core.publish.batch import Batch, next_batch
from framework.core.sources import select as select_source
from framework.host.cli.plan import next_run_lines
from framework.operations.observe.next_run import next_runs
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Column, Message, Pipeline, Plan, SelectSource
from tests.support.accumulations import Order, orders
from tests.support.kill_points import POINTS, Died
from tests.support.memory_messages import append
from tests.support.project import Project, plan_for
from tests.support.selection import EXAMPLES, few, searched
from tests.support.victims import PATIENCE, victim

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: orders
value: json
key: {{format: long, as: id}}
columns: {{country: string, amount: int}}
---
pipeline: newest
from: {{topic: orders}}
into: {{table: {namespace}.newest, write: upsert, keys: [id], deletes: tombstones, format_version: {version}, partition_by: {partitions}}}
maintain: {{keep_at_least: 1}}
---
pipeline: totals
from: {{tables: [{namespace}.newest]}}
steps:
  - sql: |
      with few as (select * from {namespace}.newest where amount <> 13)
      select country, sum(amount) as total, count(*) as orders, max(amount) as high from few group by country having count(*) < 4
into: {{table: {namespace}.totals, write: replace, format_version: {version}, partition_by: {partitions}}}
---
pipeline: ranked
from: {{tables: [{namespace}.newest]}}
steps:
  - sql: |
      select id, country, amount, row_number() over (partition by country order by amount, id) as place,
             sum(amount) over (partition by country) as total
      from {namespace}.newest where amount <> 13
into: {{table: {namespace}.ranked, write: replace}}
---
pipeline: again
from: {{tables: [{namespace}.totals]}}
steps: [{{sql: "select country, max(total) + 1 as more from {namespace}.totals group by country"}}]
into: {{table: {namespace}.again, write: replace}}
---
pipeline: both
from: {{tables: [{namespace}.newest, {namespace}.totals]}}
steps: [{{sql: "select n.id, t.total from {namespace}.newest n join {namespace}.totals t on t.country <=> n.country"}}]
into: {{table: {namespace}.both, write: replace}}
"""
COMPARED = {
    "totals": ("country", "total", "orders", "high"),
    "ranked": ("id", "amount", "place", "total"),
    "both": ("id", "total"),
    "again": ("country", "more"),
}
READ = st.sampled_from(["", "reads", "reads", "dies", "maintains"])
POINT = st.sampled_from([point for point in POINTS if "bad" not in point])


class Tables:
    """Orders by their ids, and the tables that are computed from them."""

    def __init__(self, lake: Path, spark: Any, version: int = 3, partitions: str = "[]") -> None:
        self.spark = spark
        namespace = f"n{uuid.uuid4().hex[:10]}"
        text = SPEC.format(namespace=namespace, version=version, partitions=partitions)
        self.plan: Plan = plan_for(lake, "127.0.0.1:1", text)
        self.sent: list[Message] = []
        self.rows: dict[int, tuple[str | None, int]] = {}
        self.context = Context(self.plan, spark=lambda: spark)

    def pipeline(self, name: str) -> Pipeline:
        pipeline = self.plan.pipeline(name)
        assert pipeline is not None
        return pipeline

    def lands(self, batch: Sequence[Order]) -> None:
        number, moment = (self.sent[-1].batch if self.sent else 0) + 1, datetime(2026, 1, 1, tzinfo=timezone.utc)
        for id_, country, amount in batch:
            text = None if amount is None else json.dumps({"country": country, "amount": amount}).encode()
            append(self.sent, "orders", text, at=moment, key=id_.to_bytes(8, "big"), batch=number)
            self.rows.pop(id_, None)
            if amount is not None:
                self.rows[id_] = (country, amount)
        source = GivenMessages(tuple(self.sent), number, 1)
        next_batch(Context(self.plan, spark=lambda: self.spark, source=source), self.pipeline("newest"))

    def reads(self, name: str, context: Context | None = None) -> Batch | None:
        return next_batch(context or self.context, self.pipeline(name))

    def dies(self, name: str, point: str) -> None:
        def die(reached: str) -> None:
            if reached == point:
                raise Died

        with suppress(Died):
            self.reads(name, Context(self.plan, spark=lambda: self.spark, reached=die))

    def table_rows(self, name: str) -> list[dict[str, Any]]:
        table = self.pipeline(name).table
        loaded = table_state.table(table.catalog, table.identifier)
        assert loaded is not None
        rows: list[dict[str, Any]] = loaded.scan().to_arrow().to_pylist()
        return rows

    def agree(self, *names: str) -> None:
        """Compares the tables of these names, or all, with plain Python."""
        for name in names or ("totals", "ranked", "both", "again"):
            self.reads(name)
            assert self.reads(name) is None
            assert sorted(map(repr, self.rows_of(name))) == sorted(map(repr, self.expected(name)))

    def rows_of(self, name: str) -> list[tuple[Any, ...]]:
        columns = COMPARED[name]
        return [tuple(row[column] for column in columns) for row in self.table_rows(name)]

    def expected(self, name: str) -> list[tuple[Any, ...]]:
        groups: dict[str | None, list[tuple[int, int]]] = defaultdict(list)
        for id_, (country, amount) in self.rows.items():
            if amount != 13:
                groups[country].append((amount, id_))
        totals = {country: sum(a for a, _ in rows) for country, rows in groups.items() if len(rows) < 4}
        if name == "totals":
            return [(country, total, len(groups[country]), max(groups[country])[0]) for country, total in totals.items()]
        if name == "again":
            return [(country, total + 1) for country, total in totals.items()]
        if name == "both":
            return [(id_, totals[country]) for id_, (country, _) in self.rows.items() if country in totals]
        return [
            (id_, amount, place, sum(a for a, _ in rows))
            for rows in groups.values()
            for place, (amount, id_) in enumerate(sorted(rows), 1)
        ]


def agree_after(batches: Sequence[tuple[Sequence[Order], str, str]], tables: Tables) -> None:
    for batch, event, point in batches:
        tables.lands(batch)
        for name in {"": (), "reads": ("totals", "ranked", "again")}.get(event, ("totals", "ranked")):
            if event == "dies":
                tables.dies(name, point)
            elif event == "maintains":
                list(maintain(tables.context, tables.pipeline("newest")))
            else:
                tables.reads(name)
    tables.agree()


@pytest.mark.parametrize(
    ("version", "partitions", "examples"),
    few(
        [(3, "[country]", 1), *((version, partition, EXAMPLES) for version in (3, 2) for partition in ("[]", "[country]"))],
        (3, "[country]", 1),
    ),
)
def test_as_the_model_says(version: int, partitions: str, examples: int, lake: Path, spark: Any) -> None:
    @searched(examples)
    @given(st.lists(st.tuples(st.lists(orders, min_size=1, max_size=6), READ, POINT), min_size=2, max_size=6))
    def same(batches: Sequence[tuple[list[Order], str, str]]) -> None:
        agree_after(batches, Tables(lake, spark, version, partitions))

    same()


@pytest.mark.long
def test_rows_that_came_and_were_compacted_again(lake: Path, spark: Any) -> None:
    """A case found by hypothesis: no group differs, though there are new commits."""
    batches: list[tuple[list[Order], str, str]] = [
        ([(5, None, 1), (5, "DE", None)], "reads", ""),
        ([(3, None, None), (3, None, None)], "dies", "opened"),
        ([(5, None, 1), (5, "DE", None)], "reads", ""),
        ([(5, None, 40), (3, "DE", 1)], "maintains", ""),
        ([(4, None, 2), (3, "FR", None), (3, None, None), (4, "FR", None), (5, "DE", None), (3, "FR", None)], "reads", ""),
        ([(1, "FR", 1), (5, "FR", None), (1, None, 13), (2, None, 40)], "reads", ""),
    ]
    agree_after(batches, Tables(lake, spark, 2, "[country]"))


@pytest.mark.long
def test_rows_that_were_changed_and_then_deleted(lake: Path, spark: Any) -> None:
    """A case found by hypothesis: both changes come between two reads."""
    batches: list[tuple[list[Order], str, str]] = [
        ([(3, "DE", 2), (4, None, 40), (2, "FR", None)], "reads", ""),
        ([(4, None, 40), (3, "DE", 13), (2, "FR", 13), (3, "DE", 1)], "dies", "ranged"),
        ([(1, "FR", 2), (3, None, None), (2, None, None), (2, "DE", None), (4, "FR", None), (2, "FR", None)], "", ""),
    ]
    agree_after(batches, Tables(lake, spark, 3, "[country]"))


def test_only_groups_that_changed_are_computed(lake: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = Tables(lake, spark)
    tables.lands([(1, "DE", 1), (2, "FR", 2), (3, None, 3), (4, "IT", 4)])
    first_batch = tables.reads("ranked")
    assert first_batch and first_batch.rows == 4
    tables.lands([(1, "FR", 1), (3, None, 5)])
    (planned,) = next_runs(tables.plan, [tables.pipeline("ranked")])
    source = tables.pipeline("newest").table.identifier
    assert (
        list(next_run_lines(planned))[-1]
        == f"computes again the groups by country in which {source} has changed, by up to 4 rows"
    )

    second_batch = tables.reads("ranked")
    assert second_batch and second_batch.rows == 3  # two of FR and one without a country; DE is gone
    tables.agree("ranked")
    tables.lands([(4, "IT", None)])
    monkeypatch.setattr(select_source, "_MOST_GROUPS", 0)  # 100000 changed groups take minutes
    whole = tables.reads("ranked")
    assert whole and whole.rows == 3
    tables.agree("ranked")


@pytest.mark.long
def test_only_the_partition_of_rows_without_a_value_changes(lake: Path, spark: Any) -> None:
    tables = Tables(lake, spark, partitions="[country]")
    tables.lands([(1, "DE", 1), (2, None, 2)])
    tables.agree("totals")
    tables.lands([(2, None, 5)])

    assert (batch := tables.reads("totals")) and batch.rows == 1
    tables.agree("totals")
    tables.lands([(2, None, None)])
    assert (batch := tables.reads("totals")) and batch.rows == 0
    tables.agree("totals")


@pytest.mark.long
def test_a_compaction_is_no_news(lake: Path, spark: Any) -> None:
    tables = Tables(lake, spark)
    for id_ in range(1, 4):
        tables.lands([(id_, "DE", id_)])
    tables.agree("totals", "ranked")
    pipeline = tables.pipeline("newest")
    tables.spark.sql(
        f"CALL `{pipeline.table.catalog.name}`.system.rewrite_data_files(table => '{pipeline.table.identifier}', "
        "options => map('rewrite-all', 'true'))"
    )

    assert [tables.reads(name) for name in ("totals", "ranked")] == [None, None]


@pytest.mark.long
def test_after_a_rollback_and_another_spec_all_is_computed(lake: Path, spark: Any) -> None:
    tables = Tables(lake, spark)
    tables.lands([(1, "DE", 1), (2, "FR", 2)])
    tables.agree("ranked")
    ranked = tables.pipeline("ranked")
    tables.lands([(1, "DE", 5)])
    changed = replace(ranked, spec="another")
    batch = next_batch(tables.context, changed)
    assert batch and batch.rows == 2
    tables.agree("ranked")
    table = metadata.read(ranked.table.catalog, ranked.table.identifier)
    assert table is not None and table.main is not None
    first_snapshot = min(table.snapshots.values(), key=lambda snapshot: snapshot["sequence-number"])
    tables.spark.sql(
        f"CALL `{ranked.table.catalog.name}`.system.set_current_snapshot('{ranked.table.identifier}', {first_snapshot['snapshot-id']})"
    )

    back = tables.reads("ranked")
    assert back and back.rows == 2
    tables.agree("ranked")


def test_a_column_that_was_added_since_is_null(lake: Path, spark: Any) -> None:
    tables = Tables(lake, spark)
    tables.lands([(1, "DE", 1)])
    newest_orders, ranked = tables.pipeline("newest"), tables.pipeline("ranked")
    tables.spark.sql(f"ALTER TABLE `{newest_orders.table.catalog.name}`.{newest_orders.table.identifier} ADD COLUMN later string")
    assert isinstance(ranked.source, SelectSource)
    later = ranked.source.mapped(table=lambda table: replace(table, columns=(*table.columns, Column("later", STRING))))

    batch = next_batch(tables.context, replace(ranked, source=later))

    assert batch and batch.rows == 1


def test_an_error_of_the_select_publishes_nothing(lake: Path, spark: Any) -> None:
    spec = """
topic: orders
value: json
columns: {{id: int}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: {namespace}.orders}}
---
pipeline: shares
from: {{tables: [{namespace}.orders]}}
steps: [{{sql: "select id, 1 / sum(id) as share from {namespace}.orders group by id"}}]
into: {{table: {namespace}.shares, write: replace}}
"""
    plan = plan_for(lake, "127.0.0.1:1", spec.format(namespace=f"n{uuid.uuid4().hex[:10]}"))
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    messages = tuple(
        Message(batch=1, topic="orders", partition=0, offset=offset, timestamp=moment, value=json.dumps({"id": offset}).encode())
        for offset in range(2)
    )
    source, shares = plan.pipeline("orders"), plan.pipeline("shares")
    assert source and shares
    next_batch(Context(plan, spark=lambda: spark, source=GivenMessages(messages, 1, 1)), source)

    with pytest.raises(BatchError) as error:
        next_batch(Context(plan, spark=lambda: spark), shares)

    assert error.value.code == "select-failed"
    assert "zero" in error.value.message.lower()


KILLED = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, price: double}}
---
pipeline: trades
from: {{topic: trades}}
steps: [{{derive: {{parity: id % 3}}}}]
into: {{table: {namespace}.trades}}
---
pipeline: totals
from: {{tables: [{namespace}.trades]}}
steps: [{{sql: "select parity, sum(id) as total, count(*) as trades from {namespace}.trades group by parity"}}]
into: {{table: {namespace}.totals, write: replace}}
"""


@pytest.mark.long
@pytest.mark.kafka
def test_groups_are_right_after_kills_at_any_point(project: Project) -> None:
    """Kills a run at each point, then stops runs while others continue."""
    project.template = KILLED
    project.make_topic(3)
    project.send_good(30)
    plan = plan_for(project.lake, project.bootstrap, KILLED.format(topic=project.topic, namespace=project.namespace))
    context = Context(plan, spark=lambda: project.spark)
    trades, totals = plan.pipeline("trades"), plan.pipeline("totals")
    assert trades and totals

    def run() -> None:
        while next_batch(context, trades) or next_batch(context, totals):
            pass

    run()
    for point in POINTS:
        if point not in ("staged_state", "staged_bad_rows"):
            project.send_good(1)
            next_batch(context, trades)
            with victim(project, point, signal.SIGKILL, "run:totals") as process:
                process.wait(PATIENCE)
    for point in ("merged", "checked", "published"):
        project.send_good(1)
        next_batch(context, trades)
        with victim(project, point, signal.SIGSTOP, "run:totals") as process:
            project.send_good(1)
            run()
            os.kill(process.pid, signal.SIGCONT)
            process.communicate(timeout=PATIENCE)
    run()
    total = next(project.numbers)
    table = table_state.table(totals.table.catalog, totals.table.identifier)
    assert table is not None
    by_key = {row["parity"]: (row["total"], row["trades"]) for row in table.scan().to_arrow().to_pylist()}
    assert by_key == {
        key: (sum(numbers), len(numbers)) for key in range(3) if (numbers := [n for n in range(total) if n % 3 == key])
    }
