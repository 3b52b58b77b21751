"""Each pipeline with its steps typed and its table described."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

from framework import types
from framework.errors import Problem, Where
from framework.model import (
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    Catalog,
    Column,
    Keyed,
    Maintain,
    Pipeline,
    Run,
    SchemaChanges,
    Step,
    Table,
    TableSource,
    Topic,
)
from framework.plan import examples, expectations, keyed, memory, topics
from framework.plan.draft import Draft, only, unknown
from framework.plan.modes import mode
from framework.plan.partitions import partition_fields, short_names, sort_columns
from framework.plan.rows import Resolved, Rows, stored_name_problems
from framework.spec import extensions, kinds
from framework.spec.node import Node
from framework.spec.options import WrittenStep

DEFAULT_BATCH_ROWS = 1_000_000
ASKED = 10  # seconds between two looks whether there is new data


def resolve(made: Draft, documents: Iterable[kinds.Pipeline]) -> tuple[Pipeline, ...]:
    found: dict[str, Pipeline | None] = {}
    for said in documents:
        _resolved(made, said, found, [])
    done = (pipeline for pipeline in found.values() if pipeline)
    return tuple(sorted(done, key=lambda pipeline: pipeline.name))


def _resolved(made: Draft, said: kinds.Pipeline, found: dict[str, Pipeline | None], open_: list[str]) -> Pipeline | None:
    """A pipeline whose rows come from a table is resolved behind the one that writes it."""
    if said.name not in found:
        found[said.name] = _pipeline(made, said, found, [*open_, said.name])
    return found[said.name]


def _pipeline(made: Draft, said: kinds.Pipeline, found: dict[str, Pipeline | None], open_: list[str]) -> Pipeline | None:
    source = _source(made, said.from_, found, open_) if "from" not in said.gaps and said.from_.table else None
    read = _topics(made, said.from_) if "from" not in said.gaps and not said.from_.table else ()
    read = tuple(keyed.without_deletes(topic, said.into) for topic in read) if "into" not in said.gaps else read
    rows = _rows(made, said, source, read)
    before = len(made.problems)
    steps, last = _steps(said, rows)
    by_key = "into" not in said.gaps and "write" not in said.into.gaps and mode(said.into.write).by_key
    keys, with_keys = keyed.resolve(said, read, steps, last) if by_key else (None, ())
    read = tuple(keyed.refused(topic, keys, steps) for topic in read) if keys else read
    judged, expected = expectations.resolve(said.expect, last, keys)
    steps = (*steps, *with_keys, *judged)
    if len(made.problems) == before and not last.more:  # else what makes a column without a type has been said
        made.problems.extend(_without_type(said, steps, rows))
    if "into" in said.gaps:
        return None
    table = _table(made, said, last, keys, steps)
    if table is None or last.more:
        return None  # what is known of it has been looked at
    steps = (*steps, *short_names(said.into, table.partition_by, last))
    batch_rows = said.batch.rows or DEFAULT_BATCH_ROWS
    came = source or (read[0].columns, read[0].decoding)
    digest = hashlib.sha256(repr((came, steps, expected, table)).encode()).hexdigest()[:16]
    pipeline = Pipeline(
        name=said.name,
        where=said.place(),
        doc=said.doc or "",
        owner=said.owner,
        tags=tuple(sorted(said.tags.items())),
        topics=read,
        source=source,
        kafka_columns=rows.kafka,
        steps=steps,
        table=table,
        batch_rows=batch_rows,
        run=_run(said),
        bad_rows=said.bad_rows,
        fresh_within=said.fresh_within,
        warn_after=said.warn_after,
        expected=expected,
        maintain=Maintain(
            compact_to=said.maintain.compact_to,
            compact_every=said.maintain.compact_every,
            keep_snapshots_for=said.maintain.keep_snapshots_for,
            keep_at_least=said.maintain.keep_at_least,
            orphans_after=said.maintain.orphans_after,
        ),
        spec=digest,
    )
    sure = len(made.problems) == before and "expect" not in said.gaps
    return replace(pipeline, examples=examples.resolve(pipeline, said, made.written.of(kinds.Topic), made.problems, sure))


def _rows(made: Draft, said: kinds.Pipeline, source: TableSource | None, read: tuple[Topic, ...]) -> Rows:
    """The rows before the first step. Of a source that is not there, or has problems, nothing is known."""
    if source:
        return Rows(source.columns, made.problems, source.kafka, event_time=False, document=said.node)
    if not read:
        return Rows((), made.problems, (KAFKA_TOPIC, *KAFKA_COLUMNS), document=said.node, more=True)
    kafka = (KAFKA_TOPIC, *KAFKA_COLUMNS) if said.from_.topics else KAFKA_COLUMNS
    more = any(topic.name in made.unclear for topic in read)
    return Rows(read[0].columns, made.problems, kafka, document=said.node, more=more)


def _source(made: Draft, said: kinds.From, found: dict[str, Pipeline | None], open_: list[str]) -> TableSource | None:
    name = said.table or ""
    written = made.written.of(kinds.Pipeline)
    writers = {each.into.table: each for each in written if "into" not in each.gaps and "table" not in each.into.gaps}
    writer = writers.get(name)
    where = said.place("table")
    if writer is None:
        # What cannot be read may be what writes it.
        if len(writers) == sum(document.kind == "pipeline" for document in made.written.documents):
            others = [table for table, each in writers.items() if each.name not in open_]
            unknown(made, "table", name, where, others)
        return None
    if writer.name in open_:
        circle = " → ".join([*open_[open_.index(writer.name) :], writer.name])
        hint = "one of them must read a topic"
        made.problems.append(Problem(where, "table-cycle", f"these pipelines read each other's tables: {circle}", hint))
        return None
    pipeline = _resolved(made, writer, found, open_)
    if pipeline is None:
        return None
    kafka = tuple(column for column in pipeline.table.columns if column in pipeline.kafka_columns)
    columns = tuple(column for column in pipeline.table.columns if column not in kafka)
    return TableSource(
        pipeline=pipeline.name, catalog=pipeline.table.catalog, identifier=pipeline.table.identifier, columns=columns, kafka=kafka
    )


def _topics(made: Draft, said: kinds.From) -> tuple[Topic, ...]:
    """The topics of a pipeline; none and a problem, if that is not yet reported, where one is missing."""
    names = {said.topic: said.place("topic")} if said.topic else {}
    for at, name in enumerate(said.topics or ()):
        if name in names:
            hint = "name each topic once"
            made.problems.append(Problem(said.place("topics", at), "duplicate-name", f"`{name}` is here twice", hint))
        names[name] = said.place("topics", at)
    missing = {name: where for name, where in names.items() if ("topic", name) not in made.written.names}
    if missing:
        written = [name for kind, name in made.written.names if kind == "topic"]
        for name, where in missing.items():
            unknown(made, "topic", name, where, written)
    found = tuple(made.topics[name] for name in names if name in made.topics)
    made.problems.extend(topics.differences(tuple(topic for topic in found if topic.name not in made.broken), names))
    return found if len(found) == len(names) else ()


def _steps(said: kinds.Pipeline, rows: Rows) -> tuple[tuple[Step, ...], Rows]:
    """The steps, and the rows behind the last of them."""
    steps = []
    read = {step.node: step for step in said.steps}
    node = said.node.get("steps")
    if "steps" in said.gaps and not (node and node.items):
        rows = replace(rows, columns=(), more=True)
    for item in node.items if node else ():
        written = read.get(item)
        if written is None:
            rows = _behind(item, rows)
            continue
        resolved = _resolved_step(written, rows)
        rows = replace(rows, columns=resolved.columns, more=rows.more or resolved.more)
        steps.append(
            Step(
                name=written.name,
                where=written.place(),
                says=resolved.says,
                assign=resolved.assign,
                keep=resolved.keep,
                faults=resolved.faults,
                columns=resolved.columns,
                each=resolved.each,
                memory=resolved.memory,
            )
        )
    return tuple(steps), rows


def _behind(step: Node, rows: Rows) -> Rows:
    """What is known of the rows behind a step that could not be read."""
    made = _made(step)
    if made is None:
        return replace(rows, columns=(), more=True)
    return replace(rows, columns=rows.with_columns(Column(name, types.VOID, "", where) for name, where in made))


def _made(step: Node) -> list[tuple[str, Where]] | None:
    """The columns that a step names as its own, where it leaves all others as they are."""
    name, said = (step.entries[0][0].text, step.entries[0][1]) if step.entries else ("", step)
    extension = extensions.find(extensions.STEPS).get(name)
    if extension is None or extension.adds is None:
        return None
    if extension.adds == "*":
        return [(key.text, key.where) for key, _ in said.entries] if said.kind == "map" else None
    if not extension.adds:
        return []
    named = said.get(extension.adds)
    return [(named.text, named.where)] if named and named.kind == "scalar" else None


def _without_type(said: kinds.Pipeline, steps: tuple[Step, ...], rows: Rows) -> Iterator[Problem]:
    if any(column.type == types.VOID for column in rows.columns):
        return
    for column in steps[-1].columns if steps else ():
        if column.type == types.VOID:
            hint = "give it a type: `cast(null as string)`"
            yield Problem(column.where or said.place("steps"), "no-type", f"the column `{column.name}` has no type", hint)


def _resolved_step(written: WrittenStep, rows: Rows) -> Resolved:
    extension = extensions.find(extensions.STEPS)[written.name]
    if not extension.loaded:
        return Resolved((), more=True)
    if extension.built_in:
        return cast(Resolved, extension.resolve(written, rows))
    if rows.more or any(column.type == types.VOID for column in rows.columns):  # of which it knows nothing
        return Resolved(rows.columns, more=True)
    try:
        resolved = extension.resolve(written, rows)
        if not isinstance(resolved, Resolved):
            raise TypeError("resolve must give a Resolved")
    except (Exception, SystemExit) as error:  # in somebody's own file
        rows.problems.append(extensions.broken(error, extension.file))
        return Resolved(rows.columns, more=True)
    return resolved


def _run(said: kinds.Pipeline) -> Run:
    if isinstance(said.run, kinds.Run):
        return Run(said.run.every, said.run.cron)
    return Run(ASKED) if said.run == "on_new_data" else Run()


def _table(made: Draft, said: kinds.Pipeline, rows: Rows, keys: Keyed | None, steps: tuple[Step, ...]) -> Table | None:
    into = said.into
    catalog = made.catalogs.get(into.catalog) if into.catalog else only(made, made.catalogs, "catalog", into.place("table"))
    if into.catalog and ("catalog", into.catalog) not in made.written.names:
        unknown(made, "catalog", into.catalog, into.place("catalog"), made.catalogs)
    catalog = catalog or Catalog("", "")  # that there is none has been said
    columns = (
        keyed.columns(keys, mode(into.write), rows)
        if keys
        else (*rows.columns, *rows.kafka)
        if into.kafka_columns
        else rows.columns
    )
    made.problems.extend(stored_name_problems(columns, into.place("table")))
    rows = replace(rows, columns=columns)
    partitions, order = partition_fields(into, rows), sort_columns(into, rows)
    if "table" in into.gaps:
        return None
    namespace, name = into.table.split(".")
    options = ("table", "partition_by", "sort_by", "format_version", "kafka_columns", "schema_changes", "write")
    return Table(
        catalog=catalog, namespace=namespace, name=name, columns=columns, write=into.write,
        partition_by=partitions, sort_by=order,
        format_version=into.format_version, doc=said.doc or "", keyed=keys, step_states=memory.states(steps, columns, made.problems),
        schema_changes=SchemaChanges(
            add=into.schema_changes.add,
            widen=into.schema_changes.widen,
            drop=into.schema_changes.drop,
            rename=into.schema_changes.rename,
            narrow=into.schema_changes.narrow,
        ),
        places={option: into.place(option) for option in options},
    )  # fmt: skip
