"""From written documents to a plan: plain functions in one tuple, each adding things to the draft or problems to the list."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from framework import types
from framework.errors import Problem, SpecError, Where
from framework.plan import topics
from framework.plan.model import (
    KAFKA_COLUMNS,
    Catalog,
    Cluster,
    Column,
    Engine,
    Pipeline,
    Plan,
    SecretStore,
    Security,
    Step,
    Table,
    Topic,
)
from framework.plan.partitions import partition_fields, sort_columns
from framework.plan.rows import Rows, add
from framework.spec import Written, kinds, load
from framework.spec.options import Kind
from framework.sql.faults import closest

DEFAULT_BATCH_ROWS = 1_000_000
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Draft:
    """A plan in the making."""

    written: Written
    problems: list[Problem]
    engine: Engine = field(default_factory=Engine)
    secrets: SecretStore = field(default_factory=SecretStore)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    catalogs: dict[str, Catalog] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    pipelines: tuple[Pipeline, ...] = ()


def make(folder: Path, environment: str = "local") -> Plan:
    """The plan of the specs in a folder, or all their problems at once."""
    plan, problems = draft(folder, environment)
    if problems:
        raise SpecError(problems)
    return plan


def draft(folder: Path, environment: str = "local") -> tuple[Plan, tuple[Problem, ...]]:
    """What can be planned, and all problems."""
    written = load(folder, environment)
    made = Draft(written, list(written.problems))
    for do in PASSES:
        made = do(made)
    plan = Plan(
        environment,
        made.engine,
        made.secrets,
        tuple(made.clusters.values()),
        tuple(made.catalogs.values()),
        tuple(made.topics.values()),
        made.pipelines,
    )
    return plan, SpecError(made.problems).problems


def settings(made: Draft) -> Draft:
    """The engine and the secret store; there is at most one of each."""
    engines = made.written.of(kinds.Engine)
    stores = made.written.of(kinds.Secrets)
    for documents in (engines, stores, made.written.of(kinds.Variables)):
        made.problems.extend(
            Problem(extra.place(), "one-only", f"there is a second `{_kind(extra)}`", f"the first is at {documents[0].place()}")
            for extra in documents[1:]
        )
    if engines:
        said = engines[0]
        made = replace(made, engine=Engine(said.master, said.memory, tuple(sorted(said.conf.items()))))
    if stores:
        made = replace(made, secrets=SecretStore(stores[0].store, stores[0].path))
    return made


def clusters(made: Draft) -> Draft:
    return replace(made, clusters={said.name: _cluster(said) for said in made.written.of(kinds.Cluster)})


def _cluster(said: kinds.Cluster) -> Cluster:
    asked = said.security
    security = Security(asked.protocol, asked.mechanism, asked.username, asked.password) if asked else Security()
    return Cluster(said.name, said.bootstrap, security)


def catalogs(made: Draft) -> Draft:
    found = {said.name: Catalog(said.name, said.type, said.uri, said.warehouse) for said in made.written.of(kinds.Catalog)}
    for said in made.written.of(kinds.Catalog):
        if not said.uri.startswith("sqlite:///"):
            hint = "write `sqlite:///` and the path of a file, such as `sqlite:///.sluice/lake.db`"
            made.problems.append(Problem(said.place("uri"), "bad-catalog-uri", f"`{said.uri}` is no SQLite database", hint))
        if "://" in said.warehouse and not said.warehouse.startswith("file://"):
            hint = "a warehouse is a folder in this version, such as `.sluice/warehouse`"
            made.problems.append(Problem(said.place("warehouse"), "not-in-this-version", "object stores come later", hint))
    return replace(made, catalogs=found)


def read_topics(made: Draft) -> Draft:
    """Each topic with the types of its columns and how its messages are decoded."""
    found = {}
    for said in made.written.of(kinds.Topic):
        cluster = _only(made, made.clusters, "cluster", said.place())
        topic = topics.resolve(said, cluster, made.problems) if cluster else None
        if topic:
            found[said.name] = topic
    return replace(made, topics=found)


def pipelines(made: Draft) -> Draft:
    """Each pipeline with its steps typed and its table described."""
    found = []
    for said in made.written.of(kinds.Pipeline):
        pipeline = _pipeline(made, said)
        if pipeline:
            found.append(pipeline)
    return replace(made, pipelines=tuple(sorted(found, key=lambda pipeline: pipeline.name)))


def one_writer(made: Draft) -> Draft:
    """Two pipelines never write one table, nor does one write another's bad rows."""
    taken: dict[tuple[str, str], Pipeline] = {}
    for pipeline in made.pipelines:
        for name in (pipeline.table.identifier, pipeline.table.bad_rows):
            first = taken.setdefault((pipeline.table.catalog.name, name), pipeline)
            if first is not pipeline:
                message = f"`{pipeline.name}` and `{first.name}` both write the table `{name}`"
                made.problems.append(
                    Problem(
                        pipeline.where, "two-writers", message, f"the other is at {first.where}: give one of them another table"
                    )
                )
    return made


PASSES: tuple[Callable[[Draft], Draft], ...] = (settings, clusters, catalogs, read_topics, pipelines, one_writer)


def _pipeline(made: Draft, said: kinds.Pipeline) -> Pipeline | None:
    topic = made.topics.get(said.from_.topic or "")
    if topic is None:
        written = [document.name for document in made.written.documents if document.kind == "topic"]
        if said.from_.topic not in written:
            made.problems.append(_unknown("topic", said.from_.topic or "", said.from_.place("topic"), written))
        return None
    steps = tuple(_steps(said, topic, made.problems))
    columns = steps[-1].columns if steps else topic.columns
    table = _table(made, said, columns)
    if table is None:
        return None
    every = said.run.every if isinstance(said.run, kinds.Every) else None
    rows = said.batch.rows or DEFAULT_BATCH_ROWS
    digest = hashlib.sha256(repr((topic.columns, topic.decoding, steps, table)).encode()).hexdigest()[:16]
    return Pipeline(
        said.name, said.place(), said.doc or "", said.owner, tuple(sorted(said.tags.items())), topic, steps, table, rows,
        every, said.bad_rows, said.fresh_within, said.warn_after, digest,
    )  # fmt: skip


def _steps(said: kinds.Pipeline, topic: Topic, problems: list[Problem]) -> Iterable[Step]:
    columns = topic.columns
    for written in said.steps:
        rows = Rows({column.name: column.type for column in columns}, problems)
        module = importlib.import_module(f"framework.steps.{written.name}")
        resolved = module.resolve(written, rows)
        columns = add(columns, resolved.types)
        yield Step(
            written.name, written.place(), resolved.says, resolved.assign, resolved.keep, resolved.faults, columns
        )  # fmt: skip


def _table(made: Draft, said: kinds.Pipeline, columns: tuple[Column, ...]) -> Table | None:
    into = said.into
    catalog = made.catalogs.get(into.catalog) if into.catalog else _only(made, made.catalogs, "catalog", into.place("table"))
    if into.catalog and catalog is None:
        made.problems.append(_unknown("catalog", into.catalog, into.place("catalog"), made.catalogs))
    if catalog is None:
        return None
    if into.kafka_columns:
        columns = (*columns, *KAFKA_COLUMNS)
    for column in columns:
        if column.type == types.VOID:
            hint = "give it a type: `cast(null as string)`"
            made.problems.append(Problem(said.place("steps"), "no-type", f"the column `{column.name}` has no type", hint))
    namespace, name = into.table.split(".")
    return Table(
        catalog, namespace, name, columns, into.write,
        partition_fields(into, columns, made.problems), sort_columns(into, columns, made.problems),
        into.format_version, said.doc or "",
    )  # fmt: skip


def _only(made: Draft, found: dict[str, Thing], noun: str, where: Where) -> Thing | None:
    """The one thing of its kind, which others need not name."""
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        made.problems.append(Problem(where, f"no-{noun}", f"there is no `{noun}` in the specs", f"add a document `{noun}: main`"))
    else:
        names = ", ".join(f"`{name}`" for name in found)
        hint = f"say which one: {names}" if noun == "catalog" else "keep one of them: topics cannot name theirs in this version"
        made.problems.append(Problem(where, f"several-{noun}s", f"there are {len(found)} {noun}s: {names}", hint))
    return None


def _unknown(noun: str, name: str, where: Where, known: Iterable[str]) -> Problem:
    return Problem(where, f"unknown-{noun}", f"there is no {noun} `{name}`", closest(name, known, _existing(noun, known)))


def _existing(noun: str, known: Iterable[str]) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(known))
    return f"there is {names}" if names else f"write a document `{noun}: …`"


def _kind(document: Kind) -> str:
    return type(document).__name__.lower()
