"""Read the table with DuckDB 1.5, by Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from framework.operations.access.about import About, name
from framework.operations.access.endpoint import Endpoint, endpoint, serving, without_headers
from framework.operations.access.steps import DUCKDB, Step, Warned, check, create, query
from framework.sql.standard import identifier, literal

OF = "table"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("DuckDB", "rest", "glue", "sql")
    of = endpoint(place)
    yield from serving(about, place, of)
    yield from about.format_3("a DuckDB older than 1.5 does not read")
    yield from without_headers("DuckDB", place, of)
    lake = name("sluice", place.catalog.name)
    yield create(DUCKDB, "Extensions, once per session.", "INSTALL httpfs; INSTALL avro; INSTALL iceberg; LOAD iceberg;")
    yield create(
        DUCKDB,
        "The login to the catalog.",
        f"CREATE OR REPLACE SECRET {lake}_login ({_login(of)});",
        f"DROP SECRET {lake}_login;",
    )
    if place.in_bucket and not of.gives_keys:
        yield create(
            DUCKDB,
            "The login to the files.",
            f"CREATE OR REPLACE SECRET {lake}_files ({_files(of)});",
            f"DROP SECRET {lake}_files;",
        )
    delegated = "" if of.gives_keys else ", ACCESS_DELEGATION_MODE 'none'"
    yield create(
        DUCKDB, "The catalog.",
        f"ATTACH {literal(of.warehouse or '')} AS {lake} "
        f"(TYPE iceberg, SECRET {lake}_login, ENDPOINT {literal(of.uri)}{delegated});",
        f"DETACH {lake};",
    )  # fmt: skip
    table = f"{lake}.{identifier(place.namespace)}.{identifier(place.table)}"
    yield check(DUCKDB, "The table and its columns.", f"DESCRIBE {table};")
    yield query(DUCKDB, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
    yield query(DUCKDB, "How many there are.", f"SELECT count(*) FROM {table};")


def _login(of: Endpoint) -> str:
    if not of.client:
        return f"TYPE iceberg, TOKEN {literal(str(of.token or ''))}"
    name, its_secret = (literal(str(each)) for each in of.client)
    scope = f", OAUTH2_SCOPE {literal(of.scope)}" if of.scope else ""
    return f"TYPE iceberg, CLIENT_ID {name}, CLIENT_SECRET {its_secret}, OAUTH2_SERVER_URI {literal(of.token_uri)}{scope}"


def _files(of: Endpoint) -> str:
    storage = of.storage
    parts = ["TYPE s3", "KEY_ID '<key of the reader>'", "SECRET '<its secret>'"]
    if storage.region:
        parts.append(f"REGION {literal(storage.region)}")
    if storage.endpoint:
        at = urlsplit(storage.endpoint)
        parts += [f"ENDPOINT {literal(at.netloc)}", f"USE_SSL {'true' if at.scheme == 'https' else 'false'}"]
    if storage.path_style:
        parts.append("URL_STYLE 'path'")
    return ", ".join(parts)
