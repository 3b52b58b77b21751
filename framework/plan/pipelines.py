"""Resolve each pipeline: type its steps, and describe its table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

from framework import types
from framework.errors import Problem, Where
from framework.model import (
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    Catalog,
    Column,
    Keyed,
    Pipeline,
    SchemaChanges,
    SelectSource,
    Step,
    Table,
    TableSource,
    Topic,
)
from framework.model.accumulated import Accumulated, Groups
from framework.plan import (
    accumulated,
    examples,
    expectations,
    followers,
    keyed,
    memory,
    queries,
    running,
    set_expectations,
    table_sources,
    topics,
)
from framework.plan.draft import Draft, only, unknown
from framework.plan.landing import Landing
from framework.plan.modes import mode
from framework.plan.partitions import partition_fields, short_names, sort_columns
from framework.plan.rows import Resolved, Rows, stored_name_problems
from framework.spec import extensions, kinds
from framework.spec.node import Node
from framework.spec.options import WrittenStep


def resolve(draft: Draft, documents: Iterable[kinds.Pipeline]) -> tuple[Pipeline, ...]:
    planned: dict[str, Pipeline | None] = {}
    for spec in documents:
        _resolved(draft, spec, planned, [])
    done = sorted((pipeline for pipeline in planned.values() if pipeline), key=lambda pipeline: pipeline.name)
    return tuple(table_sources.with_readers(done))


def _resolved(draft: Draft, spec: kinds.Pipeline, planned: dict[str, Pipeline | None], open_: list[str]) -> Pipeline | None:
    """A planned pipeline. A pipeline that reads a table is planned after the pipeline that writes it."""
    if spec.name not in planned:
        planned[spec.name] = _pipeline(draft, spec, planned, [*open_, spec.name])
    return planned[spec.name]


def _pipeline(draft: Draft, spec: kinds.Pipeline, planned: dict[str, Pipeline | None], open_: list[str]) -> Pipeline | None:
    source = _source(draft, spec, planned, open_) if "from" not in spec.gaps else None
    read = _topics(draft, spec.from_) if "from" not in spec.gaps else ()
    read = tuple(keyed.without_deletes(topic, spec.into) for topic in read) if "into" not in spec.gaps else read
    rows = replace(_rows(draft, spec, source, read), tables=partial(_joined, draft, planned=planned, open_=open_))
    if any(extensions.find(extensions.STEPS)[step.name].hides for step in spec.steps):
        rows, read = replace(rows, quiet=True), tuple(map(topics.without_values, read))
    draft.problems.extend(running.problems(spec, source))
    before = len(draft.problems)
    steps, last, judges, groups = _steps(spec, rows) if "from" in spec.gaps or not spec.from_.tables else ((), rows, {}, None)
    write = mode(spec.into.write) if "into" not in spec.gaps and "write" not in spec.into.gaps else None
    keys: Keyed | None = None
    with_keys: tuple[Step, ...] = ()
    totals: Accumulated | None = None
    if write and write.by_key and not isinstance(source, SelectSource):
        keys, with_keys = keyed.resolve(spec, source, read, steps, last)
    if write and write.groups and not last.more and not isinstance(source, SelectSource):
        totals, steps = accumulated.resolve(spec, groups, read, source, last, steps)
    read = tuple(keyed.refused(topic, keys, steps) for topic in read) if keys else read
    judged, expected = expectations.resolve(spec.expect, last, keys)
    if isinstance(source, SelectSource):
        source = queries.settled(source, judged)
    elif source:
        source = table_sources.with_old_rows(source, keys, (*steps, *judged), totals is not None)
    steps = (*steps, *with_keys, *judged)
    if len(draft.problems) == before and not last.more:  # else the cause was reported
        draft.problems.extend(_without_type(spec, steps, rows))
    if "into" in spec.gaps:
        return None
    table = _table(draft, spec, last, keys, steps, totals)
    if table is None or last.more:
        return None  # the known part was checked
    steps = (*steps, *short_names(spec.into, table.partition_by, last))
    if isinstance(source, SelectSource) and not source.by_partition:  # else the table that is read has no such names either
        source = queries.settled(source, steps)
    names = {each.name for each in expected}
    lookup = partial(_joined, draft, planned=planned, open_=open_)
    sets = set_expectations.resolve(spec, table, names, lookup, draft.problems) if "expect" not in spec.gaps else ()
    inputs = source or (read[0].columns, read[0].decoding)
    digest = hashlib.sha256(repr((inputs, steps, expected, table)).encode()).hexdigest()[:16]
    pipeline = Pipeline(
        name=spec.name,
        where=spec.place(),
        doc=spec.doc or "",
        owner=spec.owner,
        tags=tuple(sorted(spec.tags.items())),
        topics=read,
        source=source,
        kafka_columns=rows.kafka,
        steps=steps,
        table=table,
        batch_rows=spec.batch.rows or running.BATCH_ROWS,
        run=running.run(spec),
        bad_rows=spec.bad_rows,
        fresh_within=spec.fresh_within,
        warn_after=spec.warn_after,
        expected=expected,
        sets=sets,
        maintain=running.maintain(spec),
        spec=digest,
    )
    for at, judge in judges.items():
        landing = Landing(
            later=pipeline.steps[at + 1 :],
            into=spec.into,
            mode=mode(table.write),
            columns=table.columns,
            event_time=pipeline.event_time,
            from_table=source is not None,
            bad_rows=spec.bad_rows,
        )
        draft.problems.extend(judge(landing))
    pipeline = replace(pipeline, also=followers.resolve(draft, spec, pipeline))
    sure = len(draft.problems) == before and "expect" not in spec.gaps
    return replace(pipeline, examples=examples.resolve(pipeline, spec, draft.written.of(kinds.Topic), draft.problems, sure))


def _rows(draft: Draft, spec: kinds.Pipeline, source: TableSource | SelectSource | None, read: tuple[Topic, ...]) -> Rows:
    """The rows before the first step. A source that is missing or has problems has unknown columns."""
    if isinstance(source, SelectSource):
        return Rows(source.columns, draft.problems, (), event_time=False, document=spec.node)
    if source:
        kafka = (*source.kafka, *table_sources.order_columns(spec.into, source))
        return Rows(source.columns, draft.problems, kafka, event_time=False, document=spec.node)
    if not read:
        return Rows((), draft.problems, (KAFKA_TOPIC, *KAFKA_COLUMNS), document=spec.node, more=True)
    kafka = (KAFKA_TOPIC, *KAFKA_COLUMNS) if spec.from_.topics else KAFKA_COLUMNS
    more = any(topic.name in draft.unclear for topic in read)
    return Rows(read[0].columns, draft.problems, kafka, document=spec.node, more=more)


def _source(
    draft: Draft, spec: kinds.Pipeline, planned: dict[str, Pipeline | None], open_: list[str]
) -> TableSource | SelectSource | None:
    """The table or the tables that a pipeline reads."""
    places: dict[str, Where] = {}
    for at, name in enumerate(spec.from_.tables or ()):
        if name in places:
            message = f"`{name}` is listed twice"
            hint = "name each table once; the select can read it several times"
            draft.problems.append(Problem(spec.from_.place("tables", at), "duplicate-name", message, hint))
        places.setdefault(name, spec.from_.place("tables", at))
    if spec.from_.table:
        places = {spec.from_.table: spec.from_.place("table")}
    tables = []
    for name, where in places.items():
        writer = table_sources.writer(draft, name, where, open_)
        pipeline = _resolved(draft, writer, planned, open_) if writer else None
        if pipeline is None or "into" in spec.gaps or "write" in spec.into.gaps:
            continue
        if spec.from_.table:
            draft.problems.extend(table_sources.problems(spec, pipeline))
        tables.append(table_sources.resolve(spec.into, pipeline))
    if spec.from_.tables:
        return queries.resolve(spec, tables, Rows((), draft.problems, document=spec.node))
    return tables[0] if tables else None


def _joined(draft: Draft, name: str, where: Where, planned: dict[str, Pipeline | None], open_: list[str]) -> TableSource | None:
    """A table that a step looks rows up in."""
    writer = table_sources.writer(draft, name, where, open_)
    pipeline = _resolved(draft, writer, planned, open_) if writer else None
    return table_sources.looked_up(pipeline) if pipeline else None


def _topics(draft: Draft, from_: kinds.From) -> tuple[Topic, ...]:
    """The topics of a pipeline. If one is missing, there are none, and a problem is reported once."""
    names = {from_.topic: from_.place("topic")} if from_.topic else {}
    for at, name in enumerate(from_.topics or ()):
        if name in names:
            hint = "name each topic once"
            draft.problems.append(Problem(from_.place("topics", at), "duplicate-name", f"`{name}` is listed twice", hint))
        names[name] = from_.place("topics", at)
    missing = {name: where for name, where in names.items() if ("topic", name) not in draft.written.names}
    if missing:
        written = [name for kind, name in draft.written.names if kind == "topic"]
        for name, where in missing.items():
            unknown(draft, "topic", name, where, written)
    planned_topics = tuple(draft.topics[name] for name in names if name in draft.topics)
    draft.problems.extend(topics.differences(tuple(topic for topic in planned_topics if topic.name not in draft.broken), names))
    return planned_topics if len(planned_topics) == len(names) else ()


def _steps(spec: kinds.Pipeline, rows: Rows) -> tuple[tuple[Step, ...], Rows, dict[int, Any], Groups | None]:
    """The steps, the rows after the last step, by their places the steps' judges of how rows land, and what a step adds up."""
    steps: list[Step] = []
    groups = None
    judges: dict[int, Any] = {}
    read = {step.node: step for step in spec.steps}
    node = spec.node.get("steps")
    if "steps" in spec.gaps and not (node and node.items):
        rows = replace(rows, columns=(), more=True)
    for item in node.items if node else ():
        written = read.get(item)
        if written is None:
            rows = _after(item, rows)
            continue
        resolved = _resolved_step(written, rows)
        attempts = tuple((name, sql) for sql, name in rows.attempts.items())
        rows = replace(rows, columns=resolved.columns, more=rows.more or resolved.more, attempts={})
        groups = resolved.groups or groups
        if resolved.landing:
            judges[len(steps)] = resolved.landing
        steps.append(
            Step(
                name=written.name,
                where=written.place(),
                says=resolved.says,
                attempts=attempts,
                assign=resolved.assign,
                keep=resolved.keep,
                faults=resolved.faults,
                columns=resolved.columns,
                each=resolved.each,
                memory=resolved.memory,
                masks=resolved.masks,
                join=resolved.join,
                bounds=resolved.bounds,
            )
        )
    return tuple(steps), rows, judges, groups


def _after(step: Node, rows: Rows) -> Rows:
    """The known columns after a step that could not be read."""
    added = _added_columns(step)
    if added is None:
        return replace(rows, columns=(), more=True)
    return replace(rows, columns=rows.with_columns(Column(name, types.VOID, "", where) for name, where in added))


def _added_columns(step: Node) -> list[tuple[str, Where]] | None:
    """The columns that a step adds, if the step changes no others; else None."""
    name, options = (step.entries[0][0].text, step.entries[0][1]) if step.entries else ("", step)
    extension = extensions.find(extensions.STEPS).get(name)
    if extension is None or extension.adds is None:
        return None
    if extension.adds == "*":
        return [(key.text, key.where) for key, _ in options.entries] if options.kind == "map" else None
    if not extension.adds:
        return []
    named = options.get(extension.adds)
    return [(named.text, named.where)] if named and named.kind == "scalar" else None


def _without_type(spec: kinds.Pipeline, steps: tuple[Step, ...], rows: Rows) -> Iterator[Problem]:
    if any(column.type == types.VOID for column in rows.columns):
        return
    for column in steps[-1].columns if steps else ():
        if column.type == types.VOID:
            hint = "give it a type: `cast(null as string)`"
            yield Problem(column.where or spec.place("steps"), "no-type", f"the column `{column.name}` has no type", hint)


def _resolved_step(written: WrittenStep, rows: Rows) -> Resolved:
    extension = extensions.find(extensions.STEPS)[written.name]
    if not extension.loaded:
        return Resolved((), more=True)
    if extension.built_in:
        return cast(Resolved, extension.resolve(written, rows))
    if rows.more or any(column.type == types.VOID for column in rows.columns):  # own steps need not handle unknown types
        return Resolved(rows.columns, more=True)
    try:
        resolved = extension.resolve(written, rows)
        if not isinstance(resolved, Resolved):
            raise TypeError("resolve must return a Resolved")
    except (Exception, SystemExit) as error:  # the step's code is the user's
        rows.problems.append(extensions.broken(error, extension.file))
        return Resolved(rows.columns, more=True)
    return resolved


def _masked(steps: tuple[Step, ...], columns: Iterable[Column]) -> tuple[tuple[str, ...], ...]:
    """The paths that steps mask, of columns that come to the table."""
    names = {column.name for column in columns}
    return tuple(dict.fromkeys(path for step in steps if step.masks for path in step.masks.paths if path[0] in names))


def _table(
    draft: Draft, spec: kinds.Pipeline, rows: Rows, keys: Keyed | None, steps: tuple[Step, ...], totals: Accumulated | None
) -> Table | None:
    into = spec.into
    catalog = (
        draft.catalogs.get(into.catalog)
        if into.catalog
        else only(draft, draft.homes or draft.catalogs, "catalog", into.place("table"))
    )
    if into.catalog and ("catalog", into.catalog) not in draft.written.names:
        unknown(draft, "catalog", into.catalog, into.place("catalog"), draft.catalogs)
    catalog = catalog or Catalog("", "")  # the missing catalog was reported
    columns = _columns(into, rows, keys, totals)
    draft.problems.extend(stored_name_problems(columns, into.place("table")))
    rows = replace(rows, columns=columns)
    partitions, order = partition_fields(into, rows), sort_columns(into, rows)
    if totals:
        draft.problems.extend(accumulated.moving(totals, partitions, into))
    if "table" in into.gaps:
        return None
    namespace, name = into.table.split(".")
    step = next((each for each in steps if each.memory), None)
    if into.adopt and (step or mode(into.write).rows_change):
        what = f"`{step.name}` remembers rows" if step else f"`write: {into.write}` decides by what Sluice knows of each row"
        message = f"`adopt` keeps the rows that are there, of which Sluice knows nothing, and {what}"
        hint = "use `write: append` without such a step, or load the older rows from a topic"
        draft.problems.append(Problem(into.place("adopt"), "cannot-adopt", message, hint))
    options = ("table", "partition_by", "sort_by", "format_version", "kafka_columns", "schema_changes", "write", "adopt")
    return Table(
        catalog=catalog, namespace=namespace, name=name, columns=columns, write=into.write,
        partition_by=partitions, sort_by=order,
        format_version=into.format_version, doc=spec.doc or "", masked=_masked(steps, columns), keyed=keys, accumulated=totals,
        step_states=memory.states(steps, columns, draft.problems), adopt=into.adopt,
        schema_changes=SchemaChanges(
            add=into.schema_changes.add,
            widen=into.schema_changes.widen,
            drop=into.schema_changes.drop,
            rename=into.schema_changes.rename,
            narrow=into.schema_changes.narrow,
        ),
        places={option: into.place(option) for option in options},
    )  # fmt: skip


def _columns(into: kinds.Into, rows: Rows, keys: Keyed | None, totals: Accumulated | None) -> tuple[Column, ...]:
    """Those of the table."""
    if totals:
        return accumulated.columns(totals)
    if keys:
        return keyed.columns(keys, mode(into.write), rows)
    return (*rows.columns, *rows.kafka) if into.kafka_columns else rows.columns
