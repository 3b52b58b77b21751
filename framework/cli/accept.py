"""Goes on from what was refused."""

from __future__ import annotations

from pathlib import Path

import click

from framework.cli import _complete, _specs

SECTION, ORDER = "run", 4


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_specs
def command(name: str, yes: bool, specs: Path, environment: str) -> None:
    """Continue after a refused run, once you have seen what that means.

    A run refuses to go on where it would skip or repeat messages: a table that was rolled back, a topic that was made
    again, messages that Kafka no longer has, bad rows with `bad_rows: stop`, a change of columns that `schema_changes` refuses.

    Example: sluice accept flagged_stock_trades
    """
    from framework.engine.context import Context
    from framework.engine.publish import accept

    plan = _specs.plan(specs, environment)
    pipeline = _specs.chosen(plan, [name])[0]
    context = Context(plan)
    try:
        refused = accept.refusal(context, pipeline)
        if refused is None:
            click.echo(f"{name}: nothing to accept, `sluice run {name}` goes on by itself")
            return
        click.echo(str(refused))
        if not yes:
            click.confirm("Accept this?", abort=True)
        accept.accept(context, pipeline, refused)
        click.echo(f"{name}: accepted, `sluice run {name}` goes on")
    finally:
        context.stop()
