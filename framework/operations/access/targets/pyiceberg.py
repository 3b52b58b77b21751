"""Read the table in Python with PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework.operations.access.about import AccessSubject, TablePlace
from framework.operations.access.asked import Value
from framework.operations.access.endpoint import Endpoint, endpoint, properties, serving
from framework.operations.access.python import mapping, text
from framework.operations.access.steps import PYTHON, SHELL, ScriptStep, Warned, check, create, query
from framework.systems import catalogs

OF = "table"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("PyIceberg", "rest", "glue", "sql")
    server = endpoint(place)
    if place.catalog.type == "rest":
        yield from serving(about, place, server)
    lake = place.catalog.name
    extras = ",".join(("pyarrow", *catalogs.client_of(place.catalog).python_extras))
    yield create(SHELL, "The library.", f'pip install "pyiceberg[{extras}]"')
    yield create(
        PYTHON, "The catalog.",
        "import os\n\nfrom pyiceberg.catalog import load_catalog\n\n"
        f"catalog = load_catalog({text(lake)}, **{mapping(_properties(place, server))})\n"
        f"table = catalog.load_table({text(place.identifier)})",
    )  # fmt: skip
    yield check(PYTHON, "The columns, and the snapshot that is read.", "print(table.schema())\nprint(table.current_snapshot())")
    yield query(PYTHON, "Rows.", "print(table.scan(limit=10).to_arrow())")
    yield query(PYTHON, "How many there are.", "print(table.scan().count())")


def _properties(place: TablePlace, server: Endpoint) -> Mapping[str, Value]:
    options: Any = place.catalog.options
    settings: dict[str, Value | None] = {"type": place.catalog.type}
    if place.catalog.type == "sql":
        settings |= {"uri": options.uri, "warehouse": options.warehouse}
    if place.catalog.type == "rest":
        settings |= {
            **properties(server),
            "header.X-Iceberg-Access-Delegation": "vended-credentials" if server.gives_keys else "",
        }
    if place.catalog.type == "glue":
        settings |= {"glue.endpoint": options.endpoint, "glue.id": options.account, "glue.region": place.region}
    if place.in_bucket:
        settings |= {"s3.endpoint": server.storage.endpoint, "s3.region": server.storage.region}
    return {key: value for key, value in settings.items() if value is not None}
