"""`sluice history`: the commits of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.base import iso_times
from framework.base.amounts import counted
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from rich.console import RenderableType

    from framework.operations.observe.commits import Commit, History
    from framework.plan import Pipeline

SECTION, ORDER = "see", 4


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show only the newest ones, this many.")
@click.option("--partitions", is_flag=True, help="Show offsets for each partition, instead of sums for each topic.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
def command(name: str, limit: int, partitions: bool, as_json: bool, specs: Path, environment: str) -> None:
    """Show a table's commits with their offsets.

    Newest first: the rows that each added, from which offsets, and whether it was Sluice's. NAME is a pipeline or its table.
    Starts nothing and reads only the catalog.

    `compaction`, `forget`, `rebuild` and `replay` are commits too. `rollback`, `rewind`, `accept`, `adopt` and `new topic` move the
    table's position without a batch; `→` stands before the offset to which they moved it. `spec changed` marks the first batch of a
    changed spec, `rebuilt` a rebuild, which reads all messages again. `position moved`: it was moved before that batch, and nothing
    records by what. `commits before it have expired`: older ones are there. For the last three, the start offsets are unknown. Times are
    UTC; `rollback --to` takes them as they are printed.

    --json: {pipeline, table, expired, rolled_back, commits}; each commit has snapshot_id (as text: it has more digits than JSON's
    numbers; null if it only moved the position), at, by, operation, batch, rows_added, rows_deleted, bad_rows, offsets [{topic,
    partition, from, to}], spec, spec_changed, position_moved, rebuilt, older_expired (commits before it are gone, older ones
    are there) and, of a rollback, undone {from_snapshot, to_snapshot, commits, batches [first, last]}. Null means unknown; batch is
    null if the commit is not a batch of Sluice's, and 0 if it created the table.

    Example: sluice history flagged_stock_trades --limit 5
    """
    plan = _specs.plan_without_registries(specs, environment, name)
    (pipeline,) = _specs.chosen(plan, [name])
    from framework.operations.observe.commits import history

    past = history(pipeline)
    if as_json:
        click.echo(json.dumps(document(pipeline, past, limit), indent=2))
        return
    from framework.host.cli import _grid

    console = _grid.console()
    for part in lines(pipeline, past, limit, partitions, console.width):
        console.print(part)


def lines(pipeline: Pipeline, past: History | None, limit: int, partitions: bool, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from framework.host.cli._grid import GridColumn, grid

    if past is None or not past.commits:
        yield Text(
            _specs.hinted(f"{pipeline.table.identifier}: no table yet, so no commits: `sluice run {pipeline.name}` creates it")
        )
        return
    columns = (
        GridColumn("when"), GridColumn("batch"), GridColumn("operation", 4), GridColumn("rows", right=True),
        GridColumn("bad rows", 2, right=True), GridColumn("offsets", 1), GridColumn("snapshot", 5, right=True), GridColumn("", folds=True),
    )  # fmt: skip
    yield grid(columns, [_row(commit, partitions) for commit in past.commits[:limit]], width)
    older_count = len(past.commits) - limit
    if older_count > 0:
        yield Text(f"{older_count:,} older commit{'s'[: older_count != 1]}: --limit {len(past.commits)} shows them")
    if past.expired:
        yield Text("older commits have expired")
    if past.rolled_back:
        yield Text(f"{past.rolled_back:,} not shown: main was rolled back past {'it' if past.rolled_back == 1 else 'them'}")
    if past.spec and pipeline.spec and past.spec != pipeline.spec:
        yield Text("the next batch will differ: the spec, or Sluice itself, has changed since the last one")


def _row(commit: Commit, partitions: bool) -> tuple[str, ...]:
    rows = _rows(commit)
    remarks = list(_undone(commit))
    if not commit.ours:
        remarks.append(f"not Sluice's{f': {commit.author}' if commit.author else ''}")
    remarks += ["table created"] if commit.batch == 0 else []
    remarks += ["spec changed"] if commit.spec_changed else []
    remarks += ["position moved"] if commit.moved else []
    remarks += ["rebuilt"] if commit.by_rebuild else []
    remarks += ["commits before it have expired"] if commit.older_expired else []
    bad = "" if not commit.batch or commit.move else "?" if commit.bad is None else f"{commit.bad:,}"
    return (
        iso_times.text(commit.time), "" if commit.batch is None else f"{commit.batch:,}", commit.operation, rows, bad,
        "\n".join(_offsets(commit, partitions)), "" if commit.snapshot is None else str(commit.snapshot), ", ".join(remarks),
    )  # fmt: skip


def _rows(commit: Commit) -> str:
    if commit.added is None:
        return ""
    deleted = f"−{commit.deleted:,}" if commit.deleted else ""
    return deleted if deleted and not commit.added and commit.move else " ".join(filter(None, (f"+{commit.added:,}", deleted)))


def _undone(commit: Commit) -> Iterator[str]:
    """Remarks about the batches that a rollback undid."""
    if commit.move is None or not commit.move.is_rollback:
        return
    yield f"back to snapshot {commit.move.main_after}"
    if commit.move.batches is not None:
        first_batch, last_batch = commit.move.batches
        yield f"batch {first_batch:,} undone" if first_batch == last_batch else f"batches {first_batch:,} – {last_batch:,} undone"
    else:
        yield f"{counted(commit.move.commits, 'commit')} undone"


def _offsets(commit: Commit, partitions: bool) -> Iterator[str]:
    """Start and end offsets, for each partition or summed for each topic; a single topic is not named. A move has only an end, and
    a batch that read nothing, as a replay, has none."""
    from framework.core.rules.protocol import parted

    if all(start == end for _, start, end in commit.offsets):
        return
    span = _position if commit.move else _span
    topics = list(dict.fromkeys(parted(partition)[0] for partition, _, _ in commit.offsets))
    for topic in topics:
        topic_prefix = f"{topic} " if len(topics) > 1 else ""
        offsets = [
            (parted(partition)[1], start, end) for partition, start, end in commit.offsets if parted(partition)[0] == topic
        ]
        if partitions:
            yield from (f"{topic_prefix}{number}: {span(start, end)}" for number, start, end in offsets)
        else:
            yield f"{topic_prefix}{span(_sum(start for _, start, _ in offsets), sum(end for _, _, end in offsets))}"


def _span(start: int | None, end: int) -> str:
    return f"{'?' if start is None else f'{start:,}'} – {end:,}"


def _position(_: int | None, end: int) -> str:
    return f"→ {end:,}"


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum of the numbers; None if one is unknown."""
    amounts = list(numbers)
    known_amounts = [number for number in amounts if number is not None]
    return sum(known_amounts) if len(known_amounts) == len(amounts) else None


def document(pipeline: Pipeline, past: History | None, limit: int) -> dict[str, Any]:
    """The JSON document of `--json`."""
    return {
        "pipeline": pipeline.name,
        "table": pipeline.table.identifier,
        "expired": past.expired if past else False,
        "rolled_back": past.rolled_back if past else 0,
        "commits": [_commit(commit) for commit in past.commits[:limit]] if past else [],
    }


def _commit(commit: Commit) -> dict[str, Any]:
    from framework.core.rules.protocol import parted

    offsets = [(*parted(partition), start, end) for partition, start, end in commit.offsets]
    return {
        "snapshot_id": None if commit.snapshot is None else str(commit.snapshot),
        "at": iso_times.text(commit.time),
        "by": commit.author or None,
        "operation": commit.operation,
        "batch": commit.batch,
        "rows_added": commit.added,
        "rows_deleted": commit.deleted,
        "bad_rows": commit.bad,
        "offsets": [dict(zip(("topic", "partition", "from", "to"), row, strict=True)) for row in offsets],
        "spec": commit.spec or None,
        "spec_changed": commit.spec_changed,
        "position_moved": commit.moved,
        "rebuilt": commit.by_rebuild,
        "older_expired": commit.older_expired,
        "undone": _undone_document(commit),
    }


def _undone_document(commit: Commit) -> dict[str, Any] | None:
    move = commit.move
    if move is None or not move.is_rollback:
        return None
    return {
        "from_snapshot": str(move.main_before), "to_snapshot": str(move.main_after), "commits": move.commits,
        "batches": list(move.batches) if move.batches else None,
    }  # fmt: skip
