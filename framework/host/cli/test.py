"""`sluice test`: run the tests of pipelines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.amounts import counted
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.operations.trials.trial import Outcome
    from framework.plan import Pipeline, Plan, SpecTest

SECTION, ORDER = "write", 4


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@_specs.with_spark
def command(names: tuple[str, ...], specs: Path, environment: str) -> None:
    """Run the tests in the specs, without Kafka.

    The messages of a test run through the same code as in production, into tables of a temporary catalog. Neither Kafka nor
    the real tables are read.

    Without a NAME, the tests of all pipelines. A failed test is shown with its place and the differences.

    Exit status: 0 all passed, 1 a test failed or the specs have problems, 2 wrong usage.

    Example: sluice test flagged_stock_trades
    """
    began = time.monotonic()
    plan = _specs.plan(specs, environment, tables=False)
    pipelines = [pipeline for pipeline in _specs.chosen(plan, names) if pipeline.examples]
    count = sum(len(pipeline.examples) for pipeline in pipelines)
    if not count:
        click.echo("there are no tests: write them under `tests:` of a pipeline")
        return
    failed = _run(plan, [pipeline.name for pipeline in pipelines])
    click.echo(f"{counted(count, 'test')}, {count - failed:,} passed, {failed:,} failed, {time.monotonic() - began:.1f} s")
    sys.exit(1 if failed else 0)


def _run(plan: Plan, names: Sequence[str]) -> int:
    """Run all tests of these pipelines in one JVM. Returns how many failed."""
    from framework.operations.trials import trial

    failed = 0
    with trial.trials(plan) as trials:
        pipelines = [pipeline for pipeline in trials.plan.pipelines if pipeline.name in names]
        outcomes = trials.outcomes([(pipeline, example) for pipeline in pipelines for example in pipeline.examples])
        for pipeline in pipelines:
            results = [(example, list(_differences(pipeline, example, next(outcomes)))) for example in pipeline.examples]
            failures = [result for result in results if result[1]]
            failed += len(failures)
            _tell(pipeline, failures)
    return failed


def _tell(pipeline: Pipeline, failures: Sequence[tuple[SpecTest, Sequence[str]]]) -> None:
    count = counted(len(pipeline.examples), "test")
    click.echo(f"{pipeline.name}: {f'{len(failures):,} of {count} failed' if failures else f'{count} ok'}")
    for example, differences in failures:
        click.echo(f"{example.where}: {click.style('test-failed', fg='red')}: {example.name}")
        for line in differences:
            _specs.echo(f"  {line}")


def _differences(pipeline: Pipeline, example: SpecTest, outcome: Outcome) -> Iterator[str]:
    """Lines with the differences from a test's expectation; none if it passed."""
    from framework.plan import compare

    if outcome.error is not None:
        yield from str(outcome.error).splitlines()
        return
    for difference in compare.differences(example, pipeline.table.columns, outcome.rows, outcome.bad):
        yield from compare.lines(difference)
