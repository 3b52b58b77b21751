"""A new project: a cluster, a catalog, an engine, and one pipeline that runs unchanged."""

from __future__ import annotations

from pathlib import Path

from framework.base.errors import SluiceError
from framework.machine.services import kafka
from framework.operations.init import files
from framework.systems import catalogs

TOPIC = "orders"

_CLUSTER = """\
# Where messages come from: `sluice services up kafka` starts a Kafka here. For your own write its `host:port`, and `security`
# if it needs a login.
cluster: main
bootstrap: {bootstrap}
{registry}"""
_REGISTRY = """\
# Where the messages' schemas are: `sluice services up registry` starts a registry here. `registry_auth` is its login, if it needs one.
registry: {registry}
"""
_ENGINE = """\
# The Spark that computes: on all cores of this machine, with so much memory.
engine: spark
master: local[*]
memory: 4g
"""
_ORDERS = """\
# A topic: the columns of its messages.
topic: orders
doc: Incoming orders.
value: json
columns:
  order_id: {type: string, required: true}   # a message without it is a bad row; so is one with a value of another type
  country: string
  quantity: int
  amount: {type: double, doc: EUR}
  at: timestamp
event_time: at
generate:                                    # `sluice generate orders` sends such messages
  rate: 10/s
  columns:
    order_id: {pattern: "o-[0-9]{6}"}
    country: {one_of: [DE, FR, IT]}
    quantity: {between: [0, 5]}
    amount: {between: [1, 500]}
    at: {now: true}
---
# A pipeline: from the topic, through steps, into a table.
pipeline: orders
doc: One row per order of something, large ones flagged.
from: {topic: orders}
steps:
  - filter: quantity > 0
  - flag:
      into: size
      rules:
        - {when: amount > 400, label: LARGE}
      otherwise: NORMAL
into:
  table: shop.orders
  partition_by: [day(at)]
fresh_within: 15m
tests:                                       # `sluice test` runs them, without Kafka
  - name: large orders are flagged, empty ones filtered
    given:
      - {order_id: o-1, quantity: 2, amount: 450.0, at: 2026-01-05T10:00:00Z}
      - {order_id: o-2, quantity: 1, amount: 12.5, at: 2026-01-05T10:00:01Z}
      - {order_id: o-3, quantity: 0, amount: 450.0, at: 2026-01-05T10:00:02Z}
    expect:
      - {order_id: o-1, size: LARGE}
      - {order_id: o-2, size: NORMAL}
"""


def start(folder: Path) -> tuple[str, ...]:
    """Write the first files of a project and return their names."""
    existing_specs = sorted((folder / "specs").rglob("*.yaml"))
    if existing_specs:
        hint = "nothing was written; `sluice init --topic NAME` adds a topic to these specs, or name another folder"
        raise SluiceError("file-exists", f"the folder has specs already, such as {existing_specs[0]}", hint)
    texts = first_specs()
    files.put(folder, texts)
    return *files.ignore(folder), *texts


def first_specs() -> dict[str, str]:
    return {"specs/main.yaml": main(), "specs/orders.yaml": _ORDERS}


def main(
    bootstrap: str | None = None, cluster: bool = True, catalog: bool = True, engine: bool = True, registry: str | None = None
) -> str:
    """The documents that every project has."""
    address = bootstrap or f"${{var:KAFKA:-127.0.0.1:{kafka.ports()[0]}}}"
    tables = catalogs.for_new_projects()
    registry_text = _REGISTRY.format(registry=registry) if registry else ""
    return "---\n".join(
        [_CLUSTER.format(bootstrap=address, registry=registry_text)] * cluster
        + [f"# {tables.ABOUT}\n{tables.EXAMPLE}"] * catalog
        + [_ENGINE] * engine
    )


def commands() -> tuple[tuple[str, str], ...]:
    """The next commands, each with what it does."""
    return (
        ("sluice setup", "downloads what Spark and Kafka need, once"),
        ("sluice check", "checks the specs"),
        ("sluice test", "runs the test of the pipeline, without Kafka"),
        ("sluice services up kafka", "starts a Kafka on this machine"),
        (f"sluice generate {TOPIC} --count 1000", "sends messages to the topic"),
        (f"sluice preview {TOPIC}", "shows some messages and their rows"),
        ("sluice run", "loads the messages into the table"),
    )
