"""Shows the assets in a browser."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from framework.cli import _specs

SECTION, ORDER = "run", 6
ALSO_CALLED = ("web",)


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Where the pages are.")
@click.option("--read-only", is_flag=True, help="Only show: nothing can be started from the pages, and nothing starts by itself.")
@_specs.with_specs
def command(port: int, read_only: bool, specs: Path, environment: str) -> None:
    """Open Dagster with these specs, on this machine only.

    Serves Dagster's pages until Ctrl-C: assets, runs, checks, lineage.

    Pipelines then run by themselves as their `run:` says; with --read-only nothing does. There is no login, so only this
    machine can open the pages.

    Example: sluice ui --port 3001
    """
    from framework import ui
    from framework.engine.loop import until_interrupted
    from framework.services.ports import refuse_busy

    if not specs.is_dir():
        _specs.plan(specs, environment)  # says what is wrong; problems inside of specs are shown on the pages
    refuse_busy(port, "Dagster", "choose another with --port")
    click.echo("Dagster starts, some seconds …")
    with until_interrupted() as stop:
        # A terminal that is closed would leave Dagster behind.
        signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
        with ui.served(specs, environment, port, read_only, stop.is_set) as server:
            what = "read-only" if read_only else "pipelines run as their specs say"
            if not stop.is_set():
                click.echo(f"{server.address}: {specs}, environment {environment}, {what}. Ctrl-C stops it; log in {server.log}")
            while not stop.wait(0.5):
                if ended := server.ended():
                    raise ended
            click.echo("Dagster stops …")
