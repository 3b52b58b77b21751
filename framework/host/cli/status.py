"""`sluice status`: the state of every table."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base import iso_times
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.operations.observe.status import Status
    from framework.plan import Pipeline, Plan

SECTION, ORDER = "see", 1
ALSO_CALLED = ("list", "ls", "ps")

_EVERY = 2.0  # seconds
_DAYS, _MOST_DAYS = 30, 40  # of --cost
_LATE = 3  # the exit status where tables are late, and nothing is worse


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option("--partitions", is_flag=True, help="Show each partition too: position, end and waiting messages.")
@click.option("--watch", "again", is_flag=True, help="Refresh every 2 seconds, until Ctrl-C.")
@click.option("--cost", is_flag=True, help="Show bytes, requests, seconds and money instead.")
@click.option("--days", type=click.IntRange(1, _MOST_DAYS), help=f"With --cost, the days to count; default: {_DAYS}.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
def command(
    names: tuple[str, ...],
    partitions: bool,
    again: bool,
    cost: bool,
    days: int | None,
    as_json: bool,
    specs: Path,
    environment: str,
) -> None:
    """Show each table's progress, the age of its data, and its errors.

    Shows every table, or those of NAME, a pipeline or its table. Changes nothing and starts nothing.

    \b
    pending    nothing has landed yet
    syncing    messages wait
    caught up  no messages wait
    paused     until `sluice resume`
    suspended  a run was refused: a person must decide
    failing    the last run failed, or Kafka or the catalog does not answer

    A table is fresh if it is caught up, or its last commit is not older than `fresh_within`.

    --json: {environment, at, tables}; each table has pipeline, table, catalog, state, reasons [{code, message, hint, do,
    suspended, at}], paused_since, streamed_by (the process of `sluice stream`), lag {records, newest_event, newest_event_seconds,
    newest_event_column}, last_commit, batch, rows, bad_rows, bad_rows_waiting, files, bytes, freshness {within_seconds, fresh},
    also [{to, state, rows_waiting, code, message, hint}], maintenance [{table, says}], location, metadata_file, snapshot_id (as
    text: it has more digits than JSON's numbers), offsets [{topic, partition, position, end, lag}] and metrics, each of which is in
    docs/metrics.md: a number, a word, or numbers by a label. Null means unknown.

    --cost: what batches read, wrote and took, from what the tables themselves keep by day, and what is stored now. A document `prices`
    makes money of it, and a price of Tableflow for the same topics. Kafka is not asked.

    Exit status: 0; 1 if a table is failing or suspended, what `also` names does not get its rows, or the specs have problems;
    2 wrong usage; 3 if nothing of that is, and a table is late.

    Example: sluice status flagged_stock_trades --partitions
    """
    if again and as_json:
        raise click.UsageError("--watch and --json exclude each other: call --json as often as you need")
    if days is not None and not cost:
        raise click.UsageError("--days has no effect without --cost")
    if cost and (again or partitions):
        raise click.UsageError("--cost shows other numbers than --watch and --partitions: give it alone")
    plan = _specs.plan(specs, environment)
    pipelines = _specs.chosen(plan, names)
    if cost:
        from framework.host.cli import _cost

        sys.exit(_cost.show(plan, pipelines, days or _DAYS, as_json))
    from framework.operations.observe.status import statuses

    if again:
        states = _watch(plan, pipelines, partitions)
    else:
        states = statuses(plan, pipelines)
        if as_json:
            from framework.host.cli import _status_json

            document = _specs.hinted_in(_status_json.document(environment, states))
            click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        else:
            from framework.host.cli import _grid, _status

            console = _grid.console()
            console.print(_status.block(states, partitions, console.width))
    sys.exit(_exit_status(states))


def _exit_status(states: Sequence[Status]) -> int:
    if any(status.bad for status in states):
        return 1
    return _LATE if any(status.fresh is False for status in states) else 0


def _watch(plan: Plan, pipelines: Sequence[Pipeline], partitions: bool) -> Sequence[Status]:
    """Refresh until Ctrl-C. Returns the last statuses."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from framework.host.cli import _grid, _status
    from framework.operations.observe.status import statuses

    console = _grid.console()
    states: Sequence[Status] = ()

    def blocks() -> Iterator[Group]:
        nonlocal states
        while True:
            began = time.monotonic()
            states = statuses(plan, pipelines)
            head = Text(
                f"{iso_times.text(datetime.now(timezone.utc).replace(microsecond=0))}, again every {_EVERY:.0f} s, Ctrl-C ends\n",
                style="dim",
            )
            yield Group(head, _status.block(states, partitions, console.width))
            time.sleep(max(0.0, _EVERY - (time.monotonic() - began)))

    try:
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
                for block in blocks():
                    live.update(block, refresh=True)
        else:
            for block in blocks():
                console.print(block)
                console.print()
                sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    return states
