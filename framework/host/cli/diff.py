"""`sluice diff`: what differs between two snapshots of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.host.cli import _at, _complete, _specs

if TYPE_CHECKING:
    from framework.core.iceberg.at import Moment
    from framework.core.sources.diff import Diff

SECTION, ORDER = "see", 5
ALSO_CALLED = ("changes", "compare")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--from", "since", type=_at.At(), metavar=_at.METAVAR, required=True, help=f"The table as it was then: {_at.SAYS}.")
@click.option("--to", "until", type=_at.At(), metavar=_at.METAVAR, help="Against the table as it was then; default: now.")
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many rows.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_spark
def command(name: str, since: Moment, until: Moment | None, limit: int, as_json: bool, specs: Path, environment: str) -> None:
    """Show rows that were added, changed and deleted since a snapshot.

    A changed row comes twice, as it was before and after. Compactions change nothing; a row that changed several times is one
    change. In tables of format_version 2, which have no row ids, a changed row is a deleted and an added one.

    --json: {pipeline, table, from, to, added, changed, deleted, rows}; each row has `what` and the columns.

    Example: sluice diff latest_quotes --from 2026-01-05T10:00:00Z
    """
    from framework.core.sources import diff

    with _specs.opened(specs, environment, name) as (context, pipeline):
        snapshots = diff.snapshots(pipeline, since, until)
        answer = diff.diff(context.lake(pipeline), pipeline, *snapshots, limit)
    if as_json:
        names = [column.name for column in answer.columns]
        rows = [dict(zip(names, row, strict=True)) for row in answer.rows]
        document = {"pipeline": name, "table": pipeline.table.identifier, "from": str(answer.since), "to": str(answer.until)}
        click.echo(json.dumps({**document, **answer.counts, "rows": rows}, indent=2, ensure_ascii=False))
        return
    _show(pipeline.table.identifier, answer)


def _show(table: str, answer: Diff) -> None:
    from framework.base.types import BIGINT, DOUBLE, FLOAT, INT
    from framework.core.query.one_select import AnswerColumn
    from framework.host.cli import _answers

    counts = ", ".join(f"{count:,} {change}" for change, count in answer.counts.items())
    click.echo(f"{table}, from snapshot {answer.since} to {answer.until}: {counts}")
    columns = [
        AnswerColumn(column.name, str(column.type), column.type in (BIGINT, INT, DOUBLE, FLOAT)) for column in answer.columns
    ]
    for line in _answers.aligned(columns, answer.rows) if answer.rows else ():
        click.echo(line)
    total = answer.counts["added"] + answer.counts["deleted"] + 2 * answer.counts["changed"]
    if len(answer.rows) < total:
        click.echo(f"{len(answer.rows):,} of {total:,} rows; --limit {total} shows all", err=True)
