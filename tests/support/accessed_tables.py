"""A table with rows in a REST catalog, to which a script gives access."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.core.context.context import Context
from framework.core.publish.batch import next_batch
from framework.host.plans import make
from framework.machine.services import catalog
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Plan
from tests.support.locked_kafka import CLUSTER
from tests.support.rest_catalog import DOCUMENT, login
from tests.support.spark_catalogs import tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = (
    CLUSTER
    + """---
{catalog}---
topic: orders
value: json
columns: {{id: {{type: bigint, required: true}}, country: string}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shown.orders}}
also: [{{topic: onward}}]
tests:
  - name: three orders
    given: [{{id: 1, country: DE}}, {{id: 2, country: FR}}, {{id: 3, country: DE}}]
    expect: [{{id: 1}}, {{id: 2}}, {{id: 3}}]
"""
)


def planned(kafka: str, lake: str, patch: pytest.MonkeyPatch) -> Plan:
    login(patch, KAFKA_PASSWORD="unused")
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(SPEC.format(kafka=kafka, catalog=lake))
    return make(Path("specs"))


@pytest.fixture
def plan(rest_catalog: str, quick_store: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of a table with three rows."""
    monkeypatch.chdir(tmp_path)
    lake = DOCUMENT.format(name="shown_by_access", uri=rest_catalog, store=quick_store)
    plan = planned("127.0.0.1:1", lake, monkeypatch)
    tell(spark, plan)
    monkeypatch.setenv("SHOWN_BY_ACCESS_CLIENT_ID", catalog.CLIENT)
    monkeypatch.setenv("SHOWN_BY_ACCESS_CLIENT_SECRET", catalog.SECRET)
    (pipeline,) = plan.pipelines
    messages = tuple(message for message in pipeline.examples[0].given if isinstance(message, Message))
    next_batch(Context(plan, spark=lambda: spark, source=GivenMessages(messages, 1, 1)), pipeline)
    return plan
