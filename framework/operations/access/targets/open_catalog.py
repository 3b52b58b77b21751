"""Roles in Snowflake Open Catalog or Apache Polaris: one that writes for Sluice, and one that reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from framework.operations.access import aws, aws_reach
from framework.operations.access.about import AccessSubject, name
from framework.operations.access.asked import without_secret
from framework.operations.access.endpoint import POLARIS
from framework.operations.access.steps import SHELL, ScriptStep, Warned, check, create, shared

OF = "table"
_WRITES = "CATALOG_MANAGE_CONTENT"
_FINDS = ("CATALOG_READ_PROPERTIES", "NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES", "TABLE_LIST")
_READS = "TABLE_READ_DATA"
_TOKEN = "<token of an administrator>"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Open Catalog", "rest")
    options: Any = place.catalog.options
    catalog = options.warehouse or "<catalog>"
    address = f"{options.uri.rstrip('/').removesuffix('/catalog')}/management/v1"
    scope = options.oauth.scope if options.oauth else ""
    role_name = scope.partition(POLARIS)[2]
    writer = role_name if role_name not in ("", "ALL") else name("sluice", place.catalog.name)
    yield Warned(
        "this is how Polaris and Open Catalog are managed; other REST catalogs differ. What is there already answers 409"
    )
    yield Warned("an External catalog of Open Catalog takes no commits of others: Sluice needs an internal one")
    yield Warned(
        "a new service connection prints its id and secret once: those of the writer are what `oauth` of the catalog names"
    )
    management = _Management(address, tuple((key, str(without_secret(value))) for key, value in options.headers.items()))
    yield from _catalog(about, management, catalog)
    for role, verb, privileges in ((writer, "writes", (_WRITES,)), (f"{writer}_reader", "reads", _FINDS)):
        yield from _role(management, catalog, role, verb, privileges)
    table = {"type": "table", "namespace": [place.namespace], "tableName": place.table, "privilege": _READS}
    reader_path = f"catalogs/{_part(catalog)}/catalog-roles/{_part(f'{writer}_reader')}/grants"
    yield create(
        SHELL, "The rows of this table, for the role that reads. The table has to be there: run this behind the first `sluice run`.",
        management.ask("PUT", reader_path, {"grant": table}), management.ask("POST", reader_path, {"grant": table}),
    )  # fmt: skip
    writer_path = f"catalogs/{_part(catalog)}/catalog-roles/{_part(writer)}/grants"
    yield check(SHELL, "What the role that writes may do.", management.ask("GET", writer_path))


def _catalog(about: AccessSubject, management: _Management, catalog: str) -> Iterator[ScriptStep]:
    about = replace(about, whole_catalog=True)  # the catalog's role reaches all its tables; a reader gets keys to one
    location = aws_reach.files(about)
    storage = {
        "storageType": "S3", "roleArn": aws.role(about, aws.CATALOG), "allowedLocations": [f"{location.warehouse}/"],
        **({"region": location.storage.region} if location.storage.region else {}),
    }  # fmt: skip
    body = {
        "name": catalog, "type": "INTERNAL", "properties": {"default-base-location": f"{location.warehouse}/"},
        "storageConfigInfo": storage,
    }  # fmt: skip
    path = f"catalogs/{_part(catalog)}"
    yield shared(
        SHELL, "The catalog. It gives keys to the files of its tables, one table at a time, by a role of AWS that reaches them all.",
        management.ask("POST", "catalogs", {"catalog": body}), management.ask("DELETE", path),
    )  # fmt: skip
    yield create(SHELL, "Whom that role has to trust: userArn and externalId.", management.ask("GET", path))
    yield from aws.trusted(about, aws.CATALOG, "maintain", ("<userArn>", "<externalId>"))


def _role(management: _Management, catalog: str, role: str, verb: str, privileges: tuple[str, ...]) -> Iterator[ScriptStep]:
    connection, roles_path = f"{role}_connection", f"catalogs/{_part(catalog)}/catalog-roles"
    yield shared(
        SHELL, f"A service connection that {verb}.", management.ask("POST", "principals", {"principal": {"name": connection}}),
        management.ask("DELETE", f"principals/{_part(connection)}"),
    )  # fmt: skip
    principal_role = {"principalRole": {"name": role}}
    yield shared(
        SHELL, f"Its principal role, which the scope of a login names: PRINCIPAL_ROLE:{role}.",
        "\n".join((
            management.ask("POST", "principal-roles", principal_role),
            management.ask("PUT", f"principals/{_part(connection)}/principal-roles", principal_role),
        )),
        management.ask("DELETE", f"principal-roles/{_part(role)}"),
    )  # fmt: skip
    role_path, catalog_role = f"{roles_path}/{_part(role)}", {"catalogRole": {"name": role}}
    yield shared(
        SHELL, f"What it may do in the catalog {catalog}: {', '.join(privileges)}.",
        "\n".join((
            management.ask("POST", roles_path, catalog_role),
            *(
                management.ask("PUT", f"{role_path}/grants", {"grant": {"type": "catalog", "privilege": privilege}})
                for privilege in privileges
            ),
            management.ask("PUT", f"principal-roles/{_part(role)}/catalog-roles/{_part(catalog)}", catalog_role),
        )),
        management.ask("DELETE", role_path),
    )  # fmt: skip


@dataclass(frozen=True)
class _Management:
    """Requests to the catalog's management."""

    address: str
    headers: tuple[tuple[str, str], ...]

    def ask(self, method: str, path: str, body: object = None) -> str:
        headers = [f"Authorization: Bearer {_TOKEN}", *(f"{name}: {value}" for name, value in self.headers)]
        body_options = ["--json", json.dumps(body)] if body is not None else []
        header_options = (part for header in headers for part in ("-H", header))
        return shlex.join(["curl", "--fail", "-X", method, *header_options, *body_options, f"{self.address}/{path}"])


def _part(name: str) -> str:
    """A part of an address."""
    return quote(name, safe="<>")
