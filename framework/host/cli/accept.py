"""`sluice accept`: continue after a refused run."""

from __future__ import annotations

from pathlib import Path

import click

from framework.host.cli import _complete, _specs

SECTION, ORDER = "run", 5


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, yes: bool, specs: Path, environment: str) -> None:
    """Continue after a refused run, once you know what it skips.

    A run is refused if it would skip or repeat messages: a table was rolled back, a topic was deleted and created again,
    Kafka no longer has the messages, there are bad rows with `bad_rows: stop`, or `schema_changes` refuses a change of columns.

    Example: sluice accept flagged_stock_trades
    """
    from framework.operations.undo import accept

    with _specs.opened(specs, environment, name) as (context, pipeline):
        refused = accept.refusal(context, pipeline)
        if refused is None:
            _specs.echo(f"{name}: nothing to accept; `sluice run {name}` continues by itself")
            return
        _specs.echo(str(refused))
        if not yes:
            click.confirm("Accept this?", abort=True)
        accept.accept(context, pipeline, refused)
        _specs.echo(f"{name}: accepted; `sluice run {name}` continues")
