"""Shows what will run, what it would change in the tables, and what waits for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.cli import _specs
from framework.errors import SpecError

if TYPE_CHECKING:
    from framework.engine.ahead import Ahead, Waiting
    from framework.errors import Problem, SluiceError, Where
    from framework.plan.change import Change
    from framework.plan.model import Pipeline


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--no-look", is_flag=True, help="Only what the specs say: ask neither Kafka nor the catalog.")
@_specs.with_specs
def command(names: tuple[str, ...], as_json: bool, no_look: bool, specs: Path, environment: str) -> None:
    """Show what will run: columns and types through every step, tables, bad rows. Then what the next run would do: what it
    changes in each table, and which messages it reads. Changes nothing and starts nothing.

    Without a NAME, all pipelines. Bytes and seconds are estimates: by the size of up to 100 of the messages that wait, and by
    the speed of the table's last large batches, or 250,000 messages a second where there are none. Kafka or a catalog that
    does not answer within some seconds is named in one line. Exit status 1 where a run would refuse to go on.

    Example: sluice plan flagged_stock_trades
    """
    from framework.plan.text import pipeline_lines

    try:
        plan = _specs.plan(specs, environment)
    except SpecError as error:
        if not as_json:
            raise
        click.echo(json.dumps([_problem(problem) for problem in error.problems], indent=2))
        sys.exit(1)
    pipelines = _specs.chosen(plan, names)
    if not as_json:
        click.echo("\n".join(line for pipeline in pipelines for line in (*pipeline_lines(pipeline), "")))
    found: list[Ahead] = []
    if not no_look:
        from framework.engine.ahead import look_ahead

        for ahead in look_ahead(plan, pipelines):
            found.append(ahead)
            if not as_json:
                _print(ahead)
    unseen = list({str(error): error for ahead in found for error in ahead.unseen}.values())
    if as_json:
        seen = {ahead.pipeline.name: ahead for ahead in found}
        documents = [_document(pipeline, seen.get(pipeline.name)) for pipeline in pipelines]
        whole = {"environment": environment, "pipelines": documents, "unseen": [_error(error) for error in unseen]}
        click.echo(json.dumps(whole, indent=2))
    else:
        for silent in unseen:
            click.echo(f"not looked at: {silent.message}{f' ({silent.hint})' if silent.hint else ''}")
    if not all(ahead.would_run for ahead in found):
        sys.exit(1)


def _print(ahead: Ahead) -> None:
    lines = list(ahead_lines(ahead))
    if lines:
        click.echo("\n".join((f"{ahead.pipeline.name}, the next run", *(f"  {line}" for line in lines), "")))


def ahead_lines(ahead: Ahead) -> Iterator[str]:
    """What the next run of a pipeline would do, in words."""
    for error in ahead.refused:
        yield f"REFUSED {error.code}: {error.message}"
        yield f"  hint: {error.hint}"
    changes = ahead.changes or ()
    for change in changes:
        yield f"{'' if change.allowed else 'REFUSED '}{change}"
    hints = dict.fromkeys(change.hint for change in changes if not change.allowed)
    yield from (f"  hint: {hint}" for hint in hints)
    if ahead.changes == () and not ahead.refused:
        yield "table is as the spec says"
    for waiting in ahead.waiting or ():
        yield _waits(waiting)
    if ahead.anew is not None and ahead.pipeline.source:
        name = ahead.pipeline.source.identifier
        yield f"computes the table anew from {name}" if ahead.anew else f"{name} is as it was when the table was computed"
    idle = not ahead.pipeline.source and ahead.waiting is not None and not any(each.messages for each in ahead.waiting)
    if idle and any(change.kind in ("add", "widen") for change in changes):
        yield "columns change with the first message that comes"


def _waits(waiting: Waiting) -> str:
    partitions = f"{len(waiting.offsets):,} partition{'' if len(waiting.offsets) == 1 else 's'}"
    if not waiting.messages:
        return f"nothing waits in {waiting.topic}, {partitions}"
    size = "size unknown" if waiting.bytes is None else f"about {_size(waiting.bytes)}"
    messages = f"{waiting.messages:,} message{'' if waiting.messages == 1 else 's'}"
    speed = f"{waiting.speed:,.0f}/s" + (" as before" if waiting.measured else " once Spark has started")
    return f"reads {messages} of {waiting.topic}, {partitions}, {size}: {_time(waiting.seconds)} at {speed}"


def _size(count: int) -> str:
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= bytes_:
            return f"{count / bytes_:,.1f} {unit}"
    return f"{count} bytes"


def _time(seconds: float) -> str:
    if seconds < 1:
        return "about a second"
    return f"about {seconds:,.0f} s" if seconds < 120 else f"about {seconds / 60:,.0f} min"


def _document(pipeline: Pipeline, ahead: Ahead | None) -> dict[str, Any]:
    from framework.plan.change import place

    table = pipeline.table
    return {
        "pipeline": pipeline.name,
        **_where(pipeline.where),
        "from_table": pipeline.source.identifier if pipeline.source else None,
        "topics": [{"topic": topic.name, "kafka_name": topic.kafka_name, **_where(topic.where)} for topic in pipeline.topics],
        "steps": [{"step": step.name, "says": step.says, **_where(step.where)} for step in pipeline.steps],
        "table": {
            "catalog": table.catalog.name, "name": table.identifier, "write": table.write, "format_version": table.format_version,
            "partition_by": [str(field) for field in table.partition_by], "sort_by": table.sort_by,
        },
        "columns": [
            {"name": column.name, "type": str(column.type), "doc": column.doc, **_where(place(pipeline, column.name))}
            for column in table.columns
        ],
        "changes": None if ahead is None or ahead.changes is None else [_change(change) for change in ahead.changes],
        "computes_anew": ahead.anew if ahead else None,
        "waiting": None if ahead is None or ahead.waiting is None else _waiting(ahead.waiting),
        "refused": [_error(error) for error in ahead.refused] if ahead else [],
    }  # fmt: skip


def _change(change: Change) -> dict[str, Any]:
    old, new = (None if type_ is None else str(type_) for type_ in (change.old, change.new))
    return {
        "kind": change.kind, "allowed": change.allowed, "message": change.what, "hint": change.hint, "name": ".".join(change.path),
        "from": old, "to": new, **_where(change.where),
    }  # fmt: skip


def _waiting(waiting: Sequence[Waiting]) -> list[dict[str, Any]]:
    return [
        {
            "topic": each.topic,
            "messages": each.messages,
            "about_bytes": each.bytes,
            "about_seconds": round(each.seconds, 3),
            "messages_per_second": round(each.speed),
            "measured": each.measured,
            "partitions": [
                {"partition": number, "next": start, "end": end, "messages": end - start} for number, start, end in each.offsets
            ],
        }
        for each in waiting
    ]


def _where(where: Where) -> dict[str, Any]:
    return {"file": where.file, "line": where.line, "column": where.column}


def _problem(problem: Problem) -> dict[str, Any]:
    return {**_where(problem.where), "code": problem.code, "message": problem.message, "hint": problem.hint}


def _error(error: SluiceError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "hint": error.hint}
