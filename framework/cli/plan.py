"""Shows what will run."""

from __future__ import annotations

from pathlib import Path

import click

from framework.cli import _specs


@click.command()
@_specs.with_specs
def command(specs: Path, environment: str) -> None:
    """Show what will run: columns and types through every step, tables, bad rows.

    Example: sluice plan --specs specs
    """
    from framework.plan.text import plan_text

    click.echo(plan_text(_specs.plan(specs, environment)))
