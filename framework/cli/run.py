"""Runs pipelines."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from framework.cli import _specs


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--every", metavar="DURATION", help="Stay and run again this often, such as 1m.")
@_specs.with_specs
def command(names: tuple[str, ...], every: str | None, specs: Path, environment: str) -> None:
    """Run pipelines until their tables have all that is in their topics.

    Without a NAME, all of them. Ctrl-C ends behind the commit that is under way.

    Example: sluice run flagged_stock_trades --every 1m
    """
    from framework.engine import loop
    from framework.engine.context import Context

    plan = _specs.plan(specs, environment)
    pipelines = _specs.chosen(plan, names)
    seconds = _seconds(every)
    context = Context(plan)
    try:
        with loop.until_interrupted() as stop:
            if seconds is not None:
                loop.keep_up(context, pipelines, seconds, _tell, _tell_failure, stop)
                return
            failures = loop.catch_up(context, pipelines, _tell, stop.is_set)
        for failure in failures:
            _tell_failure(failure)
        failed = {failure.pipeline for failure in failures}
        for pipeline in pipelines:
            if pipeline.name not in failed and not stop.is_set():
                click.echo(f"{pipeline.name}: {pipeline.table.identifier} is caught up")
        sys.exit(1 if failures else 0)
    finally:
        context.stop()


def _seconds(every: str | None) -> int | None:
    if every is None:
        return None
    from framework.spec.scalars import read_duration

    try:
        return read_duration(every)
    except (ValueError, KeyError, IndexError):
        raise click.BadParameter(f"`{every}` is no duration: write 15s, 1m or 2h", param_hint="--every") from None


def _tell(batch: object) -> None:
    from framework.engine.batch import Batch

    assert isinstance(batch, Batch)
    rate = batch.read / max(batch.seconds, 0.001)
    parts = [f"{batch.pipeline}: batch {batch.number}", f"{batch.rows:,} rows"]
    parts += [f"{batch.bad:,} bad"] if batch.bad else []
    parts += [f"{batch.filtered:,} filtered"] if batch.filtered else []
    parts += [f"{count:,} not as `{name}` expects" for name, count in batch.warnings]
    parts += [f"{batch.seconds:.1f} s", f"{rate:,.0f} rows/s", f"{batch.waiting:,} waiting"]
    click.echo(", ".join(parts))


def _tell_failure(failure: object) -> None:
    from framework.engine.loop import Failure

    assert isinstance(failure, Failure)
    click.echo(f"{failure.pipeline}: {failure.error}", err=True)
