"""Every write mode in every catalog, while the connection between catalog and Sluice fails. The table is then the one of a run without
faults: nothing lost, nothing twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, moves, table_state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.updates import CommitCall, commit_transaction
from framework.core.maintain import expire
from framework.core.publish.batch import next_batch
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.core.spark import session
from framework.core.spark.java_errors import CommitRefused
from framework.host.plans import make
from framework.machine.services import catalog as service
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Message, Pipeline, Plan
from framework.systems.catalogs._rest_client import Address, RestClient
from tests.support.faults import IN_FILE, PLACES, InFile, at, publishes
from tests.support.kill_points import once
from tests.support.proxy import Between, Request, between
from tests.support.rest_catalog import login
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
pipeline: {first}
from: {{topic: orders}}
{steps}
into: {{table: {namespace}.{first}, {into}}}
tests:
  - name: a bad row in the first batch, deleted keys in the others
    given:
      - {{id: a, price: 1, at: 2026-01-01T00:00:00Z}}
      - {{id: b1, price: 2, at: 2026-01-01T00:00:00Z}}
      - {{message: {{key: x, raw: "x"}}}}
{given}
    expect: [{{id: a}}]
"""
BATCH = """\
      - new_batch
      - {{id: a, price: 3, at: 2026-01-01T00:{number:02}:00Z}}
      - {{message: {{key: b{number}, value: null}}}}
      - {{id: b{next}, price: 4, at: 2026-01-01T00:{number:02}:01Z}}
"""
REPLACE = """---
pipeline: replace
from: {{table: {namespace}.append}}
into: {{table: {namespace}.replace, write: replace}}
"""
MODES = {
    "append": ("", "write: append"),
    "dedup": ("steps: [{dedup: {keys: [id], within: 7d}}]", "write: append"),
    "upsert": ("", "write: upsert, keys: [id], order_by: at, deletes: tombstones"),
    "history": ("", "write: history, keys: [id], deletes: tombstones"),
    "accumulate": ("steps: [{aggregate: {by: [id], measures: {price: sum(price), rows: count(*)}}}]", "write: accumulate"),
    "replace": ("", "write: append"),
}
WHOLE = ("append", "upsert")  # the others stage their rows as append does, and publish them as upsert does
FILE = "sql"
VARIES = {"at", "batch", "attempt", "pipeline", "_sluice_batch"}
Content = tuple[list[str], list[str]]
Strike = AbstractContextManager[CommitCall]
_numbers = itertools.count()


def faults_of(place: str, mode: str) -> list[str]:
    """All faults of a request; for modes that stage rows as append does, only the two without an answer, and the last."""
    all_ = list(IN_FILE if place == FILE else PLACES[place].faults)
    return all_ if mode in WHOLE else all_[:2] + all_[2:][-1:]


def cases() -> Iterator[Any]:
    """Each place, mode and request, with the faults of that request in the second batch, in the third, and so on."""
    for place, mode in itertools.product((*PLACES, FILE), MODES):
        if place == "glue" and mode not in WHOLE:
            continue  # its answers are those of a stand-in, which has no lock
        request_names = list(PLACES[place].requests) if place in PLACES else ["publishes"]
        for request_name in request_names if mode == "upsert" else request_names[:1]:
            yield pytest.param(
                place, mode, request_name, faults_of(place, mode), marks=pytest.mark.long, id=f"{place}, {mode}, {request_name}"
            )


@pytest.fixture(scope="module")
def plain() -> dict[tuple[str, int], Content]:
    """The tables of runs without faults, by mode and number of batches."""
    return {}


class Proxies(ExitStack):
    """Proxies, each started when it is first needed."""

    def before(self, place: str, url: str) -> Between:
        if place not in self.running:
            self.running[place] = self.enter_context(between(url))
        return self.running[place]

    def __init__(self) -> None:
        super().__init__()
        self.running: dict[str, Between] = {}


class Places:
    """The catalogs, each behind a proxy, and plans with one of them."""

    def __init__(self, request: pytest.FixtureRequest, proxies: Proxies, spark: SparkSession) -> None:
        self.request, self.proxies, self.spark = request, proxies, spark

    def url(self, service: str) -> str:
        url: str = self.request.getfixturevalue({"rest": "rest_catalog", "store": "quick_store", "aws": "aws"}[service])
        return url

    def proxy(self, place: str) -> Between:
        return self.proxies.before(place, self.url(PLACES[place].proxied))

    def document(self, place: str, name: str) -> str:
        if place == FILE:
            return f"catalog: {name}\ntype: sql\nuri: sqlite:///{name}.db\nwarehouse: {name}\n"
        url = self.proxy(place).url
        if place == "rest":
            return PLACES[place].document.format(name=name, uri=url, store=self.url("store"))
        if place == "glue":
            return PLACES[place].document.format(name=name, aws=url, store=self.url("aws"))
        return PLACES[place].document.format(name=name, store=url)

    def plan(self, place: str, mode: str, batches: int = 2) -> Plan:
        steps, into = MODES[mode]
        name = f"faults{next(_numbers)}"
        Path(name).mkdir()
        text = SPEC + (REPLACE if mode == "replace" else "")
        first_mode = "append" if mode == "replace" else mode
        batch_texts = "".join(BATCH.format(number=number, next=number + 1) for number in range(1, batches)).rstrip()
        lake = self.document(place, name)
        spec = text.format(catalog=lake, first=first_mode, steps=steps, into=into, namespace=name, given=batch_texts)
        Path(name, "a.yaml").write_text(spec, encoding="utf-8")
        plan = make(Path(name))
        session.prepare(plan)
        tell(self.spark, plan)
        return plan

    @contextmanager
    def struck(self, place: str, request_name: str, fault: str, pipeline: Pipeline) -> Iterator[CommitCall]:
        """Strikes one request until the end of the block, and yields the function of the publishing commit."""
        if place == FILE:
            file = InFile(Path(f"{pipeline.table.catalog.name}.db"), fault)
            yield file.commit
            assert file.struck > 0
            return
        proxy, definition = self.proxy(place), PLACES[place]
        proxy.struck, proxy.errors = 0, []
        proxy.faults[:] = [at(definition.requests[request_name], definition.faults[fault])]
        yield commit_transaction
        assert (proxy.struck, proxy.faults, proxy.errors) == (1, [], []), fault


@pytest.fixture(scope="module")
def proxies() -> Iterator[Proxies]:
    with Proxies() as proxies:
        yield proxies


@pytest.fixture
def places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, proxies: Proxies, spark: SparkSession
) -> Places:
    monkeypatch.chdir(tmp_path)
    login(monkeypatch)
    return Places(request, proxies, spark)


def run(plan: Plan, spark: SparkSession, strikes: Sequence[Strike] = ()) -> list[int]:
    """Runs the batches of the test, and returns how often each batch with a strike failed. The last pipeline meets the first strike in
    the second batch, the next one in the third, and so on."""
    (example,) = plan.pipelines[0].examples
    messages = tuple(message for message in example.given if isinstance(message, Message))
    strike_by_batch = dict(zip(list(example.batches)[1:], strikes, strict=False))
    failure_counts = []
    for batch, pipeline in itertools.product(example.batches, plan.pipelines):
        source = GivenMessages(messages, batch, 1) if pipeline.topics else None
        if batch in strike_by_batch and pipeline == plan.pipelines[-1]:
            with strike_by_batch[batch] as commit:
                failure_counts.append(caught_up(Context(plan, spark=lambda: spark, source=source, commit=commit), pipeline))
        else:
            assert caught_up(Context(plan, spark=lambda: spark, source=source), pipeline) == 0
    return failure_counts


def caught_up(context: Context, pipeline: Pipeline) -> int:
    """How often a batch failed until none waits."""
    failure_count = 0
    while True:
        try:
            batch = next_batch(context, pipeline)
        except SluiceError:
            failure_count += 1
            if failure_count == 5:
                raise
            continue
        if not (batch and batch.waiting):
            return failure_count


def content(pipeline: Pipeline) -> Content:
    """All rows, without the columns that differ from run to run."""

    def rows_of_table(identifier: str) -> list[str]:
        table = table_state.table(pipeline.table.catalog, identifier)
        rows = table.scan().to_arrow().to_pylist() if table else []
        return sorted(repr({key: value for key, value in row.items() if key not in VARIES}) for row in rows)

    return rows_of_table(pipeline.table.identifier), rows_of_table(pipeline.table.bad_rows)


def without_faults(places: Places, plain: dict[tuple[str, int], Content], mode: str, batches: int = 2) -> Content:
    if (mode, batches) not in plain:
        plan = places.plan(FILE, mode, batches)
        run(plan, places.spark)
        plain[mode, batches] = content(plan.pipelines[-1])
    return plain[mode, batches]


@pytest.mark.parametrize(("place", "mode", "request_name", "faults"), list(cases()))
def test_faults_leave_the_table_of_a_run_without(
    place: str,
    mode: str,
    request_name: str,
    faults: list[str],
    places: Places,
    plain: dict[tuple[str, int], Content],
    spark: SparkSession,
) -> None:
    expected = without_faults(places, plain, mode, len(faults) + 1)
    plan = places.plan(place, mode, len(faults) + 1)
    pipeline = plan.pipelines[-1]
    failure_counts = run(plan, spark, [places.struck(place, request_name, fault, pipeline) for fault in faults])
    assert content(pipeline) == expected
    for fault, failure_count in zip(faults, failure_counts, strict=True):
        print(f"{place} | {mode} | {request_name} | {fault} | exact, {failure_count} batches failed and were repeated")
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    assert not [name for name in table.refs if name.startswith("sluice_")]


FORM = {"grant_type": "client_credentials", "client_id": service.CLIENT, "client_secret": service.SECRET, "scope": "catalog"}


class Slipped:
    """Lets changes come between Iceberg's last look at a table and the commit that it makes then."""

    def __init__(self, places: Places) -> None:
        self.plan, self.proxy, rest_catalog = places.plan("rest", "append"), places.proxy("rest"), places.url("rest")
        (pipeline,) = self.plan.pipelines
        self.table, self.catalog = pipeline.table.identifier, pipeline.table.catalog
        namespace, _, name = self.table.partition(".")
        self.url = f"{rest_catalog}/v1/namespaces/{namespace}/tables/{name}"
        self.login = RestClient(Address(uri=rest_catalog, warehouse=None, client=FORM))._login()

    def read(self) -> Metadata:
        table = metadata.read(self.catalog, self.table)
        assert table is not None and table.main is not None
        return table

    def before(self, matches: Callable[[Request], bool], *changes: dict[str, Any]) -> None:
        def strike(request: Request) -> None:
            answer = requests.post(self.url, json={"requirements": [], "updates": changes}, headers=self.login)
            assert answer.status_code == 200, answer.text
            request.answer(*request.forward())

        self.proxy.faults.append(at(matches, strike))

    def back(self) -> dict[str, Any]:
        main = self.read().main
        assert main is not None
        return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": main["parent-snapshot-id"]}


@pytest.fixture
def slipped(places: Places, spark: SparkSession) -> Slipped:
    slipped = Slipped(places)
    run(slipped.plan, spark)
    return slipped


def test_a_position_does_not_move_after_another_commit_moved_main(slipped: Slipped, spark: SparkSession) -> None:
    lake = TableStore(spark, slipped.catalog)
    late_table, before = lake.begin(lake.load(slipped.table)), slipped.read()
    position = Position.read(before.properties[protocol.POSITION])
    slipped.before(lambda request: bool(request.changes()), slipped.back())
    with pytest.raises(CommitRefused):
        moves.move_position(late_table, replace(position, batch=position.batch + 1))
    assert slipped.proxy.faults == []
    assert slipped.read().properties[protocol.POSITION] == before.properties[protocol.POSITION]


def test_a_snapshot_does_not_expire_after_main_went_back_to_it(slipped: Slipped, spark: SparkSession) -> None:
    """A server would remove main with the snapshot, and the table would be empty."""
    before = slipped.read()
    assert before.main is not None
    parent_id = before.main["parent-snapshot-id"]
    slipped.before(lambda request: bool(request.changes()), slipped.back())
    with pytest.raises(CommitRefused):
        expire.expire(TableStore(spark, slipped.catalog), slipped.catalog, slipped.table, [parent_id])
    assert slipped.read().refs["main"] == parent_id


def test_an_attempt_that_was_fenced_publishes_nothing(
    places: Places, plain: dict[tuple[str, int], Content], spark: SparkSession
) -> None:
    """Another machine took the attempt for dead, and sweeps its bad rows next. Main stays where it is."""
    slipped = Slipped(places)
    (pipeline,) = slipped.plan.pipelines
    (example,) = pipeline.examples
    messages = tuple(message for message in example.given if isinstance(message, Message))
    answers: list[int] = []

    def forwarded(request: Request) -> None:
        answer = request.forward()
        answers.append(answer[0])
        request.answer(*answer)

    def fence() -> None:
        lake = TableStore(spark, slipped.catalog)
        moves.fence(lake, lake.load(slipped.table))
        slipped.proxy.faults.append(at(publishes, forwarded))

    first, second = (GivenMessages(messages, number, 1) for number in example.batches)
    assert caught_up(Context(slipped.plan, spark=lambda: spark, source=first), pipeline) == 0
    context = Context(slipped.plan, spark=lambda: spark, source=second, reached=once(fence, "checked"))
    assert caught_up(context, pipeline) == 0
    assert answers == [409]
    assert content(pipeline) == without_faults(places, plain, "append")
