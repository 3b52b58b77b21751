"""`sluice run`: run pipelines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.host.cli import _complete, _keeping_up, _specs
from framework.host.cli._interrupted import STATUS, until_interrupted

if TYPE_CHECKING:
    from framework.core.context.context import Context
    from framework.core.run.events import BatchDone, Event, Failed, LeftOut
    from framework.host.cli._progress import Bar
    from framework.operations.observe.followers import FollowerState
    from framework.plan import Pipeline

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
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="How many pipelines run at once. One that reads a table waits for the pipeline that writes it.",
)
@_specs.with_spark
def command(names: tuple[str, ...], every: str | None, workers: int, specs: Path, environment: str) -> None:
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
    from framework.core.run.workers import runs_of
    from framework.host.watchers import with_watchers

    plan = _specs.plan(specs, environment)
    pipelines = _specs.chosen(plan, names)
    if not pipelines:
        click.echo("there are no pipelines")
    seconds = _seconds(every)
    # The warm JVM is for commands that end: one that keeps running would keep it from all others.
    context = Context(plan, reached=lambda point: report.at(point), warm=seconds is None)
    report = _Report(context, by_name=bool(names), has_bar=workers == 1)
    try:
        with until_interrupted() as stop, runs_of(context, workers) as runs:
            if seconds is not None and every:
                click.echo(_keeping_up.begins(pipelines, every), err=True)
                for event in with_watchers(loop.keep_up(runs, pipelines, seconds, stop, WaitingSize(context).full)):
                    report.tell(event)
                    report.tell_failures()
                click.echo(_keeping_up.ended(report.work), err=True)
                return
            for event in with_watchers(runs(pipelines, stop.is_set)):
                report.tell(event)
        has_failed = report.tell_failures()
        if stop.is_set():
            click.echo("stopped after its last commit; the next run continues there", err=True)
        else:
            report.ends([pipeline for pipeline in pipelines if pipeline.name not in report.broken])
        sys.exit(1 if has_failed else STATUS if stop.is_set() else 0)
    finally:
        report.end()
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

    def __init__(self, context: Context, by_name: bool, has_bar: bool) -> None:
        from framework.core.rules.work import Work

        self.context = context
        self.by_name = by_name
        self.has_bar = has_bar and sys.stderr.isatty()
        self.work = Work()
        self.broken: set[str] = set()  # names of pipelines that failed or were left out
        self._failures: list[Failed | LeftOut] = []  # that are not told yet
        self._bar: Bar | None = None
        self._read = 0
        self._left_out: set[str] = set()

    def tell(self, event: Event) -> None:
        from framework.core.run import events

        match event:
            case events.Began(pipeline, waiting):
                self.begin(pipeline, waiting)
            case events.BatchDone():
                self.work += event.batch.work
                self.batch(event)
            case events.Maintained(_, done):
                _specs.echo(done.line)
            case events.Failed() | events.LeftOut():
                self.end()
                self._failures.append(event)
            case events.Ended():
                self.end()
            case events.Rebuilt():
                pass  # of rebuilds
            case followed:
                click.echo(followed.line)

    def begin(self, pipeline: Pipeline, waiting: int) -> None:
        if self.has_bar and waiting:
            from framework.host.cli._progress import Bar

            self._read = 0
            self._bar = Bar(pipeline.name, f"{pipeline.noun}s", waiting, self.context.started)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.end()
            self._bar = None

    def at(self, point: str) -> None:
        """Say on the bar what a batch does: its messages are counted at its end."""
        if self._bar is not None and point in _PHASES:
            self._bar.phase(_PHASES[point])

    def batch(self, event: BatchDone) -> None:
        text, batch = line(event), event.batch
        if self._bar is None:
            click.echo(text)
            return
        self._read += batch.read
        self._bar.update(self._read, self._read + batch.waiting, batch.read / max(batch.seconds, 0.001))
        with self._bar.hidden():
            click.echo(text)

    def tell_failures(self) -> bool:
        """Says what failed since the last time, and returns whether anything did. Without names, paused pipelines are left out."""
        from framework.core.run.events import LeftOut

        failures, self._failures = self._failures, []
        has_failed = False
        for failure in failures:
            name = failure.pipeline.name
            if isinstance(failure, LeftOut) or failure.follower is None:
                self.broken.add(name)
            if isinstance(failure, LeftOut) and not self.by_name:
                text = f"{name}: paused{_since(failure.pipeline.journal_name)}, left out"
                if text not in self._left_out:  # once, not each time with --every
                    self._left_out.add(text)
                    click.echo(text)
                continue
            _specs.echo(f"{name}: {failure.reason if isinstance(failure, LeftOut) else failure.error}", err=True)
            has_failed = True
        return has_failed

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


def line(event: BatchDone) -> str:
    from framework.operations.metrics import in_words

    batch = event.batch
    rate = batch.read / max(batch.seconds, 0.001)
    parts = [f"{batch.pipeline}: batch {batch.number}", *in_words(batch), f"{batch.seconds:.1f} s", f"{rate:,.0f} rows/s"]
    return ", ".join([*parts, f"{batch.waiting:,} waiting"])
