"""`sluice bad-rows`: the bad rows of a pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.base import iso_times
from framework.base.amounts import counted
from framework.host.cli import _complete, _specs
from framework.host.cli._raw import raw

if TYPE_CHECKING:
    from rich.console import RenderableType

    from framework.operations.observe.bad_row_report import BadRow, Quarantine
    from framework.plan import Pipeline

SECTION, ORDER = "see", 3

_MAX_KINDS = 20  # kinds of bad rows that are listed
_WIDEST = 200  # characters of a key or value


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--code", help="Only bad rows of this code, such as undecodable.")
@click.option(
    "--limit", type=click.IntRange(0), default=5, show_default=True, help="Show at most this many, the newest of each kind first."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
def command(name: str, code: str | None, limit: int, as_json: bool, specs: Path, environment: str) -> None:
    """Show a table's bad rows by reason, with samples.

    Each sample has its place in Kafka, its key and its value. Rows that `sluice replay` let through or discarded are only
    counted. NAME is a pipeline or its table. Starts nothing and changes nothing. Times are UTC.

    --json: {pipeline, table, bad_rows_table, rows, waiting, replayed, discarded, kinds [{code, message, rows}], samples}; each
    sample has batch, stage, code, message, topic, partition, offset, item, timestamp, and key and value, complete, as text or,
    if they are not text, as key_base64 and value_base64. `waiting` counts bad rows that the next run writes to their table;
    `rows` counts neither them nor replayed and discarded ones.

    Example: sluice bad-rows flagged_stock_trades --code undecodable --limit 3
    """
    plan = _specs.plan_without_registries(specs, environment, name)
    (pipeline,) = _specs.chosen(plan, [name])
    from framework.operations.observe.bad_row_report import quarantine

    report = quarantine(pipeline, code, limit)
    if as_json:
        click.echo(json.dumps(document(pipeline, report), indent=2, ensure_ascii=False))
        return
    from framework.host.cli import _grid

    console = _grid.console()
    for part in lines(pipeline, report, code, console.width):
        console.print(part)


def lines(pipeline: Pipeline, report: Quarantine, code: str | None, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    from framework.host.cli._grid import GridColumn, grid, one_line

    if report.waiting:
        waits = "waits: the next run writes it" if report.waiting == 1 else "wait: the next run writes them"
        yield Text(f"{counted(report.waiting, 'bad row')} of the last batch {waits} here", style="yellow")
    if report.settled:
        yield Text(f"{', '.join(f'{count:,} {state}' for state, count in report.settled)}: not shown")
    if not report.kinds:
        yield Text(_none(pipeline, code, bool(report.settled)))
        return
    suffix = f" of the code {code}" if code else ""
    yield Text(f"{pipeline.table.bad_rows}: {counted(report.rows, 'row')}{suffix}\n", style="bold")
    columns = (GridColumn("code"), GridColumn("rows", right=True), GridColumn("why", folds=True))
    yield grid(
        columns, [(kind.code, f"{kind.rows:,}", one_line(kind.message, _WIDEST)) for kind in report.kinds[:_MAX_KINDS]], width
    )
    if len(report.kinds) > _MAX_KINDS:
        yield Text(
            f"and {counted(sum(kind.rows for kind in report.kinds[_MAX_KINDS:]), 'row')} of {len(report.kinds) - _MAX_KINDS:,} other kinds"
        )
    for row in report.samples:
        yield from _sample(row)
    yield Text(_specs.hinted("\n".join(("", *_next(pipeline, report, code)))))


def _none(pipeline: Pipeline, code: str | None, settled: bool) -> str:
    if pipeline.bad_rows == "drop":
        return f"{pipeline.name} keeps no bad rows: its spec says `bad_rows: drop`"
    if code:
        return f"{pipeline.table.bad_rows}: no bad rows of the code `{code}`; without --code all are counted"
    return f"{pipeline.table.bad_rows}: no {'open ' if settled else ''}bad rows"


def _sample(row: BadRow) -> Iterator[RenderableType]:
    from rich.text import Text

    place = [] if row.topic is None else [row.topic]
    place += [] if row.offset is None else [f"partition {row.partition}, offset {row.offset:,}"]
    place += [] if row.item is None else [f"item {row.item}"]
    place += [] if row.timestamp is None else [iso_times.text(row.timestamp)]
    yield Text(f"\n{', '.join((*place, f'batch {row.batch:,}'))}", style="bold")
    yield Text(f"  {row.stage}: {row.code}: {row.message}", style="red")
    yield Text(f"  key    {_as_text(row.key)}")
    yield Text(f"  value  {_as_text(row.value)}")


def _as_text(data: bytes | None) -> str:
    from framework.host.cli._grid import one_line
    from framework.sql.masks import SEALED

    if data is None:
        return "(none)"
    if data.startswith(SEALED):
        return f"(encrypted, {counted(len(data), 'byte')})"
    text = one_line(data[: 4 * _WIDEST + 4].decode("utf-8", errors="replace"), _WIDEST)
    return f"{text} ({counted(len(data), 'byte')})" if text.endswith("…") or "�" in text or not text else text


def _next(pipeline: Pipeline, report: Quarantine, code: str | None) -> Iterator[str]:
    lands = f"later messages then land in {pipeline.table.identifier}"
    yield f"next: fix the producer, or the spec at {pipeline.where}; {lands}"
    yield f"these stay in {pipeline.table.bad_rows} with their bytes: `sluice replay {pipeline.name}` tries them by the corrected spec"
    if code is None and len({kind.code for kind in report.kinds}) > 1:
        yield f"one code alone: `sluice bad-rows {pipeline.name} --code {report.kinds[0].code}`"


def document(pipeline: Pipeline, report: Quarantine) -> dict[str, Any]:
    """The JSON document of `--json`."""
    from framework.plan import DISCARDED, REPLAYED

    return {
        "pipeline": pipeline.name,
        "table": pipeline.table.identifier,
        "bad_rows_table": pipeline.table.bad_rows,
        "rows": report.rows,
        "waiting": report.waiting,
        "replayed": dict(report.settled).get(REPLAYED, 0),
        "discarded": dict(report.settled).get(DISCARDED, 0),
        "kinds": [{"code": kind.code, "message": kind.message, "rows": kind.rows} for kind in report.kinds],
        "samples": [_document(row) for row in report.samples],
    }


def _document(row: BadRow) -> dict[str, Any]:
    return {
        "batch": row.batch, "stage": row.stage, "code": row.code, "message": row.message, "topic": row.topic,
        "partition": row.partition, "offset": row.offset, "item": row.item,
        "timestamp": iso_times.text(row.timestamp) if row.timestamp else None, **raw("key", row.key), **raw("value", row.value),
    }  # fmt: skip
