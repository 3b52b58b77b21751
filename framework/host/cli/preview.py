"""`sluice preview`: some messages and their rows after each step."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.host.cli import _complete, _specs
from framework.host.cli._raw import raw

if TYPE_CHECKING:
    from framework.operations.trials.preview import Preview, PreviewedMessage, Row
    from framework.plan import Pipeline

SECTION, ORDER = "write", 5


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option(
    "--messages",
    "count",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Show this many messages, or rows of a table.",
)
@click.option("--from", "start", type=click.Choice(["earliest", "latest"]), help="Show the topic's first or last messages.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_spark
def command(name: str, count: int, start: str | None, as_json: bool, specs: Path, environment: str) -> None:
    """Show what the next messages become, step by step.

    For the next messages of pipeline NAME, shows after each step what changes, what is filtered out, and what is a bad row,
    with the reason. Writes nothing.

    These are the messages that the next run would read; if nothing waits, the last ones of the topic. If the pipeline reads
    a table, some of its rows.

    Example: sluice preview flagged_stock_trades --messages 3
    """
    plan = _specs.plan(specs, environment)
    pipeline = _specs.chosen(plan, [name])[0]
    if start and pipeline.read_tables:
        raise click.UsageError(f"--from has no effect here: {name} reads a table, not a topic")
    from framework.core.kafka.cluster import refuse_silent
    from framework.operations.trials.preview import run_preview

    if pipeline.topics:
        refuse_silent(pipeline.topic.cluster)
    result = run_preview(plan, pipeline, count, start or "next")  # type: ignore[arg-type]
    if as_json:
        click.echo(json.dumps(_document(pipeline, result), indent=2, ensure_ascii=False))
    else:
        from framework.host.cli._terminal import console
        from framework.operations.trials.preview_text import show

        show(console(sys.stdout), pipeline, result)


def _document(pipeline: Pipeline, result: Preview) -> dict[str, Any]:
    return {
        "pipeline": pipeline.name,
        "which": result.which,
        "waiting": result.waiting,
        "refused": result.refused
        and {"code": result.refused.code, "message": result.refused.message, "hint": result.refused.hint},
        "steps": [{"step": step.name, "says": step.says} for step in pipeline.steps],
        "messages": [_message(pipeline, message) for message in result.messages],
    }


def _message(pipeline: Pipeline, message: PreviewedMessage) -> dict[str, Any]:
    return {
        "topic": message.topic, "partition": message.partition, "offset": message.offset, "timestamp": message.timestamp,
        **raw("key", message.key), **raw("value", message.value),
        "rows": [_row(pipeline, row) for row in message.rows],
    }  # fmt: skip


def _row(pipeline: Pipeline, row: Row) -> dict[str, Any]:
    names = ("read", *(step.name for step in pipeline.steps))
    states = [{"step": name, "columns": columns} for name, columns in zip(names, row.after, strict=False)]
    entry: dict[str, Any] = {"item": row.item, "fate": row.fate, "after": states, "unexpected": row.unexpected}
    if row.fate == "filtered":
        entry["filtered_by"] = {"number": len(row.after), "step": names[len(row.after)]}
    if row.fate == "bad":
        entry["bad"] = {"code": row.code, "stage": row.stage, "message": row.message}
    return entry
