"""One cause is one problem: what follows from it is not reported, and commands that do not need it work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.host.cli import main
from framework.machine.services.ports import free_port
from tests.support.spec_parts import LAKE

EXPORTS = """
---
export: by_price
from: {table: shop.orders}
window: {last: day, by: sent}
query: "select price, sum(quantity) as quantity from input group by price"
file: {format: csv, to: "exports/{window_start:%Y-%m-%d}.csv"}
---
export: whole
from: {table: shop.orders}
query: "select price + 1 as more, size from input"
file: {format: csv, to: exports/whole.csv}
"""
PIPELINES = """
---
pipeline: orders
from: {topic: orders}
steps:
  - filter: quantity > 0
  - derive: {total: quantity * price}
  - flag: {into: size, rules: [{when: total > 900, label: LARGE}], otherwise: NORMAL}
into: {table: shop.orders, write: upsert, keys: [order_id], partition_by: [day(sent)], sort_by: [price]}
expect:
  - {column: price, between: [0, 10]}
---
pipeline: per_country
from: {table: shop.orders}
steps:
  - derive: {both: price + quantity}
into: {table: shop.per_country, write: upsert, keys: [order_id]}
---
pipeline: shipments
from: {topic: shipments}
steps:
  - join: {table: shop.orders, on: [order_id], take: [price]}
into: {table: shop.shipments}
"""
BY_REGISTRY = """
---
topic: orders
value: avro
event_time: sent
generate:
  rate: 1/s
  columns: {price: {between: [1, 5]}}
---
topic: shipments
value: protobuf
---
topic: payments
value: json_schema
event_time: paid
"""
BROKEN = """
---
topic: orders
value: json
columns: {order_id: string, quantity: int, price: "decimal(99,2)", sent: timestmp, country: string}
event_time: sent
---
topic: shipments
value: json
columns: {order_id: string}
"""


def written(folder: Path, *documents: str) -> None:
    (folder / "specs").mkdir()
    cluster = f'cluster: main\nbootstrap: "127.0.0.1:{free_port()}"\nregistry: http://127.0.0.1:{free_port()}\n---\n{LAKE}'
    (folder / "specs" / "all.yaml").write_text(cluster + "".join(documents))


def codes() -> list[str]:
    done = CliRunner().invoke(main, ["check", "--json"])
    return [problem["code"] for problem in json.loads(done.stdout)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    return tmp_path


def test_a_column_without_a_type_is_no_problem_of_the_exports_of_its_table(folder: Path) -> None:
    written(folder, BROKEN, PIPELINES, EXPORTS)
    assert codes() == ["bad-type", "bad-type"]


@pytest.mark.slow
def test_a_registry_that_is_away_is_one_problem(folder: Path) -> None:
    written(folder, BY_REGISTRY.replace("event_time: sent", "key: {format: avro}\nevent_time: sent"), PIPELINES, EXPORTS)
    assert codes() == ["registry-unreachable"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("clean --dry-run", "would be deleted"),
        ("services down registry", "registry: was not running"),
        ("history orders", "no table yet"),
        ("bad-rows shipments", "no bad rows"),
        ("drop orders --yes", "nothing to drop"),
        ("pause orders", "paused since"),
        ("query 'select 1 as one'", "one"),
    ],
)
def test_a_command_that_needs_no_schema_works_without_the_registry(folder: Path, command: str, says: str) -> None:
    written(folder, BY_REGISTRY, PIPELINES)
    (folder / ".sluice").mkdir()
    (folder / ".sluice" / "demo.log").write_text("x")
    done = CliRunner().invoke(main, shlex.split(command))
    assert (done.exit_code, says in done.output) == (0, True), done.output


@pytest.mark.slow
def test_a_pipeline_that_reads_the_table_of_another_needs_the_registry(folder: Path) -> None:
    written(folder, BY_REGISTRY, PIPELINES)
    done = CliRunner().invoke(main, ["history", "per_country"])
    assert (done.exit_code, "registry-unreachable" in done.output) == (1, True), done.output


@pytest.mark.slow
def test_other_problems_stop_such_a_command(folder: Path) -> None:
    written(folder, BY_REGISTRY.replace("value: protobuf", "value: protobuff"))
    done = CliRunner().invoke(main, ["clean", "--dry-run"])
    assert done.exit_code == 1
    assert "protobuff" in done.output and "registry-unreachable" not in done.output
