"""A plan as text: what `sluice plan` prints and the golden files hold."""

from __future__ import annotations

from collections.abc import Iterator

from framework.plan.model import Column, Pipeline, Plan


def plan_text(plan: Plan) -> str:
    return "\n".join(line for pipeline in plan.pipelines for line in (*pipeline_lines(pipeline), ""))


def pipeline_lines(pipeline: Pipeline) -> Iterator[str]:
    topic, table = pipeline.topic, pipeline.table
    yield f"pipeline {pipeline.name}  ({pipeline.where})"
    name = topic.name if topic.name == topic.kafka_name else f"{topic.name} ({topic.kafka_name})"
    yield f"  from  topic {name} on {topic.cluster.name}, {topic.value}, starts at {topic.start_from}"
    yield from (f"          {line}" for line in _columns(topic.columns))
    for step in pipeline.steps:
        says = list(step.says)
        yield f"  {step.name:<7} {says[0] if says else ''}"
        yield from (f"          {line}" for line in says[1:])
    yield f"  into  {table.catalog.name}.{table.identifier}, {table.write}, Iceberg v{table.format_version}"
    yield from (f"          {line}" for line in _columns(table.columns))
    if table.partition_by:
        yield f"        partitioned by {', '.join(map(str, table.partition_by))}"
    if table.sort_by:
        yield f"        sorted by {', '.join(table.sort_by)}"
    yield f"  bad rows  {_bad_rows(pipeline)}"
    for fault in pipeline.faults:
        yield f"          {fault.stage}: {fault.code}: {fault.message}"
    yield f"  runs  {f'every {duration(pipeline.every)}' if pipeline.every else 'by hand'}, {pipeline.batch_rows:,} rows a batch"
    if pipeline.fresh_within:
        warn = f", warns after {duration(pipeline.warn_after)}" if pipeline.warn_after else ""
        yield f"  fresh within {duration(pipeline.fresh_within)}{warn}"


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
