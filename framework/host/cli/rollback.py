"""`sluice rollback`: a table as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base import iso_times
from framework.base.amounts import counted
from framework.host.cli import _at, _complete, _specs

if TYPE_CHECKING:
    from framework.core.iceberg.at import Moment
    from framework.operations.undo.rollback import Rollback
    from framework.plan import Pipeline, Plan

SECTION, ORDER = "run", 8
ALSO_CALLED = ("revert", "undo", "restore")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--to",
    type=_at.At(),
    metavar=_at.METAVAR,
    required=True,
    help=f"The snapshot to go back to, of a time the newest one at that time or before it: {_at.SAYS}.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, to: Moment, yes: bool, specs: Path, environment: str) -> None:
    """Go back to an earlier snapshot of a table.

    Rows, position and remembered deletes go back in one commit, and bad rows of later batches are deleted. The next run reads
    the messages behind that position again, by the spec as it is then: `sluice pause` first, if the spec is to be corrected.

    Older snapshots stay, so `sluice query --at` still shows what was undone. No file is deleted.

    Example: sluice rollback flagged_stock_trades --to 2026-01-05T10:00:00Z
    """
    from framework.operations.undo import accept, rollback

    with _specs.opened(specs, environment, name) as (context, pipeline):
        meaning = rollback.judged(context, pipeline, to)
        table = pipeline.table.identifier
        if not meaning.undone and not meaning.messages:
            click.echo(f"{name}: {table} is at snapshot {meaning.snapshot} already")
            return
        _specs.echo("\n".join(_shows(context.plan, pipeline, meaning)))
        if not yes:
            click.confirm("Roll it back?", abort=True)
        accept.move(context, pipeline, meaning.moves)
        _specs.echo(f"{name}: {table} is at snapshot {meaning.snapshot} again; `sluice run {name}` reads on from there")


def _shows(plan: Plan, pipeline: Pipeline, meaning: Rollback) -> Iterator[str]:
    from framework.core.rules import journal
    from framework.operations.undo.rollback import readers_that_stop

    yield f"{pipeline.name}: {pipeline.table.identifier} goes back to snapshot {meaning.snapshot} of {iso_times.text(meaning.time)}"
    if meaning.undone_before is not None:
        yield f"  at that time it was at snapshot {meaning.undone_before}, which a rollback has undone since"
    yield f"  {counted(meaning.undone, 'commit')} undone: {counted(meaning.rows, 'row')} now, {meaning.rows_then:,} then"
    if pipeline.read_tables:
        yield f"  the next run reads the changes of {pipeline.source_name} since then again"
    else:
        yield f"  the next run reads {counted(meaning.messages, 'message')} again; bad rows among them are deleted before"
    if meaning.missing:
        yield f"  {meaning.missing:,} of them are not in Kafka any more: their rows are lost, and the next run is refused, `offsets-gone`"
    for reader in readers_that_stop(plan.pipelines, pipeline):
        yield f"  {reader} appends its rows and cannot follow: afterwards `sluice rebuild {reader}`"
    if not journal.read(pipeline.journal_name).paused:
        yield f"  it is not paused: to correct its spec before it is read again, `sluice pause {pipeline.name}` first"
