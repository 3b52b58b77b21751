"""A plan as text: what `sluice plan` prints and the golden files hold."""

from __future__ import annotations

from collections.abc import Iterator

from framework.plan.model import Column, Expectation, Maintain, Pipeline, Plan


def plan_text(plan: Plan) -> str:
    return "\n".join(line for pipeline in plan.pipelines for line in (*pipeline_lines(pipeline), ""))


def pipeline_lines(pipeline: Pipeline) -> Iterator[str]:
    table = pipeline.table
    yield f"pipeline {pipeline.name}  ({pipeline.where})"
    yield from _source(pipeline)
    for step in pipeline.steps:
        says = list(step.says)
        yield f"  {step.name:<7} {says[0] if says else ''}"
        yield from (f"          {line}" for line in says[1:])
    for expected in pipeline.expectations:
        yield f"  expect  {_expected(expected)}"
    yield f"  into  {table.catalog.name}.{table.identifier}, {table.write}, Iceberg v{table.format_version}"
    yield from (f"          {line}" for line in _columns(table.columns))
    if table.partition_by:
        yield f"        partitioned by {', '.join(map(str, table.partition_by))}"
    if table.sort_by:
        yield f"        sorted by {', '.join(table.sort_by)}"
    refused = [kind for kind in ("add", "widen", "drop") if getattr(table.schema_changes, kind) == "refuse"]
    if refused:
        yield f"        schema changes refused: {', '.join(refused)}"
    yield f"  bad rows  {_bad_rows(pipeline)}"
    for fault in pipeline.faults:
        yield f"          {fault.stage}: {fault.code}: {fault.message}"
    most = "all in one batch" if pipeline.source else f"{pipeline.batch_rows:,} rows a batch"
    yield f"  runs  {f'every {duration(pipeline.every)}' if pipeline.every else 'by hand'}, {most}"
    yield f"  maintain  {'; '.join(_maintained(pipeline.maintain))}: not done by this version"
    if pipeline.fresh_within:
        warn = f", warns after {duration(pipeline.warn_after)}" if pipeline.warn_after else ""
        yield f"  fresh within {duration(pipeline.fresh_within)}{warn}"


def _source(pipeline: Pipeline) -> Iterator[str]:
    if pipeline.source:
        yield f"  from  table {pipeline.source.catalog.name}.{pipeline.source.identifier}, of {pipeline.source.pipeline}"
        columns = (*pipeline.source.columns, *pipeline.source.kafka)
    else:
        topic, columns = pipeline.topic, pipeline.topic.columns
        names = [each.name if each.name == each.kafka_name else f"{each.name} ({each.kafka_name})" for each in pipeline.topics]
        start = ", ".join(dict.fromkeys(str(each.start_from) for each in pipeline.topics))
        yield f"  from  topic{'s'[: len(names) - 1]} {', '.join(names)} on {topic.cluster.name}, {topic.value}, starts at {start}"
    yield from (f"          {line}" for line in _columns(columns))


def _expected(expected: Expectation) -> str:
    name = "" if expected.name == expected.says else f"{expected.name}: "
    return f"{name}{expected.says}, else {'warns' if expected.otherwise == 'warn' else 'nothing is published'}"


def _maintained(maintain: Maintain) -> Iterator[str]:
    yield f"files of {size(maintain.compact_to)} every {duration(maintain.compact_every)}"
    yield f"snapshots kept for {duration(maintain.keep_snapshots_for)}, {maintain.keep_at_least} at least"
    yield f"files that no snapshot knows go after {duration(maintain.orphans_after)}"


def _columns(columns: tuple[Column, ...]) -> Iterator[str]:
    width = max((len(column.name) for column in columns), default=0)
    for column in columns:
        yield f"{column.name:<{width}}  {column.type}{f'  -- {column.doc}' if column.doc else ''}"


def _bad_rows(pipeline: Pipeline) -> str:
    if pipeline.bad_rows == "quarantine":
        return f"go to {pipeline.table.bad_rows}"
    return "stop the run" if pipeline.bad_rows == "stop" else "are counted and dropped"


def duration(seconds: int) -> str:
    """As specs write it."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def size(count: int) -> str:
    """As specs write it."""
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count % bytes_ == 0:
            return f"{count // bytes_}{unit}"
    return f"{count}B"
