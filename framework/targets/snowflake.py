"""Read the table in Snowflake as an Iceberg table, refreshed by Snowflake from the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.access import aws, snowflake
from framework.access.about import About, Place, name, secret
from framework.access.endpoint import endpoint, serving
from framework.access.snowflake import READER, WAREHOUSE
from framework.access.steps import SNOWFLAKE, Step, Warned, check, create, optional, query, shared
from framework.hosts import url_is_loopback
from framework.sql.standard import quoted_text
from framework.types import STRING

OF = "table"
_REFRESH = 60  # seconds
_POLARIS = "PRINCIPAL_ROLE:"  # how the scopes of Polaris and Open Catalog begin
_NUMBERS = ("int", "bigint", "float", "double", "decimal")


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("Snowflake", "rest", "glue")
    yield from _warnings(about, place)
    database, schema, table = name("sluice", place.catalog.name), name(place.namespace), name(place.table)
    volume, integration = name("sluice", place.catalog.name, "files"), name("sluice", place.catalog.name, "catalog")
    yield from _reader(database, schema)
    gives_keys = place.catalog.type == "rest" and endpoint(place).gives_keys
    if not gives_keys:
        yield shared(SNOWFLAKE, "Where the files are, and how Snowflake may read them.", _volume(place, volume),
                     f"DROP EXTERNAL VOLUME IF EXISTS {volume};")  # fmt: skip
    yield shared(
        SNOWFLAKE, f"The catalog. Snowflake asks it every {_REFRESH} seconds for new commits.", _integration(place, integration),
        f"DROP CATALOG INTEGRATION IF EXISTS {integration};",
    )  # fmt: skip
    named = f"{database}.{schema}.{table}"
    with_volume = "" if gives_keys else f"  EXTERNAL_VOLUME = {quoted_text(volume)}\n"
    yield create(
        SNOWFLAKE, "The table. Not a stage over its folder: that would show rows that were never published, and rows that are deleted.",
        f"CREATE ICEBERG TABLE IF NOT EXISTS {named}\n{with_volume}  CATALOG = {quoted_text(integration)}\n"
        f"  CATALOG_NAMESPACE = {quoted_text(place.namespace)}\n  CATALOG_TABLE_NAME = {quoted_text(place.table)}\n  AUTO_REFRESH = TRUE;",
        f"DROP ICEBERG TABLE IF EXISTS {named};",
    )  # fmt: skip
    yield create(SNOWFLAKE, "Who may read it.", f"GRANT SELECT ON ICEBERG TABLE {named} TO ROLE {READER};")
    yield optional(
        SNOWFLAKE, "Snowflake's own table, if that is wanted: a copy of the rows that are there now, which costs its storage.",
        f"CREATE TABLE IF NOT EXISTS {named}_copy AS SELECT * FROM {named};", f"DROP TABLE IF EXISTS {named}_copy;",
    )  # fmt: skip
    if not gives_keys:
        yield check(SNOWFLAKE, "Whom AWS has to trust: save this as a file, and give it to `sluice access aws-trust … --describe FILE`.",
                    f"DESC EXTERNAL VOLUME {volume};")  # fmt: skip
        yield check(
            SNOWFLAKE, "Whether Snowflake can read the files.", f"SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME({quoted_text(volume)});"
        )
    yield check(
        SNOWFLAKE, "Whether it reaches the catalog.", f"SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION({quoted_text(integration)});"
    )
    yield check(
        SNOWFLAKE, "When it was refreshed last, and what went wrong.", f"SELECT SYSTEM$AUTO_REFRESH_STATUS({quoted_text(named)});"
    )
    yield from _queries(about, named)


def _warnings(about: About, place: Place) -> Iterator[Step | Warned]:
    if about.pipeline.table.format_version == 3:
        yield Warned(
            "the table has Iceberg's format 3, which Snowflake does not read in every account: ask for it, or write `format_version: 2` "
            f"under `into` of `{about.pipeline.name}`, and rebuild the table"
        )
    options: Any = place.catalog.options
    if place.catalog.type == "rest" and url_is_loopback(options.uri):
        yield Warned(
            f"Snowflake cannot reach {options.uri}, which is this machine: use the environment whose catalog has a public address"
        )
    if place.catalog.type == "rest":
        yield from serving(place, endpoint(place))
    if place.catalog.type == "rest" and options.oauth is None:
        yield Warned("Snowflake logs in to a catalog by OAuth2 or with a token that does not end: this one has a token")
    yield Warned(
        "a warehouse costs while it runs: this one stops after a minute without a query. Refreshing the table costs as well"
    )
    yield Warned("it needs the role ACCOUNTADMIN, and an account in the region of the bucket: another region costs for each byte")


def _reader(database: str, schema: str) -> Iterator[Step]:
    yield snowflake.key_pair(READER, "A key for a user that is a program")
    yield snowflake.warehouse()
    yield from snowflake.places(database, schema)
    yield from snowflake.user(READER, "A role that may only read.", "A user", f"DEFAULT_WAREHOUSE = {WAREHOUSE} ")
    where = f"{database}.{schema}"
    yield create(
        SNOWFLAKE, "What the role may use.",
        f"GRANT ROLE {READER} TO USER {READER};\nGRANT USAGE ON WAREHOUSE {WAREHOUSE} TO ROLE {READER};\n"
        f"GRANT USAGE ON DATABASE {database} TO ROLE {READER};\nGRANT USAGE ON SCHEMA {where} TO ROLE {READER};",
    )  # fmt: skip


def _volume(place: Place, volume: str) -> str:
    of = endpoint(place)
    base = f"{aws.files(place).warehouse}/" if place.catalog.type == "glue" else "s3://<bucket and path of the catalog's tables>/"
    where = [f"NAME = {quoted_text(volume)}"]
    if of.storage.endpoint:
        where += ["STORAGE_PROVIDER = 'S3COMPAT'", f"STORAGE_BASE_URL = {quoted_text(base.replace('s3://', 's3compat://'))}"]
        where += [f"STORAGE_ENDPOINT = {quoted_text(of.storage.endpoint.partition('://')[2])}"]
        where += ["CREDENTIALS = (AWS_KEY_ID = '<key of the reader>' AWS_SECRET_KEY = '<its secret>')"]
    else:
        where += ["STORAGE_PROVIDER = 'S3'", f"STORAGE_BASE_URL = {quoted_text(base)}"]
        where += [f"STORAGE_AWS_ROLE_ARN = 'arn:aws:iam::<account>:role/{aws.called(place, aws.READERS)}'"]
        if of.storage.kms_key:
            where += [f"ENCRYPTION = (TYPE = 'AWS_SSE_KMS' KMS_KEY_ID = {quoted_text(of.storage.kms_key)})"]
    lines = "\n    ".join(where)
    return f"CREATE EXTERNAL VOLUME IF NOT EXISTS {volume}\n  STORAGE_LOCATIONS = ((\n    {lines}\n  ))\n  ALLOW_WRITES = FALSE;"


def _integration(place: Place, integration: str) -> str:
    options: Any = place.catalog.options
    head = f"CREATE CATALOG INTEGRATION IF NOT EXISTS {integration}"
    tail = f"  ENABLED = TRUE\n  REFRESH_INTERVAL_SECONDS = {_REFRESH};"
    namespace = f"  CATALOG_NAMESPACE = {quoted_text(place.namespace)}\n"
    if place.catalog.type == "glue":
        storage = endpoint(place).storage
        region = f"  GLUE_REGION = {quoted_text(storage.region)}\n" if storage.region else ""
        return (
            f"{head}\n  CATALOG_SOURCE = GLUE\n  TABLE_FORMAT = ICEBERG\n{namespace}"
            f"  GLUE_AWS_ROLE_ARN = 'arn:aws:iam::<account>:role/{aws.called(place, aws.READERS)}'\n"
            f"  GLUE_CATALOG_ID = {quoted_text(options.account or '<account>')}\n{region}{tail}"
        )
    of = endpoint(place)
    source = "POLARIS" if (of.scope or "").startswith(_POLARIS) else "ICEBERG_REST"
    config = [f"CATALOG_URI = {quoted_text(of.uri)}", *([f"CATALOG_NAME = {quoted_text(of.warehouse)}"] if of.warehouse else [])]
    config.append(f"ACCESS_DELEGATION_MODE = {'VENDED_CREDENTIALS' if of.gives_keys else 'EXTERNAL_VOLUME_CREDENTIALS'}")
    if options.oauth:
        login = ["TYPE = OAUTH", f"OAUTH_TOKEN_URI = {quoted_text(of.token_uri)}"]
        login += [f"OAUTH_CLIENT_ID = {quoted_text(secret(options.oauth.client_id))}"]
        login += [f"OAUTH_CLIENT_SECRET = {quoted_text(secret(options.oauth.client_secret))}"]
        login += [f"OAUTH_ALLOWED_SCOPES = ({quoted_text(of.scope or 'PRINCIPAL_ROLE:ALL')})"]
    else:
        login = ["TYPE = BEARER", f"BEARER_TOKEN = {quoted_text(of.token or '')}"]
    return (
        f"{head}\n  CATALOG_SOURCE = {source}\n  TABLE_FORMAT = ICEBERG\n{namespace}"
        f"  REST_CONFIG = (\n    {_lines(config)}\n  )\n  REST_AUTHENTICATION = (\n    {_lines(login)}\n  )\n{tail}"
    )


def _lines(values: list[str]) -> str:
    return "\n    ".join(values)


def _queries(about: About, named: str) -> Iterator[Step]:
    columns = about.pipeline.table.columns
    yield query(SNOWFLAKE, "Rows.", f"USE WAREHOUSE {WAREHOUSE};\nSELECT * FROM {named} LIMIT 10;")
    texts = [each.name for each in columns if each.type == STRING][:2]
    numbers = [each.name for each in columns if each.type.sql.lower().startswith(_NUMBERS)][:1]
    for each in texts:
        yield query(
            SNOWFLAKE,
            f"How many there are of each {each}.",
            f"SELECT {each}, count(*) FROM {named} GROUP BY {each} ORDER BY 2 DESC;",
        )
    for each in numbers:
        yield query(
            SNOWFLAKE, f"Those with the greatest {each}.", f"SELECT * FROM {named} ORDER BY {each} DESC NULLS LAST LIMIT 10;"
        )
