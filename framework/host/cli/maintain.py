"""`sluice maintain`: compact files and expire snapshots."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from framework.host.cli import _complete, _specs

SECTION, ORDER = "run", 7
ALSO_CALLED = ("compact", "optimize", "vacuum", "expire")


@click.command()
@click.argument("names", nargs=-1, shell_complete=_complete.pipelines)
@click.option("--dry-run", is_flag=True, help="Only show what tables are due for, without Spark.")
@_specs.with_spark
def command(names: tuple[str, ...], dry_run: bool, specs: Path, environment: str) -> None:
    """Compact small files and expire old snapshots.

    Does for the tables of these pipelines, or of all, what their option `maintain` says: small files become larger ones, rows that
    are marked as deleted leave their files, and snapshots that are no longer kept go, with the files that only they had.

    No row changes. Runs may go on meanwhile: where one of them commits first, the rest is left to the next time. A snapshot
    stays as long as the position, a branch or a tag needs it, and its files at least ten minutes after it was the newest.

    Example: sluice maintain flagged_stock_trades --dry-run
    """
    from datetime import datetime, timezone

    from framework.core.maintain.due import due

    plan = _specs.plan(specs, environment)
    chosen = _specs.chosen(plan, names)
    if dry_run:
        for pipeline in chosen:
            tables = due(pipeline, datetime.now(timezone.utc), by_person=True)
            for table in tables:
                click.echo(f"{table.identifier}: {table.words}")
            if not tables:
                click.echo(f"{pipeline.table.identifier}: is not there, another pipeline's, or rolled back: nothing to maintain")
        return
    from framework.core.context.context import Context
    from framework.core.maintain.maintain import maintain
    from framework.core.spark import defects

    context, failed = Context(plan), False
    try:
        for pipeline in chosen:
            try:
                for done in maintain(context, pipeline):
                    _specs.echo(done.line)
            except BrokenPipeError:
                raise
            except Exception as error:  # which keeps no other table back
                _specs.echo(f"{pipeline.name}: {defects.as_sluice_error(pipeline.name, error)}", err=True)
                context.forget_what_failed()
                failed = True
    finally:
        context.stop()
    sys.exit(1 if failed else 0)
