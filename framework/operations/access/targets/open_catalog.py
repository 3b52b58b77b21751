"""Roles in Snowflake Open Catalog or Apache Polaris: one that writes for Sluice, and one that reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from framework.operations.access import aws, aws_reach
from framework.operations.access.about import About, name
from framework.operations.access.asked import asked
from framework.operations.access.endpoint import POLARIS
from framework.operations.access.steps import SHELL, Step, Warned, check, create, shared

OF = "table"
_WRITES = "CATALOG_MANAGE_CONTENT"
_FINDS = ("CATALOG_READ_PROPERTIES", "NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES", "TABLE_LIST")
_READS = "TABLE_READ_DATA"
_TOKEN = "<token of an administrator>"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("Open Catalog", "rest")
    options: Any = place.catalog.options
    catalog = options.warehouse or "<catalog>"
    management = f"{options.uri.rstrip('/').removesuffix('/catalog')}/management/v1"
    scope = options.oauth.scope if options.oauth else ""
    named = scope.partition(POLARIS)[2]
    writer = named if named not in ("", "ALL") else name("sluice", place.catalog.name)
    yield Warned(
        "this is how Polaris and Open Catalog are managed; other REST catalogs differ. What is there already answers 409"
    )
    yield Warned("an External catalog of Open Catalog takes no commits of others: Sluice needs an internal one")
    yield Warned(
        "a new service connection prints its id and secret once: those of the writer are what `oauth` of the catalog names"
    )
    ask = _Management(management, tuple((key, str(asked(value))) for key, value in options.headers.items()))
    yield from _catalog(about, ask, catalog)
    for role, what, privileges in ((writer, "writes", (_WRITES,)), (f"{writer}_reader", "reads", _FINDS)):
        yield from _role(ask, catalog, role, what, privileges)
    table = {"type": "table", "namespace": [place.namespace], "tableName": place.table, "privilege": _READS}
    of_reader = f"catalogs/{_part(catalog)}/catalog-roles/{_part(f'{writer}_reader')}/grants"
    yield create(
        SHELL, "The rows of this table, for the role that reads. The table has to be there: run this behind the first `sluice run`.",
        ask.ask("PUT", of_reader, {"grant": table}), ask.ask("POST", of_reader, {"grant": table}),
    )  # fmt: skip
    of_writer = f"catalogs/{_part(catalog)}/catalog-roles/{_part(writer)}/grants"
    yield check(SHELL, "What the role that writes may do.", ask.ask("GET", of_writer))


def _catalog(about: About, ask: _Management, catalog: str) -> Iterator[Step]:
    about = replace(about, whole_catalog=True)  # its role reaches all its tables: a reader gets keys to one
    where = aws_reach.files(about)
    storage = {
        "storageType": "S3", "roleArn": aws.role(about, aws.CATALOG), "allowedLocations": [f"{where.warehouse}/"],
        **({"region": where.storage.region} if where.storage.region else {}),
    }  # fmt: skip
    new = {
        "name": catalog, "type": "INTERNAL", "properties": {"default-base-location": f"{where.warehouse}/"}, "storageConfigInfo": storage,
    }  # fmt: skip
    path = f"catalogs/{_part(catalog)}"
    yield shared(
        SHELL, "The catalog. It gives keys to the files of its tables, one table at a time, by a role of AWS that reaches them all.",
        ask.ask("POST", "catalogs", {"catalog": new}), ask.ask("DELETE", path),
    )  # fmt: skip
    yield create(SHELL, "Whom that role has to trust: userArn and externalId.", ask.ask("GET", path))
    yield from aws.trusted(about, aws.CATALOG, "maintain", ("<userArn>", "<externalId>"))


def _role(ask: _Management, catalog: str, role: str, what: str, privileges: tuple[str, ...]) -> Iterator[Step]:
    connection, of_catalog = f"{role}_connection", f"catalogs/{_part(catalog)}/catalog-roles"
    yield shared(
        SHELL, f"A service connection that {what}.", ask.ask("POST", "principals", {"principal": {"name": connection}}),
        ask.ask("DELETE", f"principals/{_part(connection)}"),
    )  # fmt: skip
    principal_role = {"principalRole": {"name": role}}
    yield shared(
        SHELL, f"Its principal role, which the scope of a login names: PRINCIPAL_ROLE:{role}.",
        "\n".join((
            ask.ask("POST", "principal-roles", principal_role),
            ask.ask("PUT", f"principals/{_part(connection)}/principal-roles", principal_role),
        )),
        ask.ask("DELETE", f"principal-roles/{_part(role)}"),
    )  # fmt: skip
    of_role, catalog_role = f"{of_catalog}/{_part(role)}", {"catalogRole": {"name": role}}
    yield shared(
        SHELL, f"What it may do in the catalog {catalog}: {', '.join(privileges)}.",
        "\n".join((
            ask.ask("POST", of_catalog, catalog_role),
            *(ask.ask("PUT", f"{of_role}/grants", {"grant": {"type": "catalog", "privilege": each}}) for each in privileges),
            ask.ask("PUT", f"principal-roles/{_part(role)}/catalog-roles/{_part(catalog)}", catalog_role),
        )),
        ask.ask("DELETE", of_role),
    )  # fmt: skip


@dataclass(frozen=True)
class _Management:
    """Requests to the catalog's management."""

    address: str
    headers: tuple[tuple[str, str], ...]

    def ask(self, method: str, path: str, body: object = None) -> str:
        headers = [f"Authorization: Bearer {_TOKEN}", *(f"{name}: {value}" for name, value in self.headers)]
        sent = ["--json", json.dumps(body)] if body is not None else []
        named = (part for each in headers for part in ("-H", each))
        return shlex.join(["curl", "--fail", "-X", method, *named, *sent, f"{self.address}/{path}"])


def _part(name: str) -> str:
    """A part of an address."""
    return quote(name, safe="<>")
