"""Topics in Dagster: observed when their messages or their readers have moved, with the rate and the lag of each reader."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance

from framework.core.rules.journal import RunRecord
from framework.host.assets import observed
from framework.host.assets.keys import AssetKeys
from framework.operations.observe.progress import Offsets, PipelineProgress
from framework.operations.observe.status import Status, status_from
from framework.plan import Pipeline
from tests.support.alerting import ORDERS
from tests.support.project import plan_for
from tests.support.shop import NOWHERE

pytestmark = pytest.mark.slow
KEY = AssetKey(["kafka", "main", "orders"])


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def status(pipeline: Pipeline, later: timedelta, **next_offsets: tuple[int, int]) -> Status:
    """The status of a pipeline, some time from now, with the next offset and the end of each partition."""
    offsets = tuple(Offsets(f"orders/{name[1:]}", at, end) for name, (at, end) in next_offsets.items())
    progress = PipelineProgress(pipeline=pipeline.name, table=pipeline.table.identifier, offsets=offsets)
    return status_from(pipeline, progress, RunRecord(), None, datetime.now(timezone.utc) + later)


def observations(instance: DagsterInstance) -> list[dict[str, Any]]:
    """The metadata of all observations of the topic, the oldest first."""
    records = instance.fetch_observations(KEY, limit=10).records[::-1]
    recorded = [record.asset_observation for record in records if record.asset_observation is not None]
    return [{name: entry.value for name, entry in observation.metadata.items()} for observation in recorded]


def test_a_topic_is_observed_when_it_or_a_reader_moves(instance: DagsterInstance, tmp_path: Path) -> None:
    copy, orders = plan_for(tmp_path, NOWHERE, ORDERS).pipelines
    now, later = timedelta(), timedelta(seconds=100)
    first = [status(orders, now, p0=(10, 10), p1=(5, 8)), status(copy, now, p0=(0, 10), p1=(0, 8))]
    observed.observe(instance, AssetKeys(), first)
    observed.observe(instance, AssetKeys(), first)
    assert observations(instance) == [
        {"messages": 18, "lag_of_orders": 3, "lag_of_copy": 18, "ends": {"orders/0": 10, "orders/1": 8}}
    ]
    observed.observe(instance, AssetKeys(), [status(orders, later, p0=(10, 110), p1=(8, 8))])
    observed.observe(instance, AssetKeys(), [status(orders, later, p0=(110, 110), p1=(8, 8))])
    _, second, third = observations(instance)
    assert (second["messages"], second["lag_of_orders"]) == (118, 100)
    assert second["messages_per_second"] == pytest.approx(1.0, rel=0.1)
    assert (third["lag_of_orders"], third["messages_per_second"]) == (0, 0.0)


def test_a_topic_that_nobody_can_see_is_not_observed(instance: DagsterInstance, tmp_path: Path) -> None:
    (_, orders) = plan_for(tmp_path, NOWHERE, ORDERS).pipelines
    observed.observe(instance, AssetKeys(), [status(orders, timedelta())])
    assert observations(instance) == []
