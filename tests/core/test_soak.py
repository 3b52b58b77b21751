"""Four hours of upserts with maintenance between them: the table equals a model, and stays small."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from framework.core.iceberg import metadata
from framework.core.publish.batch import Batch
from framework.core.run.events import BatchDone, Failed, Maintained
from framework.core.run.run import run
from tests.support.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]
BATCHES = 60
KEYS = 5_000
OF_A_BATCH = 400
UPSERTS = """
topic: trades
kafka_name: {topic}
key: {{format: long, as: id}}
value: json
columns: {{price: bigint}}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades, write: upsert, keys: [id], deletes: tombstones}}
maintain: {{compact_every: 10m, keep_snapshots_for: 3h, keep_at_least: 5, thin: {{all_for: 10m, then_every: 10m, for: 1h}}}}
"""


def _send(project: Project, chance: random.Random, model: dict[int, int]) -> None:
    messages: list[dict[str, Any]] = []
    for _ in range(OF_A_BATCH):
        id_, price = chance.randrange(KEYS), chance.randrange(10**6)
        is_delete = chance.random() < 0.1
        is_bad = not is_delete and chance.random() < 0.01
        value = None if is_delete else b"{" if is_bad else json.dumps({"price": price}).encode()
        messages.append({"value": value, "key": id_.to_bytes(8, "big", signed=True), "partition": 0})
        if is_delete:
            model.pop(id_, None)
        elif not is_bad:
            model[id_] = price
    project.produce(messages)


def test_four_hours_of_upserts_with_maintenance(project: Project) -> None:
    """Each batch moves the clock by four minutes, so that snapshots grow old."""
    project.template = UPSERTS
    project.make_topic(1)
    chance, model = random.Random(17), dict[int, int]()
    clock, texts, batches = [datetime.now(timezone.utc)], list[str](), list[Batch]()
    project.clock = lambda: clock[0]
    context = project.context()
    (pipeline,) = context.plan.pipelines
    peaks = {"files": 0, "snapshots": 0, "metadata": 0}
    for _ in range(BATCHES):
        _send(project, chance, model)
        events = list(run(context, pipeline))
        assert not [event for event in events if isinstance(event, Failed)]
        batches += [event.batch for event in events if isinstance(event, BatchDone)]
        texts += [words for event in events if isinstance(event, Maintained) for words in event.done.says]
        clock[0] += timedelta(minutes=4)
        table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
        assert table is not None
        total: Any = metadata.summary(table.main)
        peaks["files"] = max(peaks["files"], int(total["total-data-files"]) + int(total["total-delete-files"]))
        peaks["snapshots"] = max(peaks["snapshots"], len(table.snapshots))
        peaks["metadata"] = max(peaks["metadata"], Path(table.file.removeprefix("file:")).stat().st_size)
    assert {row["id"]: row["price"] for row in project.rows()} == model
    assert len(project.rows(bad=True)) == sum(batch.bad for batch in batches)
    compactions = sum(" files into " in text for text in texts)
    expiries = sum("snapshot" in text and text.endswith("gone") for text in texts)
    print(f"{len(batches)} batches, {compactions} compactions, {expiries} expiries, at most {peaks}")
    assert compactions >= len(batches) // 20
    assert expiries >= 1
    assert peaks["files"] < 40
    assert peaks["snapshots"] < 160  # a hundred of them of the remembered deletes
    assert peaks["metadata"] < 400_000
    assert project.branches() == []
