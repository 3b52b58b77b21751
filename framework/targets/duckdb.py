"""Read the table with DuckDB 1.5, by Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from framework.access.about import About, name
from framework.access.endpoint import Endpoint, endpoint, serving
from framework.access.steps import DUCKDB, Step, Warned, check, create, query
from framework.sql.standard import quoted, quoted_text

OF = "table"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("DuckDB", "rest", "glue", "sql")
    of = endpoint(place)
    yield from serving(place, of)
    if about.pipeline.table.format_version == 3:
        yield Warned("DuckDB reads tables of format 3; a program older than DuckDB 1.5 may not: `format_version: 2` is for those")
    if of.headers:
        yield Warned(f"DuckDB cannot send {', '.join(of.headers)}, which the catalog `{place.catalog.name}` may ask for")
    lake = name(place.catalog.name)
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
        f"ATTACH {quoted_text(of.warehouse or '')} AS {lake} "
        f"(TYPE iceberg, SECRET {lake}_login, ENDPOINT {quoted_text(of.uri)}{delegated});",
        f"DETACH {lake};",
    )  # fmt: skip
    table = f"{lake}.{quoted(place.namespace)}.{quoted(place.table)}"
    yield check(DUCKDB, "The table and its columns.", f"DESCRIBE {table};")
    yield query(DUCKDB, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
    yield query(DUCKDB, "How many there are.", f"SELECT count(*) FROM {table};")


def _login(of: Endpoint) -> str:
    if of.token:
        return f"TYPE iceberg, TOKEN {quoted_text(of.token)}"
    scope = f", OAUTH2_SCOPE {quoted_text(of.scope)}" if of.scope else ""
    return (
        f"TYPE iceberg, CLIENT_ID {quoted_text(of.client_id or '')}, CLIENT_SECRET {quoted_text(of.client_secret or '')}, "
        f"OAUTH2_SERVER_URI {quoted_text(of.token_uri)}{scope}"
    )


def _files(of: Endpoint) -> str:
    """Of the login of the spec; a reader gets one of its own, that may read alone."""
    storage = of.storage
    parts = ["TYPE s3", "KEY_ID '<key of the reader>'", "SECRET '<its secret>'"]
    if storage.region:
        parts.append(f"REGION {quoted_text(storage.region)}")
    if storage.endpoint:
        at = urlsplit(storage.endpoint)
        parts += [f"ENDPOINT {quoted_text(at.netloc)}", f"USE_SSL {'true' if at.scheme == 'https' else 'false'}"]
    if storage.path_style:
        parts.append("URL_STYLE 'path'")
    return ", ".join(parts)
