"""Roles in Snowflake Open Catalog or Apache Polaris: one that writes for Sluice, and one that reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from framework.access import aws
from framework.access.about import About, name
from framework.access.endpoint import POLARIS
from framework.access.steps import SHELL, Step, Warned, check, shared

OF = "table"
_WRITES = "CATALOG_MANAGE_CONTENT"
_READS = ("CATALOG_READ_PROPERTIES", "NAMESPACE_LIST", "NAMESPACE_READ_PROPERTIES", "TABLE_LIST", "TABLE_READ_DATA")
_TOKEN = "<token of an administrator>"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("Open Catalog", "rest")
    options: Any = place.catalog.options
    catalog = options.warehouse or "<catalog>"
    management = f"{options.uri.rstrip('/').removesuffix('/catalog')}/management/v1"
    scope = options.oauth.scope if options.oauth else ""
    named = scope.partition(POLARIS)[2]
    writer = named if named.isidentifier() and named != "ALL" else name("sluice", place.catalog.name)
    yield Warned(
        "this is how Polaris and Open Catalog are managed; other REST catalogs differ. What is there already answers 409"
    )
    yield Warned("an External catalog of Open Catalog takes no commits of others: Sluice needs an internal one")
    yield Warned(
        "a new service connection prints its id and secret once: those of the writer are what `oauth` of the catalog names"
    )
    yield from _catalog(about, management, catalog)
    for role, what, privileges in ((writer, "writes", (_WRITES,)), (f"{writer}_reader", "reads", _READS)):
        yield from _role(management, catalog, role, what, privileges)
    of_writer = f"catalogs/{_part(catalog)}/catalog-roles/{_part(writer)}/grants"
    yield check(SHELL, "What the role that writes may do.", _ask(management, "GET", of_writer))


def _catalog(about: About, management: str, catalog: str) -> Iterator[Step]:
    where = aws.files(about)
    storage = {
        "storageType": "S3", "roleArn": aws.role(about, aws.CATALOG), "allowedLocations": [f"{where.warehouse}/"],
        **({"region": where.storage.region} if where.storage.region else {}),
    }  # fmt: skip
    new = {
        "name": catalog, "type": "INTERNAL", "properties": {"default-base-location": f"{where.warehouse}/"}, "storageConfigInfo": storage,
    }  # fmt: skip
    path = f"catalogs/{_part(catalog)}"
    yield shared(
        SHELL, "The catalog. It gives keys to the files of its tables, by a role of AWS.",
        _ask(management, "POST", "catalogs", {"catalog": new}), _ask(management, "DELETE", path),
    )  # fmt: skip
    file = f"{name('sluice', about.pipeline.table.catalog.name)}.json"
    policies, trust = about.command("aws-policy"), about.command("aws-trust", "--describe", file)
    yield shared(
        SHELL, "Whom AWS has to trust: the last two commands print the policies and the role. Run of them what is for maintaining.",
        f"{_ask(management, 'GET', path)} > {file}\n{policies}\n{trust}",
        f"{trust} --part cleanup\n{policies} --part cleanup\nrm {file}",
    )  # fmt: skip


def _role(management: str, catalog: str, role: str, what: str, privileges: tuple[str, ...]) -> Iterator[Step]:
    connection, of_catalog = f"{role}_connection", f"catalogs/{_part(catalog)}/catalog-roles"
    yield shared(
        SHELL, f"A service connection that {what}.", _ask(management, "POST", "principals", {"principal": {"name": connection}}),
        _ask(management, "DELETE", f"principals/{_part(connection)}"),
    )  # fmt: skip
    yield shared(
        SHELL, f"Its principal role, which the scope of a login names: PRINCIPAL_ROLE:{role}.",
        "\n".join((
            _ask(management, "POST", "principal-roles", {"principalRole": {"name": role}}),
            _ask(management, "PUT", f"principals/{_part(connection)}/principal-roles", {"principalRole": {"name": role}}),
        )),
        _ask(management, "DELETE", f"principal-roles/{_part(role)}"),
    )  # fmt: skip
    grants = (
        _ask(management, "PUT", f"{of_catalog}/{_part(role)}/grants", {"grant": {"type": "catalog", "privilege": each}})
        for each in privileges
    )
    yield shared(
        SHELL, f"What it may do in the catalog {catalog}: {', '.join(privileges)}.",
        "\n".join((
            _ask(management, "POST", of_catalog, {"catalogRole": {"name": role}}),
            *grants,
            _ask(management, "PUT", f"principal-roles/{_part(role)}/catalog-roles/{_part(catalog)}", {"catalogRole": {"name": role}}),
        )),
        _ask(management, "DELETE", f"{of_catalog}/{_part(role)}"),
    )  # fmt: skip


def _part(name: str) -> str:
    """A part of an address."""
    return quote(name, safe="<>")


def _ask(management: str, method: str, path: str, body: object = None) -> str:
    sent = ["--json", json.dumps(body)] if body is not None else []
    return shlex.join(["curl", "--fail", "-X", method, "-H", f"Authorization: Bearer {_TOKEN}", *sent, f"{management}/{path}"])
