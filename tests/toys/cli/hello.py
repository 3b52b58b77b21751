"""Greets a pipeline. A toy: all that a command needs is in this file."""

from __future__ import annotations

import click

from framework.host.cli import _complete

SECTION, ORDER = "see", 99
ALSO_CALLED = ("greet",)


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--twice", is_flag=True, help="Greet two times.")
def command(name: str, twice: bool) -> None:
    """Greet a pipeline.

    Example: sluice hello flagged_stock_trades --twice
    """
    click.echo("\n".join([f"hello {name}"] * (2 if twice else 1)))
