"""Read the table in Snowflake as an Iceberg table, refreshed by Snowflake from the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.base.errors import SluiceError
from framework.base.hosts import url_is_loopback
from framework.base.types import STRING, is_numeric
from framework.operations.access import snowflake, snowflake_catalog
from framework.operations.access.about import AccessSubject, TablePlace
from framework.operations.access.endpoint import endpoint, serving, without_headers
from framework.operations.access.snowflake import READER, WAREHOUSE, called, identifier
from framework.operations.access.steps import SNOWFLAKE, ScriptStep, Warned, check, create, optional, query
from framework.sql.standard import literal

OF = "table"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Snowflake", "rest", "glue")
    yield from _warnings(about, place)
    database, schema = called("sluice", place.catalog.name), called(place.namespace)
    table_name = f"{database}.{schema}.{called(place.table)}"
    yield from _reader(database, schema)
    yield from snowflake_catalog.steps(about, place)
    yield from _table(place, table_name)
    yield optional(
        SNOWFLAKE, "Snowflake's own table, if that is wanted: a copy of the rows that are there now, which costs its storage.",
        f"USE WAREHOUSE {WAREHOUSE};\nCREATE TABLE IF NOT EXISTS {_copy(table_name)} AS SELECT * FROM {table_name};\n"
        f"GRANT SELECT ON TABLE {_copy(table_name)} TO ROLE {READER};",
        f"DROP TABLE IF EXISTS {_copy(table_name)};", "the copy",
    )  # fmt: skip
    yield from snowflake_catalog.checks(place)
    status = f"SELECT SYSTEM$AUTO_REFRESH_STATUS({literal(table_name)});"
    yield check(SNOWFLAKE, "When it was refreshed last, and what went wrong.", status)
    yield from _queries(about, table_name)


def _warnings(about: AccessSubject, place: TablePlace) -> Iterator[ScriptStep | Warned]:
    yield snowflake.key_note(READER)
    yield from about.format_3("Snowflake does not read in every account")
    options: Any = place.catalog.options
    if place.catalog.type == "rest":
        server = endpoint(place)
        if url_is_loopback(options.uri):
            hint = "use the environment whose catalog has a public address"
            yield Warned(f"Snowflake cannot reach {options.uri}, which is this machine: {hint}")
        yield from serving(about, place, server)
        yield from without_headers("Snowflake", place, server)
        if not server.client and not server.token:
            message = f"Snowflake logs in to a catalog by OAuth2 or with a token, and `{place.catalog.name}` has neither"
            raise SluiceError(
                "not-reachable", message, "give the catalog `oauth` or `token`, or list the table in one that has it"
            )
        if server.token:
            yield Warned("the token must not end, or Snowflake loses the table: OAuth2 is better")
    yield Warned(
        "a warehouse costs while it runs: this one stops after a minute without a query. Refreshing the table costs as well"
    )
    yield Warned("it needs the role ACCOUNTADMIN, and an account in the region of the bucket: another region costs for each byte")


def _reader(database: str, schema: str) -> Iterator[ScriptStep]:
    yield snowflake.key_pair(READER, "A key for a user that is a program")
    yield snowflake.warehouse()
    yield from snowflake.places(database, schema)
    yield from snowflake.user(READER, "A role that may only read.", "A user", f"DEFAULT_WAREHOUSE = {WAREHOUSE} ")
    schema_name = f"{database}.{schema}"
    yield create(
        SNOWFLAKE, "What the role may use.",
        f"GRANT ROLE {READER} TO USER {READER};\nGRANT USAGE ON WAREHOUSE {WAREHOUSE} TO ROLE {READER};\n"
        f"GRANT USAGE ON DATABASE {database} TO ROLE {READER};\nGRANT USAGE ON SCHEMA {schema_name} TO ROLE {READER};",
    )  # fmt: skip


def _table(place: TablePlace, table_name: str) -> Iterator[ScriptStep]:
    volume = snowflake_catalog.volume(place)
    with_volume = f"  EXTERNAL_VOLUME = {literal(volume)}\n" if volume else ""
    yield create(
        SNOWFLAKE, "The table. Not a stage over its folder: that would show rows that were never published, and rows that are deleted.",
        f"CREATE ICEBERG TABLE IF NOT EXISTS {table_name}\n{with_volume}  CATALOG = {literal(snowflake_catalog.integration(place))}\n"
        f"  CATALOG_NAMESPACE = {literal(place.namespace)}\n  CATALOG_TABLE_NAME = {literal(place.table)}\n  AUTO_REFRESH = TRUE;",
        f"DROP ICEBERG TABLE IF EXISTS {table_name};",
    )  # fmt: skip
    yield create(SNOWFLAKE, "Who may read it.", f"GRANT SELECT ON ICEBERG TABLE {table_name} TO ROLE {READER};")


def _copy(table_name: str) -> str:
    return f'{table_name[:-1]}_COPY"' if table_name.endswith('"') else f"{table_name}_copy"


def _queries(about: AccessSubject, table_name: str) -> Iterator[ScriptStep]:
    columns = about.pipeline.table.readable
    yield snowflake.asking(READER, WAREHOUSE)
    yield query(SNOWFLAKE, "Rows.", f"SELECT * FROM {table_name} LIMIT 10;")
    texts = [column.name for column in columns if column.type == STRING][:5]
    numbers = [column.name for column in columns if is_numeric(column.type)][:1]
    for column_name in texts:
        column = identifier(column_name)
        group_query = f"SELECT {column}, count(*) FROM {table_name} GROUP BY {column} ORDER BY 2 DESC;"
        yield query(SNOWFLAKE, f"How many there are of each {column_name}.", group_query)
    for column_name in numbers:
        top_query = f"SELECT * FROM {table_name} ORDER BY {identifier(column_name)} DESC NULLS LAST LIMIT 10;"
        yield query(SNOWFLAKE, f"Those with the greatest {column_name}.", top_query)
