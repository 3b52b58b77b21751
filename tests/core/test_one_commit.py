"""What a batch costs its catalog: one commit, and few requests; and what an attempt leaves that never published."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.base.clock import utc_now
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.publish.batch import next_batch
from framework.core.spark import session
from framework.host.plans import make
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan
from tests.support.memory_messages import append
from tests.support.proxy import Request, between
from tests.support.rest_catalog import DOCUMENT, login
from tests.support.spark_catalogs import tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPEC = """
cluster: main
bootstrap: 127.0.0.1:1
---
{catalog}---
topic: orders
value: json
key: {{format: string, as: id}}
columns: {{price: double, at: timestamp}}
event_time: at
---
pipeline: orders
from: {{topic: orders}}
{steps}
into: {{table: {namespace}.orders, {into}}}
"""
MODES = {
    "append": ("", "write: append"),
    "upsert": ("", "write: upsert, keys: [id], order_by: at, deletes: tombstones"),
    "totals": ("steps: [{aggregate: {by: [id], measures: {price: sum(price), rows: count(*)}}}]", "write: accumulate"),
}
FOLDER = "catalog: {name}\ntype: sql\nuri: sqlite:///{name}.db\nwarehouse: {name}\n"
BATCHES = 4


class Shop:
    """A pipeline, to which messages are sent one batch after another."""

    def __init__(self, folder: Path, spark: SparkSession, mode: str, catalog: str) -> None:
        steps, into = MODES[mode]
        folder.mkdir()
        (folder / "a.yaml").write_text(SPEC.format(catalog=catalog, steps=steps, into=into, namespace=folder.name))
        self.plan: Plan = make(folder)
        self.messages: list[Message] = []
        self.batches = 0
        self.context = Context(self.plan, spark=lambda: spark)
        session.prepare(self.plan)
        tell(spark, self.plan)

    @property
    def pipeline(self) -> Pipeline:
        return self.plan.pipelines[0]

    def send(self, **values: str | None) -> None:
        self.batches += 1
        for key, value in values.items():
            append(
                self.messages,
                "orders",
                None if value is None else value.encode(),
                at=utc_now(),
                key=key.encode(),
                batch=self.batches,
            )

    def run(self) -> None:
        self.context._source = GivenMessages(tuple(self.messages), self.batches, 1)
        assert next_batch(self.context, self.pipeline) is not None

    def day(self) -> None:
        """A batch with a new key and a changed one and, if the table has one row per key, a deleted one."""
        price = json.dumps({"price": self.batches, "at": f"2026-01-01T00:{self.batches:02}:00Z"})
        deleted = {f"new{self.batches - 1}": None} if self.pipeline.table.keyed else {}
        self.send(same=price, **{f"new{self.batches}": price, **deleted})
        self.run()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_is_one_commit(mode: str, folder: Path, spark: SparkSession) -> None:
    shop = Shop(folder / f"one_{mode}", spark, mode, FOLDER.format(name=f"one_{mode}"))
    shop.day()
    table = shop.pipeline.table
    before = sorted((folder / f"one_{mode}").rglob("orders/metadata/*.metadata.json"))
    for _ in range(BATCHES):
        shop.day()
    added = set((folder / f"one_{mode}").rglob("orders/metadata/*.metadata.json")) - set(before)
    current = metadata.read(table.catalog, table.identifier)
    assert current is not None
    print(f"{mode}: {len(added) / BATCHES} commits, {sum(path.stat().st_size for path in added) // BATCHES:,} bytes of metadata")
    assert len(added) == BATCHES
    assert not [name for name in current.refs if name.startswith("sluice_")]


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_asks_a_rest_catalog_little(
    mode: str, folder: Path, spark: SparkSession, rest_catalog: str, quick_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(monkeypatch)
    requests: list[str] = []
    lock = threading.Lock()

    def counted(request: Request) -> bool:
        with lock:
            requests.append(f"{request.method} {request.path.partition('?')[0]}")
        return False

    with between(rest_catalog) as proxy:
        proxy.faults.append(counted)
        shop = Shop(folder / f"few_{mode}", spark, mode, DOCUMENT.format(name=f"few_{mode}", uri=proxy.url, store=quick_store))
        shop.day()
        shop.day()
        requests.clear()
        for _ in range(BATCHES):
            shop.day()
        print(f"{mode}: {len(requests) / BATCHES} requests", *requests[: len(requests) // BATCHES], sep="\n  ")
    assert requests == [f"{method} /api/catalog/v1/namespaces/few_{mode}/tables/orders" for method in ("GET", "POST")] * BATCHES
