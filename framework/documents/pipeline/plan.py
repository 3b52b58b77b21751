"""Resolve each pipeline: type its steps, and describe its table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from framework.base.errors import Problem, Where
from framework.documents.draft import Draft, unknown
from framework.documents.pipeline import (
    expectations,
    followers,
    keyed,
    looked_up_again,
    running,
    select_source as queries,
    set_expectations,
    sources as table_sources,
    steps as typed_steps,
    tables,
    tests as examples,
    totals,
)
from framework.documents.pipeline.landing import Landing
from framework.documents.pipeline.partitions import short_names
from framework.documents.pipeline.row_time import RowTime, row_time
from framework.documents.pipeline.written import From as WrittenFrom, Pipeline as WrittenPipeline
from framework.documents.rows import Rows
from framework.documents.topic import plan as topics
from framework.documents.topic.written import Topic as WrittenTopic
from framework.documents.write_mode import write_mode
from framework.language import extensions
from framework.plan import (
    ALL_ROWS,
    EVENT_TIME,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    Column,
    Expectation,
    Keyed,
    Pipeline,
    Rule,
    SelectSource,
    SetExpectation,
    Source,
    Step,
    Table,
    TableChanges,
    Topics,
    digest,
)
from framework.plan.totals import WINDOW_END, WINDOW_START, Totals


def plan_pipelines(draft: Draft, documents: Iterable[WrittenPipeline]) -> tuple[Pipeline, ...]:
    planned: dict[str, Pipeline | None] = {}
    for spec in documents:
        _resolved(draft, spec, planned, [])
    done = sorted((pipeline for pipeline in planned.values() if pipeline), key=lambda pipeline: pipeline.name)
    return tuple(table_sources.with_readers(done))


def _resolved(draft: Draft, spec: WrittenPipeline, planned: dict[str, Pipeline | None], open_names: list[str]) -> Pipeline | None:
    """A planned pipeline. A pipeline that reads a table is planned after the pipeline that writes it."""
    if spec.name not in planned:
        planned[spec.name] = _pipeline(draft, spec, planned, [*open_names, spec.name])
    return planned[spec.name]


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    """The inputs of a pipeline, and its rows before the first step."""

    source: Source | None  # None: it is missing or has problems
    rows: Rows


@dataclass(frozen=True, kw_only=True)
class _Typed:
    """The inputs, the typed steps, and all else that the table needs. `judges` check how rows land, by their step's index."""

    inputs: _Inputs
    steps: tuple[Step, ...]
    last_rows: Rows
    judges: Mapping[int, Any]
    rule: Rule
    expected: tuple[Expectation, ...]


def _pipeline(draft: Draft, spec: WrittenPipeline, planned: dict[str, Pipeline | None], open_names: list[str]) -> Pipeline | None:
    lookup = partial(_joined, draft, planned=planned, open_names=open_names)
    inputs = _inputs(draft, spec, planned, open_names)
    inputs = replace(inputs, rows=replace(inputs.rows, tables=lookup))
    draft.problems.extend(running.problems(spec, inputs.source))
    problems_before = len(draft.problems)
    typed = _typed(spec, inputs)
    if len(draft.problems) == problems_before and not typed.last_rows.more:  # else the cause was reported
        draft.problems.extend(typed_steps.without_type(spec, typed.steps, inputs.rows))
    if "into" in spec.gaps:
        return None
    table = tables.plan_table(draft, spec, typed.last_rows, typed.rule, typed.steps)
    if table is None or typed.last_rows.more:  # the known part was checked
        if table is not None and isinstance(typed.inputs.source, Topics):
            pipeline_without_columns = _put_together(spec, typed, table, (), draft.written.environment)
            draft.without_columns.append(replace(pipeline_without_columns, spec=""))
        return None
    typed = _with_short_names(spec, typed, table)
    names = {expectation.name for expectation in typed.expected}
    sets = set_expectations.plan_set_expectations(spec, table, names, lookup, draft.problems)
    pipeline = _put_together(spec, typed, table, sets, draft.written.environment)
    draft.problems.extend(_landing_problems(spec, typed.judges, pipeline))
    pipeline = replace(pipeline, also=followers.plan_followers(draft, spec, pipeline))
    is_sure = len(draft.problems) == problems_before and "expect" not in spec.gaps
    return replace(
        pipeline, examples=examples.plan_tests(pipeline, spec, draft.written.of(WrittenTopic), draft.problems, is_sure)
    )


def _inputs(draft: Draft, spec: WrittenPipeline, planned: dict[str, Pipeline | None], open_names: list[str]) -> _Inputs:
    source = _source(draft, spec, planned, open_names) if "from" not in spec.gaps else None
    if source and "into" not in spec.gaps:
        source = source.mapped(topic=partial(keyed.without_deletes, into=spec.into))
    rows = _rows(draft, spec, source)
    if any(extensions.find(extensions.STEPS)[step.name].hides for step in spec.steps):
        rows, source = replace(rows, quiet=True), source and source.mapped(topic=topics.without_values)
    return _Inputs(source=source, rows=rows)


def _typed(spec: WrittenPipeline, inputs: _Inputs) -> _Typed:
    source, rows = inputs.source, inputs.rows
    is_select = "from" not in spec.gaps and bool(spec.from_.tables)  # its one step is its source
    steps, last_rows, judges, groups = ((), rows, {}, None) if is_select else typed_steps.plan_steps(spec, rows)
    write = write_mode(spec.into.write) if "into" not in spec.gaps and "write" not in spec.into.gaps else None
    rule: Rule = ALL_ROWS
    key_steps: tuple[Step, ...] = ()
    if write and write.by_key and not isinstance(source, SelectSource):
        rule, key_steps = keyed.plan_keys(spec, source, steps, last_rows)
    if write and write.groups and not last_rows.more and not isinstance(source, SelectSource):
        rule, steps = totals.plan_totals(spec, groups, source, last_rows, steps)
    windows = (WINDOW_START, WINDOW_END) if groups and groups.window else ()
    total_names = (*windows, *(measure.name for measure in groups.measures)) if groups else ()
    expect_steps, expected = expectations.plan_expectations(spec.expect, last_rows, rule, total_names)
    match source:
        case SelectSource():
            source = queries.settled(source, expect_steps)
        case TableChanges():
            source = table_sources.with_old_rows(source, rule, (*steps, *expect_steps))
            rows.problems.extend(looked_up_again.problems(source, (*steps, *key_steps, *expect_steps), rule))
        case Topics() if isinstance(rule, Keyed):
            source = source.mapped(topic=partial(keyed.refused, keyed=rule, steps=steps))
    return _Typed(
        inputs=replace(inputs, source=source),
        steps=(*steps, *key_steps, *expect_steps),
        last_rows=last_rows,
        judges=judges,
        rule=rule,
        expected=expected,
    )


def _with_short_names(spec: WrittenPipeline, typed: _Typed, table: Table) -> _Typed:
    """Returns the pipeline with the step that makes bad rows of texts too long for names of folders."""
    steps, source = (*typed.steps, *short_names(spec.into, table.partition_by, typed.last_rows)), typed.inputs.source
    if isinstance(source, SelectSource) and not source.by_partition:  # else the table that is read has no such names either
        source = queries.settled(source, steps)
    return replace(typed, steps=steps, inputs=replace(typed.inputs, source=source))


def _put_together(
    spec: WrittenPipeline, typed: _Typed, table: Table, sets: tuple[SetExpectation, ...], environment: str
) -> Pipeline:
    source = typed.inputs.source
    assert source is not None, "what has no source is not put together"
    deciding_source = (source.columns, source.decoding) if isinstance(source, Topics) else source
    deciding_parts = (deciding_source, typed.steps, typed.expected, table)
    return Pipeline(
        name=spec.name,
        environment=environment,
        where=spec.place(),
        doc=spec.doc or "",
        owner=spec.owner,
        tags=tuple(sorted(spec.tags.items())),
        source=source,
        kafka_columns=typed.inputs.rows.kafka,
        steps=typed.steps,
        table=table,
        event_time=_event_time(source, typed, table),
        batch_rows=spec.batch.rows or running.BATCH_ROWS,
        run=running.run(spec),
        bad_rows=spec.bad_rows,
        fresh_within=spec.fresh_within,
        warn_after=spec.warn_after,
        expected=typed.expected,
        sets=sets,
        maintain=running.maintain(spec),
        spec=digest.short(deciding_parts),
    )


def _event_time(source: Source, typed: _Typed, table: Table) -> str | None:
    """Return the table's column with the time of a row."""
    if isinstance(table.rule, Totals):
        return WINDOW_START if table.rule.window else None
    time = _row_time(source, typed.steps, table)
    return time.column if time else None


def _row_time(source: Source, steps: tuple[Step, ...], table: Table) -> RowTime | None:
    return row_time(source.event_time, steps, table.columns) if source.event_time else None


def _landing_problems(spec: WrittenPipeline, judges: Mapping[int, Any], pipeline: Pipeline) -> Iterator[Problem]:
    table = pipeline.table
    time = _row_time(pipeline.source, pipeline.steps, table) if judges else None
    for index, judge in judges.items():
        landing = Landing(
            earlier=pipeline.steps[:index],
            later=pipeline.steps[index + 1 :],
            into=spec.into,
            mode=table.write,
            columns=table.columns,
            time=time,
            orders_by_event_time=EVENT_TIME in table.rule.order,
            from_table=bool(pipeline.read_tables),
            bad_rows=spec.bad_rows,
        )
        yield from judge(landing)


def _rows(draft: Draft, spec: WrittenPipeline, source: Source | None) -> Rows:
    """The rows before the first step. A source that is missing or has problems has unknown columns."""
    kafka: tuple[Column, ...]
    match source:
        case None:
            return Rows((), draft.problems, (KAFKA_TOPIC, *KAFKA_COLUMNS), document=spec.node, more=True)
        case Topics():
            kafka = (KAFKA_TOPIC, *KAFKA_COLUMNS) if spec.from_.topics else KAFKA_COLUMNS
            unclear = any(topic.name in draft.unclear for topic in source.topics)
            return Rows(source.columns, draft.problems, kafka, document=spec.node, more=unclear)
        case TableChanges():
            kafka = (*source.kafka, *table_sources.order_columns(spec.into, source))
            return Rows(source.columns, draft.problems, kafka, event_time=False, document=spec.node)
        case SelectSource():
            return Rows(source.columns, draft.problems, (), event_time=False, document=spec.node)


def _source(draft: Draft, spec: WrittenPipeline, planned: dict[str, Pipeline | None], open_names: list[str]) -> Source | None:
    """The topics, the table or the tables that a pipeline reads; None if something is missing, which is reported."""
    if not spec.from_.table and not spec.from_.tables:
        return _topics(draft, spec.from_)
    places: dict[str, Where] = {}
    for index, name in enumerate(spec.from_.tables or ()):
        if name in places:
            message = f"`{name}` is listed twice"
            hint = "name each table once; the select can read it several times"
            draft.problems.append(Problem(spec.from_.place("tables", index), "duplicate-name", message, hint))
        places.setdefault(name, spec.from_.place("tables", index))
    if spec.from_.table:
        places = {spec.from_.table: spec.from_.place("table")}
    sources = []
    for name, where in places.items():
        writer = table_sources.writer(draft, name, where, open_names)
        pipeline = _resolved(draft, writer, planned, open_names) if writer else None
        if pipeline is None or "into" in spec.gaps or "write" in spec.into.gaps:
            continue
        if spec.from_.table:
            draft.problems.extend(table_sources.problems(spec, pipeline))
        sources.append(table_sources.plan_source(spec.into, pipeline))
    if spec.from_.tables:
        return queries.plan_select(spec, sources, Rows((), draft.problems, document=spec.node))
    return sources[0] if sources else None


def _joined(
    draft: Draft, name: str, where: Where, planned: dict[str, Pipeline | None], open_names: list[str]
) -> TableChanges | None:
    """Returns the table in which a step looks rows up."""
    writer = table_sources.writer(draft, name, where, open_names)
    pipeline = _resolved(draft, writer, planned, open_names) if writer else None
    return table_sources.looked_up(pipeline) if pipeline else None


def _topics(draft: Draft, from_: WrittenFrom) -> Topics | None:
    """The topics of a pipeline. If one is missing, there are none, and a problem is reported once."""
    names = {from_.topic: from_.place("topic")} if from_.topic else {}
    for index, name in enumerate(from_.topics or ()):
        if name in names:
            hint = "name each topic once"
            draft.problems.append(Problem(from_.place("topics", index), "duplicate-name", f"`{name}` is listed twice", hint))
        names[name] = from_.place("topics", index)
    missing = {name: where for name, where in names.items() if ("topic", name) not in draft.written.names}
    if missing:
        topic_names = [name for kind, name in draft.written.names if kind == "topic"]
        for name, where in missing.items():
            unknown(draft, "topic", name, where, topic_names)
    planned_topics = tuple(draft.topics[name] for name in names if name in draft.topics)
    draft.problems.extend(topics.differences(tuple(topic for topic in planned_topics if topic.name not in draft.broken), names))
    return Topics(planned_topics) if planned_topics and len(planned_topics) == len(names) else None
