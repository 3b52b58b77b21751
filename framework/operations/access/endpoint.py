"""The address at which a reader finds tables by Iceberg's REST protocol: at the catalog itself, or at `sluice serve` in front of it. A
reader never gets Sluice's own login, which may write."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framework.language.storage import Storage as Written
from framework.operations.access.about import AccessSubject, TablePlace
from framework.operations.access.asked import OpenValue, Value, without_secret
from framework.operations.access.steps import ScriptStep, System, Warned, create
from framework.plan import Storage

SERVED = "http://127.0.0.1:18183"
POLARIS = "PRINCIPAL_ROLE:"  # the prefix of scopes in Polaris and Open Catalog
_SERVE_SECRET = OpenValue("secret of sluice serve", "SLUICE_SERVE_SECRET")
_OTHER_SHELL = System("In a shell of its own", "sh")  # since the server that runs there ends with Ctrl-C


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    uri: str
    warehouse: str | None
    client: tuple[str | OpenValue, OpenValue] | None  # its id and its secret
    token: OpenValue | None
    token_uri: str
    scope: str | None
    headers: Mapping[str, str | OpenValue]
    storage: Storage
    gives_keys: bool  # whether the catalog gives each reader keys to the files
    served: bool


def endpoint(place: TablePlace) -> Endpoint:
    options: Any = place.catalog.options
    keeper: Any = place.keeper.options
    storage = (keeper.storage or Written()).planned()
    if place.catalog.type != "rest":
        return Endpoint(
            uri=SERVED, warehouse=None, client=("reader", _SERVE_SECRET), token=None, token_uri=f"{SERVED}/v1/oauth/tokens", scope=None,
            headers={}, storage=storage, gives_keys=bool(storage.role), served=True,
        )  # fmt: skip
    uri, oauth = options.uri.rstrip("/"), options.oauth
    scope = oauth.scope if oauth else None
    login = (options.storage or Written()).planned()
    return Endpoint(
        uri=uri, warehouse=options.warehouse,
        client=(_of_reader(place, "client id"), _of_reader(place, "client secret")) if oauth else None,
        token=_of_reader(place, "token") if options.token else None,
        token_uri=(oauth and oauth.token_uri) or f"{uri}/v1/oauth/tokens",
        scope=f"{POLARIS}ALL" if scope and scope.startswith(POLARIS) else scope,
        headers={name: without_secret(value) for name, value in options.headers.items()}, storage=storage,
        gives_keys=not (login.access_key or login.role or login.profile), served=False,
    )  # fmt: skip


def _of_reader(place: TablePlace, description: str) -> OpenValue:
    return OpenValue(f"{description} of the reader", f"{place.catalog.name}_{description}".upper().replace(" ", "_"))


def properties(server: Endpoint) -> Mapping[str, Value | None]:
    """The properties of the endpoint, by the names that Iceberg's libraries for Java and Python give them."""
    settings: dict[str, Value | None] = {
        "uri": server.uri,
        "warehouse": server.warehouse,
        "scope": server.scope,
        "token": server.token,
    }
    if server.client:
        settings |= {"credential": server.client, "oauth2-server-uri": server.token_uri}
    return {**settings, **{f"header.{name}": value for name, value in server.headers.items()}}


def serving(about: AccessSubject, place: TablePlace, server: Endpoint) -> Iterator[ScriptStep | Warned]:
    """The step that starts `sluice serve`, where readers need it, and the notes about their login."""
    catalog = place.catalog
    if not server.served:
        polaris = f": `{about.command('open-catalog')}` makes one" if (server.scope or "").startswith(POLARIS) else ""
        if server.client or server.token:
            yield Warned(
                f"readers need a login to the catalog `{catalog.name}` of their own{polaris}; that of Sluice may write, and is not printed"
            )
        return
    yield Warned(
        f"the catalog `{catalog.name}` (`type: {catalog.type}`) is shown to readers by `sluice serve`, while that runs; it "
        "listens on this machine alone, so readers elsewhere need a proxy with TLS in front of it"
    )
    why = "Let readers find the tables, with a secret that you think of; Ctrl-C ends it."
    serve_command = shlex.join(["sluice", "serve", catalog.name, *about.flags])
    yield create(_OTHER_SHELL, why, f"SLUICE_SERVE_SECRET='{_SERVE_SECRET}' {serve_command}")


def without_headers(reader: str, place: TablePlace, server: Endpoint) -> Iterator[Warned]:
    if server.headers:
        yield Warned(f"{reader} cannot send {', '.join(server.headers)}, which the catalog `{place.catalog.name}` may ask for")
