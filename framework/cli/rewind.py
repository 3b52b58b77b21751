"""`sluice rewind`: read messages again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from framework.amounts import counted
from framework.cli import _complete, _specs
from framework.cli._scalar import Scalar

SECTION, ORDER = "run", 8


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--to", type=Scalar("Time"), metavar="TIME", required=True, help="From messages of this time on: 2026-01-05T10:00:00Z."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, to: datetime, yes: bool, specs: Path, environment: str) -> None:
    """Read messages again from a time on, without doubles.

    For `write: upsert`: the table keeps its rows, and a message that is read again sets its row to what the spec makes of it
    now. Its bad rows are deleted first. For other tables it is refused: `sluice rollback` takes their rows back, too.

    Example: sluice rewind latest_quotes --to 2026-01-05T10:00:00Z
    """
    from framework.engine.publish import accept
    from framework.engine.undo import rewind

    with _specs.opened(specs, environment, name) as (context, pipeline):
        meaning = rewind.judged(context, pipeline, to)
        if not meaning.messages:
            click.echo(f"{name}: no message that was read is as new as {to:%Y-%m-%d %H:%M:%S} UTC")
            return
        click.echo(f"{name}: the next run reads {counted(meaning.messages, 'message')} again, from {meaning.offsets}")
        click.echo(f"  {pipeline.table.identifier} keeps its rows; bad rows of these messages are deleted before")
        if not yes:
            click.confirm("Rewind it?", abort=True)
        accept.move(context, pipeline, meaning.moves)
        click.echo(f"{name}: rewound; `sluice run {name}` reads them again")
