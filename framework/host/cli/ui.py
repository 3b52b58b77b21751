"""`sluice ui`: Dagster's pages in a browser."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from framework.host.cli import _slim, _specs
from framework.host.cli._interrupted import until_interrupted

SECTION, ORDER = "run", 11
ALSO_CALLED = ("web",)


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Serve the pages on this port.")
@click.option(
    "--read-only", is_flag=True, help="Only show pages: nothing can be started from them, and nothing starts by itself."
)
@_specs.with_specs
def command(port: int, read_only: bool, specs: Path, environment: str) -> None:
    """Open Dagster with these specs, on this machine only.

    Serves Dagster's pages until Ctrl-C: assets, runs, checks, lineage.

    Pipelines then run by themselves as their `run:` says, except with --read-only. There is no login, so only this
    machine can open the pages.

    Example: sluice ui --port 3001
    """
    from framework.host import ui
    from framework.machine.services.ports import refuse_busy

    _slim.needs("dagster_webserver")
    if not specs.is_dir():
        _specs.plan(specs, environment)  # raises if the specs cannot be read; problems inside of specs are shown on the pages
    refuse_busy(port, "Dagster", "choose another with --port")
    if not read_only:
        _specs.set_up()
    click.echo("starting Dagster, a few seconds …")
    with until_interrupted() as stop:
        # Without this a closed terminal would leave Dagster running.
        signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
        with ui.served(specs, environment, port, read_only, stop.is_set) as server:
            mode = "read-only" if read_only else "pipelines run as their specs say"
            if not stop.is_set():
                click.echo(f"{server.address}: {specs}, environment {environment}, {mode}. Ctrl-C stops it; log in {server.log}")
            while not stop.wait(0.5):
                if ended := server.ended():
                    raise ended
            click.echo("stopping Dagster …")
