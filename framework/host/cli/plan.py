"""`sluice plan`: what will run, what it changes in the tables, and which messages wait."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.base.amounts import counted, size
from framework.base.errors import NoTopic, RefusedError, SpecError, visible
from framework.host.cli import _complete, _slim, _specs
from framework.host.cli.lineage import show as show_lineage

if TYPE_CHECKING:
    from framework.base.errors import Problem, SluiceError, Where
    from framework.core.kafka.backlog import Waiting
    from framework.operations.observe.next_run import NextRun, Recompute
    from framework.operations.rebuild.estimate import Estimate
    from framework.plan import Pipeline, Plan, TableChanges
    from framework.plan.change import Change

SECTION, ORDER = "write", 3


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@click.option("--no-look", is_flag=True, help="Plan from the specs alone: ask neither Kafka nor the catalog.")
@click.option("--lineage", is_flag=True, help="Print only where each column comes from, as `sluice lineage` does.")
@click.option("--spark-submit", "submit", is_flag=True, help="Print only the command by which spark-submit runs them.")
@_specs.with_specs
def command(
    names: tuple[str, ...], as_json: bool, no_look: bool, lineage: bool, submit: bool, specs: Path, environment: str
) -> None:
    """Show what will run, what it changes, and what waits.

    Shows columns and types after every step, tables and bad rows; then the next run: what it changes
    in each table, and which messages it reads. Changes nothing and starts nothing.

    Without a NAME, all pipelines. Bytes and seconds are estimates: from the size of up to 100 waiting messages, and from
    the speed of the table's last large batches, or 250,000 messages a second if there are none. A Kafka or catalog that
    does not answer within a few seconds is named in one line. Exit status 1 if a run would fail or be refused.
    docs/plan.md explains each line, and the JSON of --json.

    Example: sluice plan flagged_stock_trades
    """
    from framework.plan.text import document_lines, pipeline_lines

    try:
        plan = _specs.plan(specs, environment)
    except SpecError as error:
        if not as_json:
            raise
        click.echo(json.dumps(_specs.hinted_in([_problem(problem) for problem in error.problems]), indent=2))
        sys.exit(1)
    pipelines = _specs.chosen(plan, names)
    if submit and lineage:
        raise click.UsageError("--spark-submit and --lineage exclude each other: choose one")
    if lineage:
        show_lineage(plan, pipelines, environment, as_json)
        return
    if submit and as_json:
        raise click.UsageError("--spark-submit prints a command, which --json does not have")
    if submit:
        _slim.needs("pyspark")
        click.echo(" \\\n".join(_submitted(plan, [pipeline.name for pipeline in pipelines], specs, environment)))
        return
    lines = [line for pipeline in pipelines for line in (*pipeline_lines(pipeline), "")]
    lines += [] if names else document_lines(plan)
    if not as_json:
        _specs.echo("\n".join(lines or ["there are no pipelines"]))
        if not pipelines:
            return
    checked: list[NextRun] = []
    if not no_look:
        from framework.operations.observe.next_run import next_runs

        for next_run in next_runs(plan, pipelines):
            checked.append(next_run)
            if not as_json:
                _print(next_run)
    if as_json:
        by_name = {next_run.pipeline.name: next_run for next_run in checked}
        documents = [document(pipeline, by_name.get(pipeline.name)) for pipeline in pipelines]
        click.echo(json.dumps(_specs.hinted_in({"environment": environment, "pipelines": documents}), indent=2))
    else:
        away = (error for next_run in checked for error in next_run.unreachable if not isinstance(error, NoTopic))
        for silent in {str(error): error for error in away}.values():
            _specs.echo(f"not checked: {silent.message}{f' ({silent.hint})' if silent.hint else ''}")
    if not all(next_run.would_run for next_run in checked):
        sys.exit(1)


def _submitted(plan: Plan, names: list[str], specs: Path, environment: str) -> Iterator[str]:
    from importlib.util import find_spec

    from framework.core.spark import submit

    program = find_spec("pipelines.submit")
    assert program is not None and program.origin is not None
    return submit.lines(plan, program.origin, ["run", *names, "--specs", str(specs.absolute()), "--env", environment])


def _print(next_run: NextRun) -> None:
    lines = list(next_run_lines(next_run))
    if lines:
        _specs.echo("\n".join((f"{next_run.pipeline.name}, the next run", *(f"  {visible(line)}" for line in lines), "")))


def next_run_lines(next_run: NextRun) -> Iterator[str]:
    """The next run of a pipeline, in words."""
    for error in next_run.refused:
        yield f"{'REFUSED' if isinstance(error, RefusedError) else 'FAILS'} {error.code}: {error.message}"
        yield f"  hint: {error.hint}"
    for error in next_run.unreachable:
        if isinstance(error, NoTopic):
            yield f"WAITS for its topic: {error.message}"
            yield f"  hint: {error.hint}"
    changes = next_run.changes or ()
    for change in changes:
        yield f"{'' if change.allowed else 'REFUSED '}{change}"
    hints = dict.fromkeys(change.hint for change in changes if not change.allowed)
    yield from (f"  hint: {hint}" for hint in hints)
    if next_run.changes == ():
        yield "table is as the spec says"
    for waiting in next_run.waiting or ():
        yield _waits(waiting)
    if next_run.rebuild:
        if next_run.rows_differ:
            yield "existing rows stay as the previous spec made them"
        lines_of_rebuild = list(rebuild_lines(next_run.pipeline, next_run.rebuild))
        yield f"`sluice rebuild {next_run.pipeline.name}` rebuilds the table: {lines_of_rebuild[0]}"
        yield from (f"  {line}" for line in lines_of_rebuild[1:])
    if next_run.recompute and next_run.pipeline.read_tables:
        yield _computes(next_run.recompute, next_run.pipeline)
    if not next_run.idle:
        yield from (f"then maintains {table.identifier}: {table.words}" for table in next_run.maintenance)
    if next_run.idle and any(change.kind != "drop" or not change.allowed for change in changes):
        comes = (
            f"when {next_run.pipeline.source_name} changes" if next_run.pipeline.read_tables else "when the next message arrives"
        )
        yield f"schema changes apply {comes}; until then a run finds nothing to do"


def rebuild_lines(pipeline: Pipeline, estimate: Estimate) -> Iterator[str]:
    """The messages that a rebuild reads, its cost, and the rows that it would lose."""
    if estimate.rows is not None and pipeline.read_tables:
        yield f"reads {pipeline.source_name}: {counted(estimate.rows, 'row')}, {_time(estimate.seconds)}"
    yield from (_waits(waiting) for waiting in estimate.waiting)
    if estimate.done:
        yield f"continues an interrupted rebuild, which has read {counted(estimate.done, 'message')}"
    yield from (f"without {lost.words}" for lost in estimate.lost)
    yield from (f"undoes {foreign.words}" for foreign in estimate.foreign)


def _computes(recompute: Recompute, pipeline: Pipeline) -> str:
    name, select = pipeline.source_name, pipeline.select
    if not recompute.because:
        return (
            f"{name} has not changed since {'the table was computed' if pipeline.computes_all else 'it was read'}: nothing to do"
        )
    if recompute.groups and select:
        noun, column_names = "partitions" if select.by_partition else "groups", ", ".join(column for column, _ in select.apart)
        return f"computes again the {noun} by {column_names} in which {name} has changed, by up to {counted(recompute.rows or 0, 'row')}"
    line = (
        f"recomputes the table from {name}, {recompute.because}"
        if pipeline.computes_all
        else f"reads {name}, {recompute.because}"
    )
    if recompute.rows is None or recompute.seconds is None:
        return line
    return f"{line}: {counted(recompute.rows, 'row')} now, {_time(recompute.seconds)} once Spark has started"


def _waits(waiting: Waiting) -> str:
    partitions = counted(len(waiting.offsets), "partition")
    if not waiting.messages:
        return f"nothing waits in {waiting.topic}, {partitions}"
    size_text = "size unknown" if waiting.bytes is None else f"about {size(waiting.bytes)}"
    messages = counted(waiting.messages, "message")
    speed = f"{waiting.speed:,.0f}/s" + (" as before" if waiting.measured else " once Spark has started")
    return f"reads {messages} of {waiting.topic}, {partitions}, {size_text}: {_time(waiting.seconds)} at {speed}"


def _time(seconds: float) -> str:
    if seconds < 1:
        return "about a second"
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"about {seconds / length:,.0f} {unit}"
    return f"about {seconds:,.0f} s"


def document(pipeline: Pipeline, next_run: NextRun | None) -> dict[str, Any]:
    """The JSON of a pipeline for `--json`; docs/plan.md describes it."""
    from framework.plan.change import place

    table, read_tables = pipeline.table, list(map(_read, pipeline.read_tables))
    return {
        "pipeline": pipeline.name,
        **_where(pipeline.where),
        "topics": [{"topic": topic.name, "kafka_name": topic.kafka_name, **_where(topic.where)} for topic in pipeline.topics],
        "from_table": read_tables[0] if read_tables and not pipeline.select else None,
        "from_tables": read_tables if pipeline.select else [],
        "steps": [{"step": step.name, "says": step.says, **_where(step.where)} for step in pipeline.steps],
        "table": {
            "catalog": table.catalog.name, "name": table.identifier, "write": table.write.name, "format_version": table.format_version,
            "partition_by": [str(field) for field in table.partition_by], "sort_by": table.sort_by,
        },
        "columns": [
            {"name": column.name, "type": str(column.type), "doc": column.doc, **_where(place(pipeline, column.name))}
            for column in table.columns
        ],
        **_next_run(next_run),
    }  # fmt: skip


def _read(source: TableChanges) -> dict[str, str]:
    return {"catalog": source.catalog.name, "name": source.identifier, "pipeline": source.pipeline}


def _next_run(next_run: NextRun | None) -> dict[str, Any]:
    """The JSON of the next run. Null means not checked, or no answer."""
    if next_run is None:
        return {
            "would_run": None,
            "changes": None,
            "waiting": None,
            "recompute": None,
            "rebuild": None,
            "maintenance": [],
            "refused": [],
            "unseen": [],
        }
    return {
        "would_run": next_run.would_run,
        "changes": None if next_run.changes is None else [_change(change) for change in next_run.changes],
        "waiting": None if next_run.waiting is None else [_waiting(waiting) for waiting in next_run.waiting],
        "recompute": _recompute(next_run.recompute) if next_run.recompute else None,
        "rebuild": _rebuild(next_run.rebuild) if next_run.rebuild else None,
        "maintenance": [{"table": table.identifier, "says": table.words} for table in next_run.maintenance],
        "refused": [_error(error) for error in next_run.refused],
        "unseen": [_error(error) for error in next_run.unreachable],
    }


def _change(change: Change) -> dict[str, Any]:
    old, new = (None if type_ is None else str(type_) for type_ in (change.old, change.new))
    return {
        "kind": change.kind, "allowed": change.allowed, "message": change.what, "hint": change.hint, "name": ".".join(change.path),
        "from": old, "to": new, **_where(change.where),
    }  # fmt: skip


def _waiting(waiting: Waiting) -> dict[str, Any]:
    return {
        "topic": waiting.topic,
        "messages": waiting.messages,
        "about_bytes": waiting.bytes,
        "about_seconds": round(waiting.seconds, 3),
        "messages_per_second": round(waiting.speed),
        "measured": waiting.measured,
        "partitions": [
            {"partition": number, "next": start, "end": end, "messages": end - start} for number, start, end in waiting.offsets
        ],
    }


def _recompute(recompute: Recompute) -> dict[str, Any]:
    seconds = None if recompute.seconds is None else round(recompute.seconds, 3)
    return {"computes": bool(recompute.because), "because": recompute.because, "rows": recompute.rows, "about_seconds": seconds}


def _rebuild(estimate: Estimate) -> dict[str, Any]:
    return {
        "topics": [{"topic": waiting.topic, "messages": waiting.messages} for waiting in estimate.waiting],
        "rows": estimate.rows,
        "about_seconds": round(estimate.seconds, 3),
        "lost": [loss.words for loss in estimate.lost],
        "undone": [change.words for change in estimate.foreign],
    }


def _where(where: Where) -> dict[str, Any]:
    return {"file": where.file, "line": where.line, "column": where.column}


def _problem(problem: Problem) -> dict[str, Any]:
    return {**_where(problem.where), "code": problem.code, "message": problem.message, "hint": problem.hint}


def _error(error: SluiceError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "hint": error.hint}
