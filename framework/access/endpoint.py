"""How a reader finds tables by Iceberg's REST protocol: at the catalog itself, or at `sluice serve` in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framework.access.about import Place, secret
from framework.access.steps import SHELL, Step, Warned, create
from framework.model import Storage
from framework.spec.storage import Storage as Written

SERVED = "http://127.0.0.1:18183"
SERVE_SECRET = "<secret of sluice serve>"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    uri: str
    warehouse: str | None
    client_id: str | None
    client_secret: str | None
    token: str | None
    token_uri: str
    scope: str | None
    headers: dict[str, str]
    storage: Storage
    gives_keys: bool  # whether the catalog gives each reader keys to the files
    served: bool


def endpoint(place: Place) -> Endpoint:
    options: Any = place.catalog.options
    storage = (options.storage or Written()).planned()
    if place.catalog.type != "rest":
        return Endpoint(
            uri=SERVED, warehouse=None, client_id="reader", client_secret=SERVE_SECRET, token=None,
            token_uri=f"{SERVED}/v1/oauth/tokens", scope=None, headers={}, storage=storage, gives_keys=bool(storage.role), served=True,
        )  # fmt: skip
    uri, oauth = options.uri.rstrip("/"), options.oauth
    return Endpoint(
        uri=uri, warehouse=options.warehouse,
        client_id=secret(oauth.client_id) if oauth else None, client_secret=secret(oauth.client_secret) if oauth else None,
        token=secret(options.token) if options.token else None,
        token_uri=(oauth and oauth.token_uri) or f"{uri}/v1/oauth/tokens", scope=oauth.scope if oauth else None,
        headers={name: secret(value) for name, value in options.headers.items()}, storage=storage,
        gives_keys=not (storage.access_key or storage.role or storage.profile), served=False,
    )  # fmt: skip


def serving(place: Place, of: Endpoint) -> Iterator[Step | Warned]:
    """What has to run for it, if it is not the catalog itself."""
    if not of.served:
        yield Warned(
            f"the login to the catalog `{place.catalog.name}` is that of Sluice, which may write: give readers one of their own in its "
            "place; `sluice access open-catalog` makes one in Polaris"
        )
        return
    yield Warned(
        f"the catalog `{place.catalog.name}` (`type: {place.catalog.type}`) is shown to readers by `sluice serve`, while that runs; it "
        "listens on this machine alone, so readers elsewhere need a proxy with TLS in front of it"
    )
    why = "Let readers find the tables, with a secret that you think of; Ctrl-C ends it."
    yield create(SHELL, why, f"SLUICE_SERVE_SECRET='{SERVE_SECRET}' sluice serve {place.catalog.name}")
