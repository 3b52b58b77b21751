"""`sluice run`: run pipelines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import Paused, SluiceError
from framework.host.cli import _complete, _keeping_up, _specs
from framework.host.cli._interrupted import STATUS, until_interrupted

if TYPE_CHECKING:
    from framework.core.context.context import Context
    from framework.core.follow.follow import Followed
    from framework.core.maintain.maintain import MaintenanceDone
    from framework.core.publish.batch import Batch
    from framework.core.run.run import Failed
    from framework.host.cli._progress import Bar
    from framework.operations.observe.followers import FollowerState
    from framework.plan import Pipeline, Plan

SECTION, ORDER = "run", 1
ALSO_CALLED = ("apply", "start", "sync", "ingest", "materialize")


# What a batch does from each of its points on.
_PHASES = {"opened": "starting", "branched": "writing", "staged": "checking", "checked": "publishing", "published": ""}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option(
    "--every",
    metavar="DURATION",
    help="Keep running, and run again this often, such as 1m; earlier where `batch: {after: …}` waits.",
)
@_specs.with_spark
def command(names: tuple[str, ...], every: str | None, specs: Path, environment: str) -> None:
    """Load all waiting messages; `--every 1m` keeps running.

    Runs pipelines until their tables have all messages of their topics.

    Without a NAME, all pipelines except paused ones. Ctrl-C ends after the commit that is under way. With --every, a line on standard
    error says at first what is loaded how often, and at the end how much was committed.

    Exit status: 0 all is well, or only paused pipelines were left out; 1 a pipeline failed, was refused or, if given by
    NAME, is paused; 2 wrong usage; 130 stopped by Ctrl-C or SIGTERM, which is 0 with --every.

    Example: sluice run flagged_stock_trades --every 1m
    """
    from framework.core.context.context import Context
    from framework.core.run import run as loop
    from framework.core.run.fills import WaitingSize

    plan = _specs.plan(specs, environment)
    pipelines = _specs.chosen(plan, names)
    if not pipelines:
        click.echo("there are no pipelines")
    seconds = _seconds(every)
    context = Context(
        plan, reached=lambda point: report.at(point), warm=seconds is None
    )  # one that keeps running would keep it from all others
    report = _Report(context, bool(names))
    try:
        with until_interrupted() as stop:
            if seconds is not None and every:
                click.echo(_keeping_up.begins(pipelines, every), err=True)
                full = WaitingSize(context).full
                loop.keep_up(
                    context, pipelines, seconds, report.batch, report.failure, stop, report.working, report.maintained,
                    report.followed, full,
                )  # fmt: skip
                click.echo(_keeping_up.ended(report.loaded), err=True)
                return
            failures = loop.catch_up(
                context, pipelines, report.batch, stop.is_set, report.working, report.maintained, report.followed
            )
        error_flags = [report.failure(failure) for failure in failures]
        failed_names = {failure.pipeline for failure in failures if not failure.of_follower}
        if not stop.is_set():
            report.ends([pipeline for pipeline in pipelines if pipeline.name not in failed_names])
        if stop.is_set():
            click.echo("stopped after its last commit; the next run continues there", err=True)
        sys.exit(1 if any(error_flags) else STATUS if stop.is_set() else 0)
    finally:
        context.stop()


def _seconds(every: str | None) -> int | None:
    if every is None:
        return None
    from framework.language.scalars import read_duration

    try:
        seconds = read_duration(every)
    except (ValueError, KeyError, IndexError):
        seconds = 0
    if seconds < 1:
        raise click.BadParameter(f"`{every}` is no duration: write 15s, 1m or 2h", param_hint="--every")
    return seconds


class _Report:
    """The output of a run: a line for each batch and, on a terminal, a bar for the pipeline that is under way."""

    def __init__(self, context: Context, by_name: bool) -> None:
        self.context = context
        self.by_name = by_name
        self._bar: Bar | None = None
        self._read = 0
        self._left_out: set[str] = set()
        self.loaded = _keeping_up.Loaded()

    @contextmanager
    def working(self, pipeline: Pipeline) -> Iterator[None]:
        if not sys.stderr.isatty():
            yield
            return
        from framework.host.cli._progress import bar

        self._read = 0
        noun = "rows" if pipeline.source else "messages"
        try:
            with bar(pipeline.name, noun, _waiting(self.context.plan, pipeline), self.context.started) as self._bar:
                yield
        finally:
            self._bar = None

    def at(self, point: str) -> None:
        """Say on the bar what a batch does: its messages are counted at its end."""
        if self._bar is not None and point in _PHASES:
            self._bar.phase(_PHASES[point])

    def batch(self, batch: Batch) -> None:
        text = line(batch)
        self.loaded.add(batch)
        if self._bar is None:
            click.echo(text)
            return
        self._read += batch.read
        self._bar.update(self._read, self._read + batch.waiting, batch.read / max(batch.seconds, 0.001))
        with self._bar.hidden():
            click.echo(text)

    def maintained(self, done: MaintenanceDone) -> None:
        _specs.echo(done.line)

    def followed(self, followed: Followed) -> None:
        click.echo(followed.line)

    def failure(self, failure: Failed) -> bool:
        """Whether a pause is an error: without names, paused pipelines are left out."""
        if self.by_name or not isinstance(failure.error, Paused):
            _specs.echo(f"{failure.pipeline}: {failure.error}", err=True)
            return True
        from framework.plan.pipeline import journal_name

        line = f"{failure.pipeline}: paused{_since(journal_name(self.context.plan.environment, failure.pipeline))}, left out"
        if line not in self._left_out:  # once, not each time with --every
            self._left_out.add(line)
            click.echo(line)
        return False

    def ends(self, pipelines: Sequence[Pipeline]) -> None:
        """Say which tables and followers are caught up; the followers that lag behind come last."""
        for pipeline in pipelines:
            since = _since(pipeline.journal_name)  # paused while its batches ran
            done = f"paused{since}, its earlier batches are published" if since else f"{pipeline.table.identifier} is caught up"
            click.echo(f"{pipeline.name}: {done}")
        states = [(pipeline, state) for pipeline in pipelines for state in _follower_states(pipeline)]
        for pipeline, state in sorted(states, key=lambda entry: bool(entry[1].rows)):
            click.echo(f"{pipeline.name}: {state.follower.title} {_of_follower(pipeline, state)}")


def _follower_states(pipeline: Pipeline) -> Iterator[FollowerState]:
    from framework.core.iceberg import metadata
    from framework.core.rules import journal
    from framework.operations.observe.followers import follower_states

    if pipeline.also:
        table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
        yield from follower_states(pipeline, table, journal.read(pipeline.journal_name))


def _of_follower(pipeline: Pipeline, state: FollowerState) -> str:
    if state.rows:
        return f"lags behind {pipeline.table.identifier}: {state.waiting}"
    return f"has all of {pipeline.table.identifier}" if state.state != "left" else state.words


def _since(pipeline: str) -> str:
    from framework.core.rules import journal

    since = journal.read(pipeline).paused
    return f" since {since}" if since else ""


def _waiting(plan: Plan, pipeline: Pipeline) -> int | None:
    """The number of waiting messages; None if it is unknown, which the run itself reports."""
    from framework.operations.observe.progress import progress_of

    try:
        return progress_of(plan, pipeline).lag
    except SluiceError:
        return None


def line(batch: Batch) -> str:
    rate = batch.read / max(batch.seconds, 0.001)
    parts = [f"{batch.pipeline}: batch {batch.number}", *batch.counts, f"{batch.seconds:.1f} s", f"{rate:,.0f} rows/s"]
    return ", ".join([*parts, f"{batch.waiting:,} waiting"])
