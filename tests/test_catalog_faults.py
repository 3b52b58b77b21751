"""Every write mode on a REST catalog and an object store, while what is between them and Sluice fails. The table afterwards is the one of
a run without faults: nothing lost, nothing twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from framework.catalogs._rest_client import Address, RestClient
from framework.engine.context import Context
from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.iceberg.lake import Lake
from framework.engine.maintain import expire
from framework.engine.publish.batch import next_batch
from framework.engine.rules import protocol
from framework.engine.rules.protocol import Position
from framework.engine.spark import session
from framework.engine.spark.java_errors import CommitRefused
from framework.engine.trials.given_messages import GivenMessages
from framework.engine.trials.trial import _rows
from framework.errors import SluiceError
from framework.model import Message, Pipeline, Plan
from framework.plan.passes import make
from framework.services import catalog as service
from tests.between import Between, Request, between
from tests.rest import DOCUMENT, login

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
pipeline: {mode}
from: {{topic: orders}}
{steps}
into: {{table: {namespace}.t, {into}}}
tests:
  - name: two batches, and a bad row
    given:
      - {{id: a, price: 1, at: 2026-01-01T00:00:00Z}}
      - {{id: b, price: 2, at: 2026-01-01T00:00:01Z}}
      - {{message: {{key: x, raw: "x"}}}}
      - new_batch
      - {{id: a, price: 3, at: 2026-01-01T00:00:02Z}}
      - {{message: {{key: b, value: null}}}}
      - {{id: c, price: 4, at: 2026-01-01T00:00:03Z}}
    expect: [{{id: a}}]
"""
MODES = {
    "append": ("", "write: append"),
    "dedup": ("steps: [{dedup: {keys: [id], within: 7d}}]", "write: append"),
    "upsert": ("", "write: upsert, keys: [id], order_by: at, deletes: tombstones"),
    "history": ("", "write: history, keys: [id], deletes: tombstones"),
}
FORM = {"grant_type": "client_credentials", "client_id": service.CLIENT, "client_secret": service.SECRET, "scope": "catalog"}
_numbers = itertools.count()


def publishes(request: Request) -> bool:
    """Whether it moves main: the commit that decides."""
    return request.moves("main")


def stages(request: Request) -> bool:
    """Whether it adds the rows of a batch, on the branch of the attempt."""
    adds = any(each["action"] == "add-snapshot" for each in request.changes())
    return adds and any(str(each.get("ref-name")).startswith("sluice_") for each in request.changes())


def lost(request: Request) -> None:
    request.forward()
    request.hang_up()


def done_and(status: int) -> Callable[[Request], None]:
    def strike(request: Request) -> None:
        request.forward()
        request.refuse(status)

    return strike


def refused(status: int, type_: str = "Whatever") -> Callable[[Request], None]:
    return lambda request: request.refuse(status, type_)


def at(when: Callable[[Request], bool], do: Callable[[Request], None]) -> Callable[[Request], bool]:
    def fault(request: Request) -> bool:
        if not when(request):
            return False
        do(request)
        return True

    return fault


FAULTS = {
    "its answer is lost": lost,
    "done, and 500": done_and(500),
    "done, and 503": done_and(503),
    "502": refused(502),
    "429": refused(429),
    "409": refused(409, "CommitFailedException"),
    "401": refused(401, "NotAuthorizedException"),
}
ALWAYS = {("append", "publishes", "its answer is lost")}


def cases() -> Iterator[Any]:
    for mode, when, fault in itertools.product(MODES, (publishes, stages), FAULTS):
        marks = [] if (mode, when.__name__, fault) in ALWAYS else [pytest.mark.long]
        yield pytest.param(mode, when, fault, marks=marks, id=f"{mode}, where a commit {when.__name__}, {fault}")


@pytest.fixture(scope="module")
def plain() -> dict[str, tuple[Any, ...]]:
    """What a run without faults leaves, by mode."""
    return {}


@pytest.fixture(scope="module")
def proxy(rest_catalog: str) -> Iterator[Between]:
    with between(rest_catalog) as proxy:
        yield proxy


@pytest.fixture
def planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: Between, quick_store: str, spark: SparkSession
) -> Callable[[str], Plan]:
    monkeypatch.chdir(tmp_path)
    login(monkeypatch)

    def plan(mode: str) -> Plan:
        steps, into = MODES[mode]
        number = next(_numbers)
        folder = tmp_path / f"specs{number}"
        folder.mkdir()
        spec = SPEC.format(
            catalog=DOCUMENT.format(name=f"faults{number}", uri=proxy.url, store=quick_store),
            mode=mode,
            steps=steps,
            into=into,
            namespace=f"faults{number}",
        )
        (folder / "a.yaml").write_text(spec, encoding="utf-8")
        plan = make(folder)
        for key, value in session.settings(plan).items():
            if key.startswith("spark.sql.catalog."):
                spark.conf.set(key, value)
        return plan

    return plan


def run(plan: Plan, spark: SparkSession, fault: Callable[[], None] = lambda: None) -> int:
    """Runs the batches of the pipeline's test, the second with a fault; how often a batch failed."""
    (pipeline,) = plan.pipelines
    (example,) = pipeline.examples
    messages = tuple(each for each in example.given if isinstance(each, Message))
    failed = 0
    for batch in example.batches:
        if batch == max(example.batches):
            fault()
        context = Context(plan, spark=lambda: spark, source=GivenMessages(messages, batch, 1))
        while True:
            try:
                done = next_batch(context, pipeline)
            except SluiceError:
                failed += 1
                assert failed < 5
                continue
            if not (done and done.waiting):
                break
    return failed


def content(pipeline: Pipeline) -> tuple[Any, ...]:
    """All rows, without what differs from run to run."""

    def of(identifier: str) -> list[Any]:
        rows = _rows(pipeline.table, identifier)
        return sorted(repr({key: value for key, value in row.items() if key not in VARIES}) for row in rows)

    return of(pipeline.table.identifier), of(pipeline.table.bad_rows)


VARIES = {"at", "batch", "attempt", "pipeline", "_sluice_batch"}


@pytest.mark.parametrize(("mode", "when", "fault"), list(cases()))
def test_a_fault_leaves_the_table_of_a_run_without(
    mode: str,
    when: Callable[[Request], bool],
    fault: str,
    planned: Callable[[str], Plan],
    plain: dict[str, tuple[Any, ...]],
    proxy: Between,
    spark: SparkSession,
) -> None:
    if mode not in plain:
        without = planned(mode)
        run(without, spark)
        plain[mode] = content(without.pipelines[0])
    struck = planned(mode)
    proxy.struck = 0
    failed = run(struck, spark, lambda: proxy.faults.append(at(when, FAULTS[fault])))
    assert (proxy.struck, proxy.faults) == (1, [])
    print(f"rest | {mode} | {when.__name__}: {fault} | exact, {failed} batches failed and were repeated")
    assert content(struck.pipelines[0]) == plain[mode]
    table = metadata.read(struck.pipelines[0].table.catalog, struck.pipelines[0].table.identifier)
    assert table is not None
    assert not [name for name in table.refs if name.startswith("sluice_")]


class Slipped:
    """Lets changes come between Iceberg's last look at a table and the commit that it makes then."""

    def __init__(self, plan: Plan, proxy: Between, rest_catalog: str) -> None:
        (pipeline,) = plan.pipelines
        self.table, self.catalog, self.proxy = pipeline.table.identifier, pipeline.table.catalog, proxy
        namespace, _, name = self.table.partition(".")
        self.url = f"{rest_catalog}/v1/namespaces/{namespace}/tables/{name}"
        self.login = RestClient(Address(uri=rest_catalog, warehouse=None, client=FORM))._login()

    def read(self) -> Metadata:
        table = metadata.read(self.catalog, self.table)
        assert table is not None and table.main is not None
        return table

    def before(self, when: Callable[[Request], bool], *changes: dict[str, Any]) -> None:
        def strike(request: Request) -> None:
            answer = requests.post(self.url, json={"requirements": [], "updates": changes}, headers=self.login)
            assert answer.status_code == 200, answer.text
            request.answer(*request.forward())

        self.proxy.faults.append(at(when, strike))

    def back(self) -> dict[str, Any]:
        main = self.read().main
        assert main is not None
        return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": main["parent-snapshot-id"]}


@pytest.fixture
def slipped(planned: Callable[[str], Plan], proxy: Between, rest_catalog: str, spark: SparkSession) -> Slipped:
    plan = planned("append")
    run(plan, spark)
    return Slipped(plan, proxy, rest_catalog)


def test_a_position_does_not_move_after_another_commit_moved_main(slipped: Slipped, spark: SparkSession) -> None:
    lake = Lake(spark, slipped.catalog)
    late, before = lake.begin(lake.load(slipped.table)), slipped.read()
    position = Position.read(before.properties[protocol.POSITION])
    slipped.before(lambda request: bool(request.changes()), slipped.back())
    with pytest.raises(CommitRefused):
        lake.move_position(late, replace(position, batch=position.batch + 1))
    assert slipped.proxy.faults == []
    assert slipped.read().properties[protocol.POSITION] == before.properties[protocol.POSITION]


def test_a_snapshot_does_not_expire_after_main_went_back_to_it(slipped: Slipped, spark: SparkSession) -> None:
    """A server would take main away with it, and the table would be empty."""
    before = slipped.read()
    assert before.main is not None
    to = before.main["parent-snapshot-id"]
    slipped.before(lambda request: bool(request.changes()), slipped.back())
    with pytest.raises(CommitRefused):
        expire.expire(Lake(spark, slipped.catalog), slipped.catalog, slipped.table, [to])
    assert slipped.read().refs["main"] == to


def test_an_attempt_whose_branch_was_swept_publishes_nothing(
    planned: Callable[[str], Plan], plain: dict[str, tuple[Any, ...]], proxy: Between, rest_catalog: str, spark: SparkSession
) -> None:
    """Another machine took it for dead, and sweeps its bad rows next."""
    plan = planned("append")
    slipped = Slipped(plan, proxy, rest_catalog)

    def sweep() -> None:
        def strike(request: Request) -> None:
            (gone,) = (each for each in request.changes() if each["action"] == "remove-snapshot-ref")
            assert requests.post(slipped.url, json={"requirements": [], "updates": [gone]}, headers=slipped.login).ok
            status, body = request.forward()
            answers.append(status)
            request.answer(status, body)

        proxy.faults.append(at(publishes, strike))

    answers: list[int] = []
    run(plan, spark, sweep)
    assert answers == [409]
    if "append" not in plain:
        without = planned("append")
        run(without, spark)
        plain["append"] = content(without.pipelines[0])
    assert content(plan.pipelines[0]) == plain["append"]
