"""`sluice pause`: pause pipelines."""

from __future__ import annotations

from pathlib import Path

import click

from framework.host.cli import _complete, _specs

SECTION, ORDER = "run", 3


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=_complete.pipelines)
@_specs.with_specs
def command(names: tuple[str, ...], specs: Path, environment: str) -> None:
    """Pause pipelines, in Dagster too.

    No run loads anything into their tables until `sluice resume`. A batch that is under way is still finished.

    Applies to all runs of this environment that use this folder's `.sluice`, those of Dagster too.

    Example: sluice pause flagged_stock_trades
    """
    from framework.core.rules import journal

    for name, record in _specs.recorded(specs, environment, names):
        click.echo(f"{name}: paused since {journal.pause(record).paused}")
