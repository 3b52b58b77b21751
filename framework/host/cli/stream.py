"""`sluice stream`: keep tables a second or two behind their topics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import SetupError
from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import until_interrupted

if TYPE_CHECKING:
    from framework.host.answers import Pages
    from framework.plan import Pipeline, Plan

SECTION, ORDER = "run", 2
_PORT = 18184
_PATIENCE = 1.0  # seconds for a Spark that still starts at the end


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=None,
    help="How many pipelines have a turn at once; default: as many as the machine has cores.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=None,
    help=f"Answer `/healthz`, `/readyz` and `/metrics` there; 0: nowhere; default: {_PORT}, if it is free.",
)
@click.option(
    "--log", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How lines are written."
)
@_specs.with_spark
def command(names: tuple[str, ...], workers: int | None, port: int | None, form: str, specs: Path, environment: str) -> None:
    """Keep tables a second or two behind their topics, until it is stopped.

    Each pipeline has a turn as soon as something waits for it, at most as often as its `run: {every: …}` says. Pipelines take turns: one
    with a backlog does not hold up the others, and one that fails is tried again later. A system that does not answer is said once.

    It judges the alerts of the specs, and tells who is to be told.

    Changed specs are taken over between batches; if they have problems, what runs goes on. Pauses, resumes and acceptances count at once.

    On this machine, http://127.0.0.1:18184/healthz answers while it lives, and /readyz while its specs have no problems and all systems
    answer; /metrics has its numbers and those of its tables, for Prometheus. Under systemd it tells when it is ready, and serves its
    watchdog. Ctrl-C or SIGTERM ends it within ten seconds, behind the commits that are under way. A second stream of this machine stands
    by, and takes over when the first one ends.

    Exit status: 0 it was stopped; 2 wrong usage.

    Example: sluice stream flagged_stock_trades
    """
    from framework.core.context.context import Context
    from framework.core.stream.stream import Stream
    from framework.host.spec_changes import SpecChanges
    from framework.host.streaming.answers import pages
    from framework.host.streaming.asides import observers
    from framework.host.streaming.lines import json_of, text_of
    from framework.host.streaming.systemd import Notifier
    from framework.host.watchers import with_watchers

    changes = SpecChanges(specs, environment)  # before the plan is made: nothing is missed
    plan = _specs.plan(specs, environment)
    _specs.chosen(plan, names)  # a name that is wrong is an error before Spark starts
    context = Context(plan, warm=False)
    words = json_of if form == "json" else text_of
    try:
        with until_interrupted() as stop:
            asides = observers(lambda: context.plan)
            stream = Stream(context, partial(_chosen, names), workers or os.cpu_count() or 1, changes.plan, asides)
            notifier = Notifier(stream.health, stop.is_set)
            with _answering(port, pages(context, partial(_specs.still_chosen, names), stream.health)):
                for event in with_watchers(stream.events(stop.is_set, notifier.beat), apart=True):
                    if line := words(event):
                        click.echo(line)
    finally:
        context.stop(_PATIENCE)


@contextmanager
def _answering(port: int | None, pages: Pages) -> Iterator[None]:
    """Answers while the block runs. Where another process has the usual port, as a stream that this one stands by for, nobody answers."""
    from framework.host.answers import answering

    with ExitStack() as stack:
        if port != 0:
            try:
                stack.enter_context(answering(port or _PORT, pages))
            except SetupError as error:
                if port is not None:
                    raise
                click.echo(f"{error.message}: this one answers nowhere; `--port` chooses another one", err=True)
        yield


def _chosen(names: Sequence[str], plan: Plan) -> Sequence[Pipeline]:
    """The pipelines of these names that the plan has; all but those that only a person starts, without names."""
    runs = [pipeline for pipeline in plan.pipelines if pipeline.run.every or pipeline.run.cron or pipeline.run.on_new_data]
    return _specs.still_chosen(names, plan) if names else runs
