"""Read the table with Trino, by a catalog of its Iceberg connector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.operations.access.about import AccessSubject, TablePlace, name
from framework.operations.access.asked import OpenValue
from framework.operations.access.endpoint import Endpoint, endpoint, serving, without_headers
from framework.operations.access.steps import SHELL, ScriptStep, System, Warned, check, query, shared
from framework.sql.standard import identifier

OF = "table"
TRINO = System("In Trino", "sql", "--")


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Trino", "rest", "glue", "sql")
    server = endpoint(place)
    if place.catalog.type != "glue":
        yield from serving(about, place, server)
        yield from without_headers("Trino", place, server)
        if place.catalog.type == "sql" and not place.in_bucket:
            yield Warned("Trino has to run on this machine, where the tables' files are")
    yield from about.format_3("Trino reads in part")
    lake = name("sluice", place.catalog.name)
    file = f"etc/catalog/{lake}.properties"
    lines = "\n".join(f"{key}={_escaped(value)}" for key, value in _properties(place, server))
    yield shared(
        SHELL, "The catalog; a file that is there stays. Trino reads secrets from its own environment; start it again behind this.",
        f"test -e {file} || cat > {file} <<'END'\n{lines}\nEND", f"rm {file}",
    )  # fmt: skip
    table = f"{lake}.{identifier(place.namespace)}.{identifier(place.table)}"
    yield check(TRINO, "The table and its columns.", f"DESCRIBE {table};")
    yield query(TRINO, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
    yield query(
        TRINO, "Its snapshots.", f"SELECT * FROM {lake}.{identifier(place.namespace)}.{identifier(f'{place.table}$snapshots')};"
    )


def _properties(place: TablePlace, server: Endpoint) -> Iterator[tuple[str, str]]:
    options: Any = place.catalog.options
    yield "connector.name", "iceberg"
    if place.catalog.type == "glue":
        yield "iceberg.catalog.type", "glue"
        yield from _given({"hive.metastore.glue.endpoint-url": options.endpoint, "hive.metastore.glue.region": place.region})
        yield from _given({"hive.metastore.glue.catalogid": options.account})
    else:
        yield "iceberg.catalog.type", "rest"
        yield "iceberg.rest-catalog.uri", server.uri
        yield from _given({"iceberg.rest-catalog.warehouse": server.warehouse})
        yield from _login(server)
        if server.gives_keys:
            yield "iceberg.rest-catalog.vended-credentials-enabled", "true"
    if not place.in_bucket:
        yield "fs.hadoop.enabled", "true"
    if place.in_bucket:
        yield "fs.native-s3.enabled", "true"
        yield from _given({"s3.endpoint": server.storage.endpoint, "s3.region": server.storage.region})
        if server.storage.path_style:
            yield "s3.path-style-access", "true"


def _escaped(value: str) -> str:
    """A value as Java reads it from a file of properties: on one line, so that no value ends the file."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _login(server: Endpoint) -> Iterator[tuple[str, str]]:
    login = "iceberg.rest-catalog.oauth2"
    if server.client or server.token:
        yield "iceberg.rest-catalog.security", "OAUTH2"
    if server.token:
        yield f"{login}.token", _looked_up(server.token)
    elif server.client:
        yield f"{login}.credential", ":".join(map(_looked_up, server.client))
        yield f"{login}.server-uri", server.token_uri
        yield from _given({f"{login}.scope": server.scope})


def _looked_up(value: str | OpenValue) -> str:
    return f"${{ENV:{value.variable}}}" if isinstance(value, OpenValue) else value


def _given(values: dict[str, str | None]) -> Iterator[tuple[str, str]]:
    return ((key, value) for key, value in values.items() if value)
