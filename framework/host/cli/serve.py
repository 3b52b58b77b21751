"""`sluice serve`: a catalog for readers."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import until_interrupted

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

    Readers log in by OAuth2 as --client with the secret in SLUICE_SERVE_SECRET; without one, a secret for this run is printed.
    It listens on this machine alone: put a proxy with TLS in front of it for others.

    Example: sluice serve lake
    """
    from framework.host.serve import server

    plan = _specs.plan_without_registries(specs, environment)
    chosen = server.chosen(plan, catalog)
    environment_secret = os.environ.get(_SECRET)
    secret = environment_secret or secrets.token_urlsafe(24)
    with until_interrupted() as stop, server.running(plan, chosen, port, client, secret) as address:
        click.echo(f"{address}: catalog {chosen.name}, read-only. Ctrl-C stops it")
        click.echo(f"client id {client}, client secret {f'that of {_SECRET}' if environment_secret else secret}")
        click.echo(f"tokens come from {address}/v1/oauth/tokens")
        stop.wait()
