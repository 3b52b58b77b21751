"""Read the table in Python with PyIceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework import catalogs
from framework.access.about import About, Place
from framework.access.endpoint import Endpoint, endpoint, serving
from framework.access.python import mapping, text
from framework.access.steps import PYTHON, SHELL, Step, Warned, check, create, query
from framework.model import SecretRef

OF = "table"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("PyIceberg", "rest", "glue", "sql")
    of = endpoint(place)
    if place.catalog.type == "rest":
        yield from serving(place, of)
    lake = place.catalog.name
    extras = ",".join(("pyarrow", *catalogs.of(place.catalog).python_extras))
    yield create(SHELL, "The library.", f'pip install "pyiceberg[{extras}]"')
    yield create(
        PYTHON, "The catalog.",
        "import os\n\nfrom pyiceberg.catalog import load_catalog\n\n"
        f"catalog = load_catalog({text(lake)}, **{mapping(_properties(place, of))})\ntable = catalog.load_table({text(place.identifier)})",
    )  # fmt: skip
    yield check(PYTHON, "The columns, and the snapshot that is read.", "print(table.schema())\nprint(table.current_snapshot())")
    yield query(PYTHON, "Rows.", "print(table.scan(limit=10).to_arrow())")
    yield query(PYTHON, "How many there are.", "print(table.scan().count())")


def _properties(place: Place, of: Endpoint) -> Mapping[str, str | SecretRef | tuple[SecretRef | str, ...]]:
    options: Any = place.catalog.options
    properties: dict[str, Any] = {"type": place.catalog.type}
    if place.catalog.type == "sql":
        properties |= {"uri": options.uri, "warehouse": options.warehouse}
    if place.catalog.type == "rest":
        properties |= {"uri": of.uri, "warehouse": of.warehouse, "token": options.token, "scope": of.scope}
        if options.oauth:
            properties |= {
                "credential": (options.oauth.client_id, options.oauth.client_secret),
                "oauth2-server-uri": of.token_uri,
            }
        properties |= {f"header.{name}": value for name, value in options.headers.items()}
        properties["header.X-Iceberg-Access-Delegation"] = "vended-credentials" if of.gives_keys else ""
    if place.catalog.type == "glue":
        properties |= {"glue.endpoint": options.endpoint, "glue.id": options.account, "glue.region": of.storage.region}
    if place.in_bucket:
        properties |= {"s3.endpoint": of.storage.endpoint, "s3.region": of.storage.region}
    return {key: value for key, value in properties.items() if value not in (None, "")}
