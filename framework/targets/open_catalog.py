"""Roles in Snowflake Open Catalog or Apache Polaris: one that writes for Sluice, and one that reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from framework.access.about import About, name
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
    named = scope.partition("PRINCIPAL_ROLE:")[2]
    writer = named if named.isidentifier() and named != "ALL" else name("sluice", place.catalog.name)
    yield Warned(
        "this is the management of Polaris and Open Catalog: other REST catalogs have their own. What is there already answers 409"
    )
    yield Warned("an External catalog of Open Catalog takes no commits of others: Sluice needs an internal one")
    yield Warned("a new service connection prints its id and secret once: they are the secrets that `oauth` of the catalog names")
    for role, what, privileges in ((writer, "writes", (_WRITES,)), (f"{writer}_reader", "reads", _READS)):
        yield from _role(management, catalog, role, what, privileges)
    yield check(
        SHELL, "What the role that writes may do.", _ask(management, "GET", f"catalogs/{catalog}/catalog-roles/{writer}/grants")
    )


def _role(management: str, catalog: str, role: str, what: str, privileges: tuple[str, ...]) -> Iterator[Step]:
    connection, of_catalog = f"{role}_connection", f"catalogs/{catalog}/catalog-roles"
    yield shared(
        SHELL, f"A service connection that {what}.", _ask(management, "POST", "principals", {"principal": {"name": connection}}),
        _ask(management, "DELETE", f"principals/{connection}"),
    )  # fmt: skip
    yield shared(
        SHELL, f"Its principal role, which the scope of a login names: PRINCIPAL_ROLE:{role}.",
        "\n".join((
            _ask(management, "POST", "principal-roles", {"principalRole": {"name": role}}),
            _ask(management, "PUT", f"principals/{connection}/principal-roles", {"principalRole": {"name": role}}),
        )),
        _ask(management, "DELETE", f"principal-roles/{role}"),
    )  # fmt: skip
    grants = (
        _ask(management, "PUT", f"{of_catalog}/{role}/grants", {"grant": {"type": "catalog", "privilege": each}})
        for each in privileges
    )
    yield shared(
        SHELL, f"What it may do in the catalog {catalog}: {', '.join(privileges)}.",
        "\n".join((
            _ask(management, "POST", of_catalog, {"catalogRole": {"name": role}}),
            *grants,
            _ask(management, "PUT", f"principal-roles/{role}/catalog-roles/{catalog}", {"catalogRole": {"name": role}}),
        )),
        _ask(management, "DELETE", f"{of_catalog}/{role}"),
    )  # fmt: skip


def _ask(management: str, method: str, path: str, body: object = None) -> str:
    sent = ["--json", json.dumps(body)] if body is not None else []
    return shlex.join(["curl", "--fail", "-X", method, "-H", f"Authorization: Bearer {_TOKEN}", *sent, f"{management}/{path}"])
