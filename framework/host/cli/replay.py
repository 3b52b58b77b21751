"""`sluice replay`: bad rows, tried again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.amounts import counted
from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import STATUS, until_interrupted

if TYPE_CHECKING:
    from framework.operations.undo.replay import Trial
    from framework.plan import Pipeline

SECTION, ORDER = "run", 10
ALSO_CALLED = ("retry", "reprocess")

_MAX_REASONS = 20  # reasons


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--where", default="", metavar="SQL", help="Only bad rows for which this is true: \"code = 'undecodable' and batch > 40\"."
)
@click.option("--dry-run", is_flag=True, help="Only show what would land and what would stay bad.")
@click.option("--discard", is_flag=True, help="Do not try them: mark them as discarded, so that no replay does.")
@_specs.with_spark
def command(name: str, where: str, dry_run: bool, discard: bool, specs: Path, environment: str) -> None:
    """Try bad rows again, by the spec as it is now.

    What passes lands in the table exactly once, with its topic, partition, offset and order, and its bad row becomes `replayed`.
    What does not pass stays `open`, with its current reason. Of messages that `explode` makes several rows of, only bad items are tried.

    --where is an expression over the columns of the bad rows' table, such as stage, code, message, topic, offset and timestamp.
    Replayed rows are never tried again. Discarded ones are if --where names `state`: --where "state = 'discarded'".

    Example: sluice replay flagged_stock_trades --dry-run
    """
    if dry_run and discard:
        raise click.UsageError("--dry-run and --discard exclude each other: choose one")
    from framework.operations.undo import replay

    with _specs.opened(specs, environment, name) as (context, pipeline):
        replay.refuse(pipeline)
        condition = replay.condition(where)
        if dry_run:
            click.echo("\n".join(_shows(pipeline, replay.tried(context, pipeline, condition))))
        elif discard:
            click.echo(f"{name}: {counted(replay.discard(context, pipeline, condition), 'bad row')} discarded")
        else:
            from framework.host.cli._told import told

            with until_interrupted() as stop:
                outcome = told(replay.replay(context, pipeline, condition, stop.is_set))
            if stop.is_set():
                click.echo(f"{name}: stopped; the same command continues")
                raise SystemExit(STATUS)
            if not outcome.batches:
                click.echo(f"{name}: no bad row to replay")


def _shows(pipeline: Pipeline, trial: Trial) -> Iterator[str]:
    if not trial.messages:
        yield f"{pipeline.name}: no bad row to replay"
        return
    stays = sum(count for _, _, count in trial.bad)
    messages = counted(trial.messages, "message")
    if trial.waiting > trial.messages:
        messages = f"the first {trial.messages:,} of {trial.waiting:,} messages"
    filtered = f", {trial.filtered:,} filtered" if trial.filtered else ""
    lands = f"{counted(trial.rows, 'row')} would land{filtered}"
    yield f"{pipeline.name}: {messages} with bad rows: {lands}, {stays:,} {'stays' if stays == 1 else 'stay'} bad"
    yield from (f"  {count:,} {code}: {message}" for code, message, count in trial.bad[:_MAX_REASONS])
    if len(trial.bad) > _MAX_REASONS:
        yield f"  and {len(trial.bad) - _MAX_REASONS:,} other reasons"
