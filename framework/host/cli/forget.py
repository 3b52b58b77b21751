"""`sluice forget`: a person leaves a pipeline's tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base import amounts
from framework.base.errors import visible
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.operations.forget.forget import Meaning
    from framework.plan import Pipeline

SECTION, ORDER = "run", 13
ALSO_CALLED = ("erase", "gdpr")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--key", "keys", multiple=True, required=True, metavar="COLUMN=VALUE",
    help="Whom to forget: a column of the table and its value, before a mask; `-` reads the value from the standard input. Given several"
    " times, all must be equal.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, keys: tuple[str, ...], yes: bool, specs: Path, environment: str) -> None:
    """Forget a person: rows, bad rows, old snapshots and files.

    Deletes the rows from the table of pipeline NAME and from its state, bad rows whose messages have the value in them, and then all
    older snapshots, also those that tags of others keep. Files of exports are written again. The table keeps a hash of the key, so that
    a rebuild, a rewind, or a message that comes again does not bring a row back.

    Ends with a list of places where the person may still be. A command that was stopped can be repeated, and continues where it stopped.

    Example: sluice forget orders --key customer_id=4711
    """
    written = dict(_written(keys))
    if len(written) < len(keys):
        raise click.UsageError("--key: each column once; to forget several persons, give the command for each")
    from framework.operations.forget import forget

    with _specs.opened(specs, environment, name) as (context, pipeline):
        meaning = forget.judged(context, pipeline, written)
        for line in _shows(pipeline, meaning):
            _specs.echo(line)
        if not yes:
            click.confirm("Forget it? This cannot be undone.", abort=True)
        for line in forget.forget(context, pipeline, meaning.key):
            _specs.echo(line)
    for line in _end_sparks():
        _specs.echo(line)


def _end_sparks() -> Iterator[str]:
    """End the Sparks that have read the person's rows, and say which still run: rows that they shuffled are in their folders."""
    from framework.base.patience import ENDING
    from framework.core.spark import scratch, warm_jvm

    warm_jvm.end(also_busy=False)
    warm_jvm.forget_log()
    scratch.end_own(ENDING)
    yield from (f"  {place}, until the Spark ends that works for another command" for place in scratch.held_folders())


def _written(keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for key in keys:
        column, equals, value = key.partition("=")
        if not equals or not column:
            raise click.UsageError(f"--key {column}: write COLUMN=VALUE")
        yield column.strip(), sys.stdin.readline().rstrip("\n") if value == "-" else value


def _shows(pipeline: Pipeline, meaning: Meaning) -> Iterator[str]:
    yield f"{pipeline.name}: what {meaning.key.words} says is forgotten in {pipeline.table.identifier}"
    yield f"  {amounts.counted(meaning.rows, 'row')} and {amounts.counted(meaning.bad_rows, 'bad row')}"
    yield f"  {amounts.counted(meaning.snapshots, 'older snapshot')}: afterwards there is no `rollback`, `diff` or `query --at` to before"
    for pin in meaning.pins:
        commits = meaning.diverged.get(pin, 0)
        also = f", with {amounts.counted(commits, 'commit')} that main does not have" if commits else ""
        yield f"  the tag or branch `{visible(pin)}` of others, which keeps a snapshot, is deleted{also}"
    for file in meaning.exports:
        yield f"  {file} is written again, from the table as it is then"
