"""OpenLineage events of runs, as a receiver gets them."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.run import run as loop
from framework.core.run.events import BatchDone, Rebuilt
from framework.core.run.failures import raising
from framework.host.watchers import openlineage, with_watchers
from framework.operations.rebuild import rebuild
from framework.operations.trials.given_messages import GivenMessages
from framework.operations.undo import replay
from framework.plan import Message, Pipeline
from tests import toys
from tests.support.project import Project, good, plan_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SPEC = """
topic: orders
value: json
columns: {{id: int, amount: int}}
---
pipeline: orders
doc: All orders.
from: {{topic: orders}}
steps: [{{derive: {{twice: amount * 2}}}}]
into: {{table: {namespace}.orders}}
expect: [{{when: amount < 1000, else: stop}}]
---
pipeline: sums
from: {{tables: [{namespace}.orders]}}
steps: [{{sql: "select id, sum(twice) as total from {namespace}.orders group by id"}}]
into: {{table: {namespace}.sums, write: replace}}
"""


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Removes the variables that the client of OpenLineage sets for itself: commands of later tests would obey them."""
    yield
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE_")]:
        del os.environ[name]


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(openlineage._Events, "next_try", 0.0)  # an earlier failure would pause it
    openlineage._client.cache_clear()
    yield events
    server.shutdown()
    server.server_close()
    openlineage._client.cache_clear()


def run(lake: Path, spark: Any, text: str, *amounts: int, name: str = "orders") -> None:
    plan = plan_for(lake, "127.0.0.1:1", text)
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    sent = tuple(
        Message(
            batch=1,
            topic="orders",
            partition=0,
            offset=number,
            timestamp=moment,
            value=json.dumps({"id": number, "amount": amount}).encode(),
        )
        for number, amount in enumerate(amounts)
    )
    pipeline = plan.pipeline(name)
    assert pipeline is not None
    list(raising(with_watchers(loop.run(Context(plan, spark=lambda: spark, source=GivenMessages(sent, 1, 1)), pipeline))))


def test_a_run_is_two_events_with_the_columns_of_its_table(lake: Path, spark: Any, received: list[dict[str, Any]]) -> None:
    namespace = f"n{uuid.uuid4().hex[:10]}"
    text = SPEC.format(namespace=namespace)
    with toys.installed():
        run(lake, spark, text, 1, 2)
    run(lake, spark, text, 1, 2)  # nothing waits: no event
    run(lake, spark, text, name="sums")

    assert [(event["eventType"], event["job"]["name"]) for event in received] == [
        ("START", "orders"), ("COMPLETE", "orders"), ("START", "sums"), ("COMPLETE", "sums"),
    ]  # fmt: skip
    assert len({event["run"]["runId"] for event in received}) == 2
    done, sums = received[1], received[3]
    assert [(dataset["namespace"], dataset["name"]) for dataset in done["inputs"]] == [("kafka://127.0.0.1:1", "orders")]
    (output,) = done["outputs"]
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"]) == (2, 0)  # and that of the toy metric
    shown = output["outputFacets"]["sluice_metrics"]
    assert (shown["written_rows"], shown["table_rows"], "state" in shown) == (2, 2, False)
    assert output["facets"]["symlinks"]["identifiers"][0]["name"] == f"{namespace}.orders"
    assert output["facets"]["columnLineage"]["fields"]["twice"]["inputFields"] == [
        {"namespace": "kafka://127.0.0.1:1", "name": "orders", "field": "amount", "transformations": []}
    ]
    assert done["job"]["facets"]["documentation"]["description"] == "All orders."
    (read,) = sums["inputs"]
    assert (read["namespace"], read["name"]) == (output["namespace"], output["name"])  # one dataset, so that tools join them
    fields = sums["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert fields["total"]["inputFields"][0]["field"] == "twice"


def test_a_run_that_fails_says_why(lake: Path, spark: Any, received: list[dict[str, Any]]) -> None:
    with pytest.raises(SluiceError):
        run(lake, spark, SPEC.format(namespace=f"n{uuid.uuid4().hex[:10]}"), 5000)

    assert [event["eventType"] for event in received] == ["START", "FAIL"]
    assert received[1]["run"]["facets"]["errorMessage"]["message"].startswith("not-as-expected: 1 of 1 rows")


@pytest.mark.long  # the client tries again for some seconds
def test_a_receiver_that_is_away_stops_no_run(
    lake: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(openlineage._Events, "next_try", 0.0)  # an earlier failure would pause it
    openlineage._client.cache_clear()
    run(lake, spark, SPEC.format(namespace=f"n{uuid.uuid4().hex[:10]}"), 1)
    openlineage._client.cache_clear()

    assert "the lineage of orders was not sent" in caplog.text


@pytest.mark.long
@pytest.mark.kafka
def test_a_rebuild_and_a_replay_are_runs(project: Project, received: list[dict[str, Any]]) -> None:
    def context() -> tuple[Context, Pipeline]:
        opened = project.context()
        return opened, opened.plan.pipelines[0]

    def rebuilt(stopped: bool) -> bool:
        opened = context()
        estimate, _ = rebuild.check_rebuild(*opened, without_lost=False)
        told = list(with_watchers(rebuild.rebuild(*opened, estimate, lambda: stopped)))
        return any(isinstance(event, Rebuilt) for event in told)

    def replayed() -> int:
        told = with_watchers(replay.replay(*context(), replay.condition(""), lambda: False))
        return sum(isinstance(event, BatchDone) for event in told)

    project.make_topic(1)
    project.send([good(0), b'{"id": "one"}', good(2)], partition=0)
    project.run()
    received.clear()
    project.more = "batch: {rows: 2}"

    assert not rebuilt(stopped=True)
    assert rebuilt(stopped=False)
    assert replayed() == 1
    project.run()
    assert replayed() == 1, "the row is still bad"
    assert [event["eventType"] for event in received] == [
        "START",
        "ABORT",
        "START",
        "COMPLETE",
        "START",
        "COMPLETE",
        "START",
        "COMPLETE",
    ]
    assert {event["job"]["name"] for event in received} == {"trades"}
    facets = [event["outputs"][0]["outputFacets"] for event in received if event["outputs"]]
    assert facets[0].keys() == {"sluice_metrics"}, "what was built is work, and is not published"
    assert [facet["outputStatistics"]["rowCount"] for facet in facets[1:]] == [2, 0, 0]

    replay.discard(*context(), replay.condition(""))
    received.clear()
    assert replayed() == 0 and received == [], "nothing waits: no event"
