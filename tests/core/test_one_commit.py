"""The cost of a batch for its catalog: one commit, and few requests; and attempts that are refused or disturbed."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.base.clock import utc_now
from framework.base.errors import Unexpected
from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.maintain import maintain
from framework.core.publish.batch import next_batch
from framework.core.spark import session
from framework.host.plans import make
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan
from framework.systems.catalogs import client_of
from tests.support.faults import PLACES
from tests.support.kill_points import once
from tests.support.memory_messages import append
from tests.support.proxy import Request, between
from tests.support.rest_catalog import DOCUMENT, login
from tests.support.spark_catalogs import tell
from tests.support.troubles import maintained
from tests.support.waiting import until

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
    "checked": ("expect: [{when: price < 9, else: stop}]", "write: append"),
    "totals": ("steps: [{aggregate: {by: [id], measures: {price: sum(price), rows: count(*)}}}]", "write: accumulate"),
}
FOLDER = "catalog: {name}\ntype: sql\nuri: sqlite:///{name}.db\nwarehouse: {name}\n"
BATCHES = 4
_numbers = itertools.count()


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

    @property
    def name(self) -> str:
        return f"{self.pipeline.table.catalog.name}.{self.pipeline.table.identifier}"

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

    def run(self, reached: Callable[[str], None] = lambda _: None) -> None:
        self.context.reached = reached
        self.context._source = GivenMessages(tuple(self.messages), self.batches, 1)
        next_batch(self.context, self.pipeline)

    def day(self, reached: Callable[[str], None] = lambda _: None) -> None:
        """A batch with a new key and a changed one and, if the table has one row per key, a deleted one."""
        price = json.dumps({"price": self.batches, "at": f"2026-01-01T00:{self.batches:02}:00Z"})
        deleted = {f"new{self.batches - 1}": None} if self.pipeline.table.keyed else {}
        self.send(same=price, **{f"new{self.batches}": price, **deleted})
        self.run(reached)

    def another(self) -> None:
        """Another process takes the batch."""
        source = self.context._source
        assert next_batch(Context(self.plan, spark=lambda: self.context.spark, source=source), self.pipeline) is not None

    def rows(self) -> list[tuple[str, float]]:
        return sorted(self.context.spark.table(self.name).select("id", "price").collect())


@pytest.fixture
def shop(folder: Path, spark: SparkSession, request: pytest.FixtureRequest) -> Shop:
    name = f"shop{next(_numbers)}"
    return Shop(folder / name, spark, request.param, FOLDER.format(name=name))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mode", ["append", "upsert", "totals"])
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


@pytest.mark.parametrize("mode", ["append", "upsert", "totals"])
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
    assert len(requests) == BATCHES * client_of(shop.pipeline.table.catalog).batch_requests


@pytest.mark.parametrize("mode", ["append", "upsert", "totals"])
def test_a_batch_asks_glue_little(
    mode: str, folder: Path, spark: SparkSession, aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(monkeypatch)
    requests: list[str] = []

    def counted(request: Request) -> bool:
        if target := request.headers.get("X-Amz-Target"):
            requests.append(target.partition(".")[2])
        return False

    with between(aws) as proxy:
        proxy.faults.append(counted)
        document = PLACES["glue"].document.format(name=f"glue_{mode}", aws=proxy.url, store=aws)
        shop = Shop(folder / f"glue_{mode}", spark, mode, document)
        shop.day()
        shop.day()
        requests.clear()
        for _ in range(BATCHES):
            shop.day()
        print(f"{mode}: {len(requests) / BATCHES} requests", *requests, sep="\n  ")
    assert requests == ["GetTable", "GetTable", "UpdateTable"] * BATCHES
    assert len(requests) == BATCHES * client_of(shop.pipeline.table.catalog).batch_requests


@pytest.mark.parametrize("shop", ["append", "upsert"], indirect=True)
@pytest.mark.parametrize(
    "age", [0, pytest.param(65, marks=pytest.mark.long)]
)  # seconds; a table refuses snapshots of a minute ago
def test_a_property_that_others_set_meanwhile_stays_and_nothing_is_written_again(age: int, shop: Shop, folder: Path) -> None:
    def disturb() -> None:
        staged = time.monotonic()
        until(lambda: time.monotonic() - staged >= age, "time stands still", 2 * age + 1)
        shop.context.spark.sql(f"ALTER TABLE {shop.name} SET TBLPROPERTIES ('note' = 'kept')")

    shop.day()
    before = data_files(folder)
    shop.day()
    file_count = len(data_files(folder) - before)
    before = data_files(folder)
    shop.day(once(disturb, "checked"))
    assert len(data_files(folder) - before) == file_count
    table = metadata.read(shop.pipeline.table.catalog, shop.pipeline.table.identifier)
    assert table is not None and table.properties["note"] == "kept"
    assert len(shop.rows()) == (2 if shop.pipeline.table.keyed else 6)


@pytest.mark.parametrize("shop", ["checked"], indirect=True)
def test_a_batch_that_is_refused_leaves_no_file(shop: Shop, folder: Path) -> None:
    shop.day()
    before = {path for path in folder.rglob("*") if path.is_file()}
    shop.send(dear=json.dumps({"price": 10}))
    with pytest.raises(Unexpected):
        shop.run()
    assert {path for path in folder.rglob("*") if path.is_file()} <= before


@pytest.mark.parametrize("shop", ["upsert"], indirect=True)
def test_a_snapshot_that_expires_while_a_batch_reads_it(shop: Shop) -> None:
    price = json.dumps({"price": 0, "at": "2026-01-01T00:00:00Z"})
    shop.send(kept=price, same=price)
    shop.run()
    shop.day()  # now one of two rows of the first file is marked
    points: list[str] = []
    maintaining = once(lambda: maintained(Context(shop.plan, spark=lambda: shop.context.spark), shop.pipeline), "branched")

    def reached(point: str) -> None:
        points.append(point)
        maintaining(point)

    shop.day(reached)
    assert points.count("branched") == 2, "the batch began again"
    assert shop.rows() == [("kept", 0.0), ("new2", 2.0), ("same", 2.0)]


@pytest.mark.parametrize("shop", ["append", "upsert"], indirect=True)
def test_an_attempt_that_another_overtakes_leaves_no_file(shop: Shop, folder: Path) -> None:
    shop.day()
    shop.day(once(lambda: shop.another(), "checked"))
    files = shop.context.spark.table(f"{shop.name}.all_files").select("file_path").collect()
    assert {path.resolve() for path in data_files(folder)} == {Path(row[0].removeprefix("file:")).resolve() for row in files}


@pytest.mark.parametrize("shop", ["append"], indirect=True)
def test_files_that_are_old_are_no_attempts_any_more(shop: Shop, folder: Path) -> None:
    """A process that stands still for days is refused once `maintain` has deleted its files, which no commit named."""
    shop.day()
    before = data_files(folder)
    deleted: list[Path] = []

    def clean() -> None:
        of_attempt = data_files(folder) - before
        later = Context(shop.plan, spark=lambda: shop.context.spark, clock=lambda: utc_now() + timedelta(days=9))
        assert list(maintain.maintain(later, shop.pipeline))
        deleted.extend(of_attempt - data_files(folder))

    shop.day(once(clean, "checked"))
    assert deleted and len(shop.rows()) == 4


def data_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("orders/data/**/*") if path.is_file() and path.suffix in (".parquet", ".puffin")}
