"""Read the table with DuckDB 1.5, by Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from framework.operations.access.about import AccessSubject, name
from framework.operations.access.endpoint import Endpoint, endpoint, serving, without_headers
from framework.operations.access.steps import DUCKDB, ScriptStep, Warned, check, create, query
from framework.sql.standard import identifier, literal

OF = "table"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("DuckDB", "rest", "glue", "sql")
    server = endpoint(place)
    yield from serving(about, place, server)
    yield from about.format_3("a DuckDB older than 1.5 does not read")
    yield from without_headers("DuckDB", place, server)
    lake = name("sluice", place.catalog.name)
    yield create(DUCKDB, "Extensions, once per session.", "INSTALL httpfs; INSTALL avro; INSTALL iceberg; LOAD iceberg;")
    yield create(
        DUCKDB,
        "The login to the catalog.",
        f"CREATE OR REPLACE SECRET {lake}_login ({_login(server)});",
        f"DROP SECRET {lake}_login;",
    )
    if place.in_bucket and not server.gives_keys:
        yield create(
            DUCKDB,
            "The login to the files.",
            f"CREATE OR REPLACE SECRET {lake}_files ({_files(server)});",
            f"DROP SECRET {lake}_files;",
        )
    delegation = "" if server.gives_keys else ", ACCESS_DELEGATION_MODE 'none'"
    yield create(
        DUCKDB, "The catalog.",
        f"ATTACH {literal(server.warehouse or '')} AS {lake} "
        f"(TYPE iceberg, SECRET {lake}_login, ENDPOINT {literal(server.uri)}{delegation});",
        f"DETACH {lake};",
    )  # fmt: skip
    table = f"{lake}.{identifier(place.namespace)}.{identifier(place.table)}"
    yield check(DUCKDB, "The table and its columns.", f"DESCRIBE {table};")
    yield query(DUCKDB, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
    yield query(DUCKDB, "How many there are.", f"SELECT count(*) FROM {table};")


def _login(server: Endpoint) -> str:
    if not server.client:
        return f"TYPE iceberg, TOKEN {literal(str(server.token or ''))}"
    client_id, client_secret = (literal(str(value)) for value in server.client)
    scope = f", OAUTH2_SCOPE {literal(server.scope)}" if server.scope else ""
    return f"TYPE iceberg, CLIENT_ID {client_id}, CLIENT_SECRET {client_secret}, OAUTH2_SERVER_URI {literal(server.token_uri)}{scope}"


def _files(server: Endpoint) -> str:
    storage = server.storage
    parts = ["TYPE s3", "KEY_ID '<key of the reader>'", "SECRET '<its secret>'"]
    if storage.region:
        parts.append(f"REGION {literal(storage.region)}")
    if storage.endpoint:
        address = urlsplit(storage.endpoint)
        parts += [f"ENDPOINT {literal(address.netloc)}", f"USE_SSL {'true' if address.scheme == 'https' else 'false'}"]
    if storage.path_style:
        parts.append("URL_STYLE 'path'")
    return ", ".join(parts)
