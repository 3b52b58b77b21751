"""A plan as text, for `sluice plan` and the golden files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace

from framework.base import amounts, iso_times
from framework.base.errors import visible
from framework.plan import (
    KAFKA_COLUMNS,
    AllRows,
    Column,
    Expectation,
    Keyed,
    Maintain,
    Pipeline,
    Plan,
    PlannedSubject,
    Rule,
    Run,
    SelectSource,
    SetExpectation,
    Source,
    Step,
    TableChanges,
    Topic,
    Topics,
    by_column,
)
from framework.plan.maintenance import MANY_EVERY
from framework.plan.totals import Totals

_SNAPSHOT = 1_800  # bytes in a table's metadata, with what a commit writes besides
_WIDTH = 118  # of a line, without its indent


_READS = {
    "all": "the whole table, if {}{} or the spec has changed",
    "added": "the rows that were added to {}",
    "changes": "what was added, changed and deleted in {}",
    "commits": "each commit of {} by itself",
}


def plan_text(plan: Plan) -> str:
    pipelines = (line for pipeline in plan.pipelines for line in (*pipeline_lines(pipeline), ""))
    return "\n".join((*pipelines, *document_lines(plan)))


def document_lines(plan: Plan) -> Iterator[str]:
    """The lines of documents that are neither a pipeline nor part of one."""
    for document in plan.documents:
        yield f"{document.kind} {document.name}  ({document.where})"
        yield from (f"  {line}" for line in document.says)
        yield ""


def pipeline_lines(pipeline: Pipeline) -> Iterator[str]:
    """The lines of a pipeline. Names and descriptions that come from a registry cannot break a line or steer a terminal."""
    return map(visible, _pipeline_lines(pipeline))


def _pipeline_lines(pipeline: Pipeline) -> Iterator[str]:
    table = pipeline.table
    yield f"pipeline {pipeline.name}  ({pipeline.where})"
    columns = pipeline.read_columns
    yield from _source(pipeline.source)
    for step in pipeline.steps:
        says = [f"{line}, else a bad row" for line in step.says] if step.name == "expect" else step.says
        first_line, *other_lines = (*says, *_gives(step, columns)) or ("",)
        yield f"  {step.name:<7} {first_line}"
        yield from (f"          {line}" for line in other_lines)
        columns = step.columns
    for expectation in pipeline.of_batches:
        yield f"  expect  {_expected(expectation)}"
    yield f"  into  {table.catalog.name}.{table.identifier}, {table.write.name}, Iceberg v{table.format_version}"
    yield from (f"          {line}" for line in _columns(table.columns))
    yield from (f"        {line}" for line in _kept(table.rule))
    if table.partition_by:
        yield f"        partitioned by {', '.join(map(str, table.partition_by))}"
    if table.sort_by:
        yield f"        sorted by {', '.join(table.sort_by)}"
    yield f"        written by {_written(pipeline)}"
    refused = [kind for kind in ("add", "widen", "drop") if getattr(table.schema_changes, kind) == "refuse"]
    if refused:
        yield f"        schema changes refused: {', '.join(refused)}"
    yield f"  bad rows  {_bad_rows(pipeline)}"
    for fault in pipeline.faults:
        yield f"          {fault.stage}: {fault.code}: {fault.message}"
    for follower in pipeline.also:
        yield f"  also  {follower.title}: {', '.join(follower.says)}"
    yield f"  runs  {_when(pipeline.run)}, {_reading(pipeline)}"
    yield f"  maintain  {'; '.join(_maintained(pipeline.maintain))}"
    if 0 < (pipeline.run.every or 0) < MANY_EVERY:
        yield f"  commits   {_cost(pipeline)}"
    if pipeline.fresh_within:
        warn = f", warns after {duration(pipeline.warn_after)}" if pipeline.warn_after else ""
        steady = "; no message for so long is a fault" if pipeline.is_steady else ""
        yield f"  fresh within {duration(pipeline.fresh_within)}{warn}{steady}"


def _written(pipeline: Pipeline) -> str:
    if reason := by_column.refusal(pipeline):
        return f"rows, since {reason}"
    if reason := by_column.detour(pipeline):
        return f"columns, through rows, since {reason}"
    reason = by_column.second_pass(pipeline)
    return f"columns, held for a second pass, since {reason}" if reason else "columns"


def _kept(rule: Rule) -> Iterator[str]:
    match rule:
        case Keyed():
            yield from _by_key(rule)
        case Totals():
            yield _totals(rule)
        case AllRows():
            pass


def _totals(totals: Totals) -> str:
    row_text = f"one row per {', '.join(totals.keys)}" if totals.keys else "one row"
    late_after = totals.late_after
    removal_text = ", and from which rows that are no more are taken off" if totals.takes_off else ""
    closing_text = f"; a window closes {duration(late_after)} before the newest row" if late_after else ""
    return f"{row_text}, to which each batch adds{removal_text}{closing_text}"


def _when(run: Run) -> str:
    if run.every:
        trigger = f"every {duration(run.every)}"
    else:
        trigger = f"at {run.cron} ({run.timezone})" if run.cron else "by hand"
    return f"{trigger}, or once {size(run.after)} wait" if run.after else trigger


def _reading(pipeline: Pipeline) -> str:
    match pipeline.source:
        case Topics():
            return f"{pipeline.batch_rows:,} rows a batch"
        case SelectSource() as source:
            return _read_by(source)
        case TableChanges() as source:
            joined_tables = "".join(f", {join.source.identifier}" for join in pipeline.joins)
            return _READS[source.reads].format(source.identifier, joined_tables)


def _read_by(source: SelectSource) -> str:
    if source.apart:
        groups = ", ".join(column for column, _ in source.apart)
        grouping = "each partition by" if source.by_partition else "each"
        return f"of {source.identifier} {grouping} {groups} in which rows have changed; all, if the spec has, or if they are very many"
    return f"the whole tables, if {source.identifier} or the spec has changed"


def _source(source: Source) -> Iterator[str]:
    for index, table in enumerate(source.tables):
        yield f"  {'' if index else 'from':<4}  table {table.catalog.name}.{table.identifier}, which {table.pipeline} writes"
    if source.select:
        first_line, *other_lines = source.select.says
        yield f"  sql     {first_line}"
        yield from (f"          {line}" for line in other_lines)
        return
    if source.topics:
        yield f"  from  {_topics(source.topics)}"
        yield from (f"          {_versions(registered)}" for topic in source.topics for registered in topic.registered)
    yield from (f"          {line}" for line in _columns((*source.columns, *source.kafka)))


def _topics(topics: tuple[Topic, ...]) -> str:
    names = [topic.name if topic.name == topic.kafka_name else f"{topic.name} ({topic.kafka_name})" for topic in topics]
    return f"topic{'s'[: len(names) - 1]} {', '.join(names)} on {topics[0].cluster.name}, {topics[0].value}, {_starts(topics)}"


def _versions(registered: PlannedSubject) -> str:
    numbers = registered.numbers
    if not numbers:
        return f"{registered.of}s by {registered.subject}, whose versions are unknown: the registry does not answer, or has no such subject"
    numbers_text = f"version {numbers[0]}" if len(numbers) == 1 else f"versions {numbers[0]} to {numbers[-1]}"
    return f"{registered.of}s by {registered.subject}, {numbers_text}"


def start(topic: Topic) -> str:
    """The start of reading, in a spec's words."""
    begins = topic.start_from
    return begins if isinstance(begins, str) else iso_times.text(begins)


def _starts(topics: tuple[Topic, ...]) -> str:
    starts = [start(topic) for topic in topics]
    if len(set(starts)) == 1:
        return f"starts at {starts[0]}"
    return ", ".join(f"{topic.name} starts at {start}" for topic, start in zip(topics, starts, strict=True))


def _gives(step: Step, columns: tuple[Column, ...]) -> Iterator[str]:
    """The columns that a step adds or gives another type, unless the step's own lines name them."""
    earlier_columns = {(column.name, column.type) for column in columns}
    added_columns = (
        column
        for column in step.columns
        if (column.name, column.type) not in earlier_columns and not column.name.startswith("_sluice_")
    )
    new_columns = ", ".join(
        f"{column.name} {column.type}" for column in added_columns if f"{column.name} as {column.type}" not in step.says
    )
    if new_columns:
        yield from textwrap.wrap(
            f"gives {new_columns}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )


def _by_key(keyed: Keyed) -> Iterator[str]:
    keys, order = ", ".join(keyed.keys), ", ".join(keyed.order)
    yield f"all versions of each {keys}, by {order}" if keyed.versions else f"one row per {keys}: the newest by {order}"
    if keyed.partition:
        first_column = keyed.order[0]
        condition = "" if first_column == KAFKA_COLUMNS[-1].name else f"of equal {first_column}, "
        yield f"{condition}of one partition the later message, also where Kafka's clock stepped back"
    if keyed.deletes:
        yield f"{'ended' if keyed.versions else 'deleted'} by {keyed.says}, remembered for {duration(keyed.remember)}"


def _expected(expectation: Expectation | SetExpectation) -> str:
    name = "" if expectation.name == expectation.says else f"{expectation.name}: "
    return f"{name}{expectation.says}, else {'warns' if expectation.otherwise == 'warn' else 'nothing is published'}"


def _cost(pipeline: Pipeline) -> str:
    """The most that commits at the pipeline's rate write besides rows: each writes the list of all snapshots again."""
    every = pipeline.run.every or 1
    # None of their snapshots expires early: they say which rows were tried when, or a reader needs each.
    keeps_all = pipeline.rows_wait or any(reader.every_commit for reader in pipeline.readers)
    maintain = replace(pipeline.maintain, adapts=pipeline.maintain.adapts and not keeps_all)
    count, per_hour = maintain.most_snapshots(every), 3600 // every
    written = amounts.size(count * _SNAPSHOT)
    return f"{per_hour:,} commits an hour at most, each with about {written} of metadata, for {count:,} snapshots"


def _maintained(maintain: Maintain) -> Iterator[str]:
    yield f"files of {size(maintain.compact_to)} every {duration(maintain.compact_every)}"
    yield f"snapshots kept for {duration(maintain.keep_snapshots_for)}, {maintain.keep_at_least} at least"
    yield f"`sluice maintain` deletes files that no commit names, after {duration(maintain.orphans_after)}"


def _columns(columns: tuple[Column, ...]) -> Iterator[str]:
    names = [visible(column.name) for column in columns]
    width = max(map(len, names), default=0)
    for name, column in zip(names, columns, strict=True):
        yield f"{name:<{width}}  {column.type}{f'  -- {column.doc}' if column.doc else ''}"


def _bad_rows(pipeline: Pipeline) -> str:
    if pipeline.bad_rows == "quarantine":
        return f"go to {pipeline.table.bad_rows}"
    return "stop the run" if pipeline.bad_rows == "stop" else "are counted and dropped"


def duration(seconds: int) -> str:
    """The duration in a spec's syntax."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def size(count: int) -> str:
    """The size in a spec's syntax."""
    for unit, bytes_ in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count % bytes_ == 0:
            return f"{count // bytes_}{unit}"
    return f"{count}B"
