"""`sluice rebuild`: rebuild a table by its current spec."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import STATUS, until_interrupted

if TYPE_CHECKING:
    from framework.operations.rebuild.estimate import Estimate
    from framework.plan import Pipeline
    from framework.plan.change import Change

SECTION, ORDER = "run", 6
ALSO_CALLED = ("backfill", "full-refresh")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--without-lost",
    is_flag=True,
    help="Rebuild even if rows are lost: those of messages that Kafka no longer has, and those that other programs wrote. "
    "Rows that other programs deleted come back.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, without_lost: bool, yes: bool, specs: Path, environment: str) -> None:
    """Rebuild a table next to the current one and swap it in atomically.

    Rebuilds the table of pipeline NAME and its bad rows by its current spec, after showing what that reads and changes.

    Reads all messages again from `start_from`, or with `latest` from the table's first offsets, into a second table. Readers
    see the old table until one commit publishes the new one; its old snapshots stay for time travel. Runs of the pipeline can
    continue meanwhile. An interrupted rebuild, after Ctrl-C or a crash, continues when it is called again. Rows that it would lose
    are counted, and it is refused unless --without-lost.

    Example: sluice rebuild flagged_stock_trades
    """
    from framework.host.cli._told import told
    from framework.operations.rebuild import rebuild

    with _specs.opened(specs, environment, name) as (context, pipeline):
        estimate, changes = rebuild.check_rebuild(context, pipeline, without_lost)
        click.echo("\n".join(_shows(pipeline, estimate, changes)))
        if not yes:
            click.confirm("Rebuild it?", abort=True)
        with until_interrupted() as stop:
            done = told(rebuild.rebuild(context, pipeline, estimate, stop.is_set)).rebuilt
        table = pipeline.table.identifier
        if done is None:
            _specs.echo(f"{name}: stopped, {table} is unchanged; `sluice rebuild {name}` continues from here")
            raise SystemExit(STATUS)
        if done.only_ended:
            click.echo(f"{name}: {table} was published before as batch {done.number}, and the rest of the rebuild is done")
        else:
            click.echo(f"{name}: {table} is rebuilt, published by one commit as batch {done.number}, snapshot {done.snapshot}")


def _shows(pipeline: Pipeline, estimate: Estimate, changes: tuple[Change, ...]) -> Iterator[str]:
    from framework.core.iceberg.second_identity import second_pipeline
    from framework.host.cli.plan import rebuild_lines

    table = pipeline.table.identifier
    if estimate.ended:
        yield f"{pipeline.name}: a rebuild of {table} was published and then interrupted; the rest reads no messages"
        return
    yield f"{pipeline.name}: rebuilds {table}, in the second table {second_pipeline(pipeline).table.identifier}"
    yield from (f"  {_says(pipeline, change)}" for change in changes)
    yield from (f"  {line}" for line in rebuild_lines(pipeline, estimate))


def _says(pipeline: Pipeline, change: Change) -> str:
    table = pipeline.table
    if change.kind == "partition_by":
        return f"all files are partitioned by {', '.join(map(str, table.partition_by)) or 'nothing'}"
    if change.kind == "sort_by":
        return f"all files are sorted by {', '.join(table.sort_by) or 'nothing'}"
    if change.kind == "drop":
        return f"`{'.'.join(change.path)}` {change.old} is dropped"
    return change.what
