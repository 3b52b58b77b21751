"""Pipelines on a cluster: a master and two workers of pyspark's own, tables in a REST catalog and an object store, and a worker that is
killed while it runs tasks. The table afterwards is the one that the messages make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from framework.core.iceberg import table_state
from framework.host.plans import make
from framework.machine.services import catalog, s3
from framework.plan import Plan
from tests.support.rest_catalog import DOCUMENT, environment, login
from tests.support.spark_cluster import Cluster, cluster
from tests.support.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

SLUICE = str(Path(sys.executable).with_name("sluice"))
SPEC = """
cluster: main
bootstrap: "{kafka}"
---
engine: spark
master: {master}
memory: 1g
conf: {{spark.executor.memory: 700m, spark.executor.cores: 1}}
---
{catalog}
---
topic: orders
kafka_name: {topic}
value: json
columns: {{id: {{type: bigint, required: true}}, price: double, at: timestamp}}
event_time: at
---
pipeline: orders
from: {{topic: orders}}
{steps}
into: {{table: {namespace}.orders, {into}}}
"""
MODES = {
    "append": ("", "write: append"),
    "upsert": ("", "write: upsert, keys: [id], order_by: at"),
    "history": ("", "write: history, keys: [id]"),
    "accumulate": ("steps: [{aggregate: {by: [id], measures: {price: sum(price)}}}]", "write: accumulate"),
}
MESSAGES, KEYS = 300_000, 100_000


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as spark_cluster:
        yield spark_cluster


@pytest.fixture
def specs(
    workers: Cluster, kafka: str, rest_catalog: str, quick_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Writes specs for a mode into the folder of the test, changes to it, and sends messages."""
    login(monkeypatch)
    monkeypatch.chdir(tmp_path)
    while len(workers._alive()) < 2:
        workers.add_worker()

    def write(mode: str) -> None:
        topic = f"cluster_{uuid.uuid4().hex[:8]}"
        send(kafka, topic)
        steps, into = MODES[mode]
        lake = DOCUMENT.format(name="lake", uri=rest_catalog, store=quick_store)
        text = SPEC.format(kafka=kafka, master=workers.url, catalog=lake, topic=topic, steps=steps, into=into, namespace=topic)
        Path("specs").mkdir()
        Path("specs/a.yaml").write_text(text, encoding="utf-8")

    return write


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_dies_while_it_writes(mode: str, workers: Cluster, specs: Callable[[str], None]) -> None:
    specs(mode)
    environ = {**os.environ, **environment()}
    with subprocess.Popen(
        [SLUICE, "run", "orders"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        until(lambda: bool(workers.executors()) or run.poll() is not None, "no executor starts", 90)
        until(lambda: busy(workers) or run.poll() is not None, "no task runs", 90)
        assert run.poll() is None, run.stdout and run.stdout.read()
        workers.kill_a_worker()
        assert run.poll() is None
        output = run.communicate(timeout=300)[0]
    assert run.returncode == 0, output
    check(mode, make(Path("specs")))


def test_spark_submit_runs_what_plan_prints(specs: Callable[[str], None]) -> None:
    specs("append")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # as in a shell with this Python
    environ = {**os.environ, **environment(), "PATH": path}
    output = subprocess.run(
        [SLUICE, "plan", "orders", "--spark-submit"], env=environ, capture_output=True, text=True, check=True
    ).stdout
    assert not any(secret in output for secret in (catalog.SECRET, s3.SECRET))
    result = subprocess.run(["sh", "-c", output], env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert "orders is caught up" in result.stdout, result.stdout + result.stderr[-3000:]
    check("append", make(Path("specs")))


def busy(workers: Cluster) -> bool:
    """Whether an executor of a worker has computed for a while: its start takes about three seconds of a processor."""
    return any(seconds > 5 for seconds in workers.executors().values())


def send(kafka: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(MESSAGES):
        row = {
            "id": number % KEYS,
            "price": number,
            "at": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        }
        producer.produce(topic, json.dumps(row).encode(), partition=number % KEYS % 4)
    assert producer.flush(60) == 0


def check(mode: str, plan: Plan) -> None:
    (pipeline,) = plan.pipelines
    table: Any = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    rows = table.scan(selected_fields=("id", "price")).to_arrow()
    expected = KEYS if mode in ("dedup", "upsert", "accumulate") else MESSAGES
    assert rows.num_rows == expected
    assert len(set(rows.column("id").to_pylist())) == KEYS
    if mode == "accumulate":
        assert sum(map(int, rows.column("price").to_pylist())) == sum(range(MESSAGES))
    if mode in ("append", "history"):
        assert sorted(map(int, rows.column("price").to_pylist())) == list(range(MESSAGES))
