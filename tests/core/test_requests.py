"""The requests of batches to an object store: what is written is counted exactly, what is read about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.core.spark import session
from framework.host.plans import make
from framework.operations.observe.cost import GETS_OF_A_BATCH
from framework.plan import Plan
from tests.support.project import BASE, Project
from tests.support.proxy import Request, between
from tests.support.rest_catalog import STORAGE, login
from tests.support.spark_catalogs import tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]
BATCHES = 20


class InStore(Project):
    """A project whose files are in an object store."""

    url = ""

    @property
    def plan(self) -> Plan:
        folder = self.folder / "specs_of_store"
        folder.mkdir(exist_ok=True)
        base = (
            BASE.format(bootstrap=self.bootstrap)
            .replace("warehouse: warehouse", f"warehouse: s3://sluice/{self.namespace}\n{STORAGE.format(store=self.url)}")
            .replace("lake.db", f"{self.namespace}.db")
            .replace("catalog: lake", f"catalog: {self.namespace}")
        )
        specs = self.template.format(topic=self.topic, namespace=self.namespace, more=self.more, topic_more=self.topic_more)
        (folder / "main.yaml").write_text(f"{base}---\n{specs}")
        return make(folder)


@pytest.fixture
def project(tmp_path: Path, lake: Path, kafka: str, spark: SparkSession) -> Iterator[InStore]:
    new_project = InStore(tmp_path, lake, kafka, spark)
    yield new_project
    new_project.close()


@pytest.mark.parametrize("write", ["append", "upsert, keys: [id]"])
def test_requests_are_counted(project: InStore, quick_store: str, write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    login(monkeypatch)
    project.template = project.template.replace("{namespace}.trades}}", f"{{namespace}}.trades, write: {write}}}}}")
    project.make_topic(partitions=1)
    requests: Counter[str] = Counter()

    def count(request: Request) -> bool:
        requests[request.method] += 1
        return False

    with between(quick_store) as proxy:
        project.url = proxy.url
        session.prepare(project.plan)
        tell(project.spark, project.plan)
        run(project, 3)
        begun = project.work()
        proxy.faults.append(count)
        run(project, BATCHES)
        done = project.work()
    objects = done.objects - begun.objects
    # A list of files that Iceberg writes and merges with others in the same commit is put and deleted again.
    assert objects == 4 * BATCHES and objects <= requests["PUT"] <= objects + BATCHES / 5
    assert 0.7 < (requests["GET"] + requests["HEAD"]) / (BATCHES * GETS_OF_A_BATCH) < 1.4


def run(project: Project, batches: int) -> None:
    for _ in range(batches):
        project.send_good(20, partition=0)
        assert len(project.run()) == 1
