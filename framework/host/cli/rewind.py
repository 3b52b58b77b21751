"""`sluice rewind`: read messages again."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base import iso_times
from framework.base.amounts import counted
from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import STATUS, until_interrupted
from framework.host.cli._scalar import ScalarParameter

if TYPE_CHECKING:
    from framework.core.context.context import Context
    from framework.plan import Pipeline

SECTION, ORDER = "run", 9


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--to",
    type=ScalarParameter("Time"),
    metavar="TIME",
    required=True,
    help="From messages of this time on: 2026-01-05T10:00:00Z.",
)
@click.option(
    "--into",
    "identifier",
    type=ScalarParameter("TableName"),
    metavar="TABLE",
    help="Read into another, new table instead, such as shop.orders_again; the pipeline's own stays as it is.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, to: datetime, identifier: str | None, yes: bool, specs: Path, environment: str) -> None:
    """Read messages again from a time on, without doubles.

    For `write: upsert`: the table keeps its rows, and a message that is read again sets its row to what the spec makes of it
    now. Its bad rows are deleted first. For other tables it is refused: `sluice rollback` takes their rows back, too.

    With --into it is for all tables from topics: what the pipeline has read since that time is read into a new table, by the spec and
    the joined tables of today. Called again, it continues where it was cut off.

    Example: sluice rewind latest_quotes --to 2026-01-05T10:00:00Z
    """
    with _specs.opened(specs, environment, name) as (context, pipeline):
        if identifier:
            _into(context, pipeline, to, identifier, yes)
        else:
            _again(context, pipeline, to, yes)


def _again(context: Context, pipeline: Pipeline, since: datetime, yes: bool) -> None:
    from framework.operations.undo import accept, rewind

    name = pipeline.name
    meaning = rewind.judged(context, pipeline, since)
    if not meaning.messages:
        click.echo(f"{name}: no message that was read is as new as {iso_times.text(since)}")
        return
    click.echo(f"{name}: the next run reads {counted(meaning.messages, 'message')} again, from {meaning.offsets}")
    click.echo(f"  {pipeline.table.identifier} keeps its rows; bad rows of these messages are deleted before")
    if not yes:
        click.confirm("Rewind it?", abort=True)
    accept.move(context, pipeline, meaning.moves)
    _specs.echo(f"{name}: rewound; `sluice run {name}` reads them again")


def _into(context: Context, pipeline: Pipeline, since: datetime, identifier: str, yes: bool) -> None:
    from framework.host.cli._told import told
    from framework.operations.undo import read_again

    name, table = pipeline.name, pipeline.table.identifier
    meaning = read_again.judged(context, pipeline, since, identifier)
    if not meaning.messages and meaning.starts is not None:
        click.echo(f"{name}: no message that was read is as new as {iso_times.text(since)}")
        return
    continues = "" if meaning.starts is not None else ", where it was cut off"
    click.echo(f"{name}: reads {counted(meaning.messages, 'message')} again into {identifier}{continues}")
    click.echo(f"  {table} stays as it is; nobody maintains {identifier}, and `sluice forget` does not know it")
    if meaning.cut:
        click.echo(f"  Kafka has deleted older messages of {counted(meaning.cut, 'partition')}, maybe also some of that time")
    if not yes:
        click.confirm("Read them?", abort=True)
    with until_interrupted() as stop:
        told(read_again.read(context, meaning, stop.is_set))
    if stop.is_set():
        click.echo(f"{name}: stopped; the same command continues")
        raise SystemExit(STATUS)
    click.echo(f"{name}: {identifier} has all that {table} has read since {iso_times.text(since)}")
