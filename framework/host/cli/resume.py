"""`sluice resume`: resume pipelines."""

from __future__ import annotations

from pathlib import Path

import click

from framework.host.cli import _complete, _specs

SECTION, ORDER = "run", 4
ALSO_CALLED = ("unpause",)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=_complete.pipelines)
@_specs.with_specs
def command(names: tuple[str, ...], specs: Path, environment: str) -> None:
    """Resume paused pipelines.

    The next run loads all messages that arrived meanwhile.

    Applies to all runs of this environment that use this folder's `.sluice`, those of Dagster too.

    Example: sluice resume flagged_stock_trades
    """
    from framework.core.rules import journal

    for name, record in _specs.recorded(specs, environment, names):
        paused_since = journal.read(record).paused
        journal.resume(record)
        click.echo(f"{name}: {f'resumed, was paused since {paused_since}' if paused_since else 'was not paused'}")
