"""`sluice serve`: a catalog for readers."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Set
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import SluiceError
from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import until_interrupted

if TYPE_CHECKING:
    from framework.plan import Plan

SECTION, ORDER = "run", 14
ALSO_CALLED = ("server", "expose")

_SECRET = "SLUICE_SERVE_SECRET"


@click.command()
@click.argument("catalog", required=False, shell_complete=_complete.catalogs)
@click.option("--port", type=click.IntRange(1, 65535), default=18183, show_default=True, help="Listen on this port.")
@click.option("--client", default="reader", show_default=True, help="The readers' client id.")
@_specs.with_specs
def command(catalog: str | None, port: int, client: str, specs: Path, environment: str) -> None:
    """Let readers find the tables, by Iceberg's REST protocol.

    Serves CATALOG, or the only one that tables are in, until Ctrl-C: DuckDB, PyIceberg, Spark and others list and read its
    tables, and cannot write. Tables of bad rows are not among them.

    Readers log in by OAuth2 as --client with the secret in SLUICE_SERVE_SECRET; without one, a secret for this run is printed. Where the
    specs have `keys` with `of: serve`, these are the logins instead: `sluice keys list` shows their client ids.

    It listens on this machine alone: put a proxy with TLS in front of it for others.

    Example: sluice serve lake
    """
    from framework.host.serve import server

    plan = _specs.plan_without_registries(specs, environment)
    chosen = server.chosen(plan, catalog)
    clients, login = _clients(plan, client)
    with until_interrupted() as stop, server.running(plan, chosen, port, clients) as address:
        click.echo(f"{address}: catalog {chosen.name}, read-only. Ctrl-C stops it")
        click.echo(login)
        click.echo(f"tokens come from {address}/v1/oauth/tokens")
        stop.wait()


def _clients(plan: Plan, client: str) -> tuple[Callable[[float], Set[tuple[str, str]]], str]:
    """The readers' logins, and what to tell of them."""
    from framework.host.serve.clients import KeyClients, serve_keys

    if all_keys := serve_keys(plan):
        clients = KeyClients(plan)
        names = " and ".join(keys.name for keys in all_keys)
        current_clients = clients(math.inf)
        if not current_clients:
            raise SluiceError("no-key", f"there is no key of {names} yet", f"`sluice keys rotate {all_keys[0].name}` makes one")
        return clients, f"client id {', '.join(sorted(name for name, _ in current_clients))}, client secrets by the keys {names}"
    environment_secret = os.environ.get(_SECRET)
    secret = environment_secret or secrets.token_urlsafe(24)
    login = f"client id {client}, client secret {f'that of {_SECRET}' if environment_secret else secret}"
    return lambda _: {(client, secret)}, login
