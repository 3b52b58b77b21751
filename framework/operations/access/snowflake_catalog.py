"""Snowflake's way to the tables of a catalog and their files: its external volume and its catalog integration."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.access import aws, aws_reach, private_files
from framework.operations.access.about import AccessSubject, TablePlace, name
from framework.operations.access.endpoint import POLARIS, Endpoint, endpoint
from framework.operations.access.steps import SHELL, SNOWFLAKE, ScriptStep, check, create, shared
from framework.sql.standard import literal

REFRESH = 60  # seconds


def volume(place: TablePlace) -> str | None:
    """The name of the external volume; none where the catalog gives keys to each reader."""
    gives_keys = place.catalog.type == "rest" and endpoint(place).gives_keys
    return None if gives_keys else name("sluice", place.keeper.name, place.identifier, "files")


def integration(place: TablePlace) -> str:
    """The name of the catalog integration. With Glue it is for one table, since its role may read no other."""
    return name("sluice", place.catalog.name, *([place.identifier] if place.catalog.type == "glue" else []), "catalog")


def steps(about: AccessSubject, place: TablePlace) -> Iterator[ScriptStep]:
    server, files, catalog = endpoint(place), volume(place), integration(place)
    if files:
        yield shared(SNOWFLAKE, "Where the files of this table are, and how Snowflake may read them.", _volume(about, server, files),
                     f"DROP EXTERNAL VOLUME IF EXISTS {files};")  # fmt: skip
    yield shared(
        SNOWFLAKE, f"The catalog. Snowflake asks it every {REFRESH} seconds for new commits.",
        _glue(about, place, catalog) if place.catalog.type == "glue" else _rest(place, server, catalog),
        f"DROP CATALOG INTEGRATION IF EXISTS {catalog};",
    )  # fmt: skip
    if (files and not server.storage.endpoint) or place.catalog.type == "glue":
        yield _trusted(about, [*([f"DESC EXTERNAL VOLUME {files}"] if files else []),
                               *([f"DESC CATALOG INTEGRATION {catalog}"] if place.catalog.type == "glue" else [])])  # fmt: skip
    if files:
        why = "Whether Snowflake can read the files: continue when it does. To write is not allowed, and not needed."
        yield create(SNOWFLAKE, why, f"SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME({literal(files)});")
    if place.catalog.type == "rest":
        verify = f"SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION({literal(catalog)});"
        yield create(SNOWFLAKE, "Whether it reaches the catalog: continue when it does.", verify)


def checks(place: TablePlace) -> Iterator[ScriptStep]:
    files = volume(place)
    if files:
        yield check(SNOWFLAKE, "The volume, and who reads the files.", f"DESC EXTERNAL VOLUME {files};")
    yield check(SNOWFLAKE, "The catalog, and how it is asked.", f"DESC CATALOG INTEGRATION {integration(place)};")


def _trusted(about: AccessSubject, describe_statements: list[str]) -> ScriptStep:
    table = about.pipeline.table
    file = private_files.path(f"{name('sluice', table.catalog.name, table.identifier)}.csv")
    policies, trust = about.command("aws-policy"), about.command("aws-trust", "--describe", file)
    statements = literal("; ".join(describe_statements))
    return shared(
        SHELL, "Whom AWS has to trust: the last two commands print the policy and the role. Run of them what is for readers.",
        f"{private_files.writing(f'snow sql --role ACCOUNTADMIN --format csv --query {statements} > {file}')}\n{policies}\n{trust}",
        f"{trust} --part cleanup\n{policies} --part cleanup\nrm {file}",
    )  # fmt: skip


def _volume(about: AccessSubject, server: Endpoint, volume: str) -> str:
    base = f"{aws_reach.files(about).folder}/"
    settings = [f"NAME = {literal(volume)}"]
    if server.storage.endpoint:
        settings += ["STORAGE_PROVIDER = 'S3COMPAT'", f"STORAGE_BASE_URL = {literal(base.replace('s3://', 's3compat://'))}"]
        settings += [f"STORAGE_ENDPOINT = {literal(server.storage.endpoint.partition('://')[2])}"]
        settings += ["CREDENTIALS = (AWS_KEY_ID = '<key of the reader>' AWS_SECRET_KEY = '<its secret>')"]
    else:
        settings += ["STORAGE_PROVIDER = 'S3'", f"STORAGE_BASE_URL = {literal(base)}"]
        settings += [f"STORAGE_AWS_ROLE_ARN = {literal(aws.role(about, aws.READERS))}"]
        if server.storage.kms_key:
            settings += [f"ENCRYPTION = (TYPE = 'AWS_SSE_KMS' KMS_KEY_ID = {literal(server.storage.kms_key)})"]
    return f"CREATE EXTERNAL VOLUME IF NOT EXISTS {volume}\n  STORAGE_LOCATIONS = ((\n    {_lines(settings)}\n  ))\n  ALLOW_WRITES = FALSE;"


def _integration(name: str, source: str, namespace: str, lines: str) -> str:
    return (
        f"CREATE CATALOG INTEGRATION IF NOT EXISTS {name}\n  CATALOG_SOURCE = {source}\n  TABLE_FORMAT = ICEBERG\n"
        f"  CATALOG_NAMESPACE = {literal(namespace)}\n{lines}  ENABLED = TRUE\n  REFRESH_INTERVAL_SECONDS = {REFRESH};"
    )


def _glue(about: AccessSubject, place: TablePlace, name: str) -> str:
    region = f"  GLUE_REGION = {literal(place.region)}\n" if place.region else ""
    lines = (
        f"  GLUE_AWS_ROLE_ARN = {literal(aws.role(about, aws.READERS))}\n"
        f"  GLUE_CATALOG_ID = {literal(aws.account(about))}\n{region}"
    )
    return _integration(name, "GLUE", place.namespace, lines)


def _rest(place: TablePlace, server: Endpoint, name: str) -> str:
    source = "POLARIS" if (server.scope or "").startswith(POLARIS) else "ICEBERG_REST"
    config = [
        f"CATALOG_URI = {literal(server.uri)}",
        *([f"CATALOG_NAME = {literal(server.warehouse)}"] if server.warehouse else []),
    ]
    config.append(f"ACCESS_DELEGATION_MODE = {'VENDED_CREDENTIALS' if server.gives_keys else 'EXTERNAL_VOLUME_CREDENTIALS'}")
    if server.client:
        client, client_secret = (literal(str(value)) for value in server.client)
        login = ["TYPE = OAUTH", f"OAUTH_TOKEN_URI = {literal(server.token_uri)}"]
        login += [f"OAUTH_CLIENT_ID = {client}", f"OAUTH_CLIENT_SECRET = {client_secret}"]
        login += [f"OAUTH_ALLOWED_SCOPES = ({literal(server.scope or f'{POLARIS}ALL')})"]
    else:
        login = ["TYPE = BEARER", f"BEARER_TOKEN = {literal(str(server.token or ''))}"]
    lines = f"  REST_CONFIG = (\n    {_lines(config)}\n  )\n  REST_AUTHENTICATION = (\n    {_lines(login)}\n  )\n"
    return _integration(name, source, place.namespace, lines)


def _lines(values: list[str]) -> str:
    return "\n    ".join(values)
