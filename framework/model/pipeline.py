"""What runs: steps, expectations, pipelines, and the plan of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any, Literal

from framework.errors import Problem, Where
from framework.model.column_sql import ColumnSql, columns_read
from framework.model.example import Example
from framework.model.schemas import Schema
from framework.model.table import Catalog, Maintain, State, Table, TableSource
from framework.model.topic import EVENT_TIME, Cluster, Column, Fault, SecretStore, Topic


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: the columns it sets, the rows it keeps, what can be wrong with a row, and the columns after it. With `each`,
    a list, every item of it becomes a row of its own, in which the item is the column `into`. All SQL of Sluice's own steps is a
    `ColumnSql`; that of other steps may be a plain text."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: tuple[str, ...]
    assign: tuple[tuple[str, str], ...] = ()
    keep: str | None = None
    faults: tuple[Fault, ...] = ()
    columns: tuple[Column, ...]
    each: Each | None = None
    of_tombstones: bool = False  # whether its faults are also looked for in messages without a value that delete a row
    memory: Memory | None = None


@dataclass(frozen=True)
class Memory:
    """Of a step that remembers rows: which of a batch's rows land, given what it remembers. `admit` takes two frames, the rows
    behind all steps and what is remembered, if there is anything, and gives the rows that land; of these the state's columns are
    remembered with the batch."""

    state: State
    admit: Callable[[Any, Any], Any] = field(compare=False, repr=False)


@dataclass(frozen=True)
class Each:
    """SQL of a list, and the column that takes its items."""

    list: str
    into: str


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What must hold for rows: `holds` is SQL that is true where it does."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: str
    holds: ColumnSql
    otherwise: Literal["quarantine", "warn", "stop"]

    @property
    def message(self) -> str:
        return self.says if self.name == self.says else f"{self.name}: {self.says}"


@dataclass(frozen=True)
class Engine:
    master: str = "local[*]"
    memory: str = "4g"
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Run:
    """When Dagster runs it: one of these, or neither if by hand."""

    every: int | None = None  # seconds
    cron: str | None = None


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    name: str
    where: Where
    doc: str
    owner: str | None
    tags: tuple[tuple[str, str], ...]
    topics: tuple[Topic, ...]  # none where the rows come from a table
    source: TableSource | None
    kafka_columns: tuple[Column, ...]  # what Kafka says of each message
    steps: tuple[Step, ...]
    table: Table
    batch_rows: int
    run: Run
    bad_rows: Literal["quarantine", "stop", "drop"]
    fresh_within: int | None
    warn_after: int | None
    expected: tuple[Expectation, ...]
    maintain: Maintain
    spec: str  # a digest of all above that says what rows come out
    examples: tuple[Example, ...] = field(default=(), compare=False, repr=False)

    @property
    def topic(self) -> Topic:
        """The first topic: several in one pipeline have one shape."""
        return self.topics[0]

    @property
    def faults(self) -> tuple[Fault, ...]:
        decoding = () if self.source else self.topic.decoding.faults
        return decoding + tuple(fault for step in self.steps for fault in step.faults)

    @property
    def explodes(self) -> bool:
        """Whether there can be any number of rows of one message."""
        return any(step.each for step in self.steps)

    @property
    def reads_event_time(self) -> bool:
        """Whether anything that is done with its rows needs the column of their event time."""
        texts: list[str | None] = [sql for step in self.steps for _, sql in step.assign]
        texts += [each for step in self.steps for each in (step.keep, *(fault.when for fault in step.faults))]
        texts += [each.holds for each in self.expectations]
        named = self.table.keyed.order if self.table.keyed else ()
        return EVENT_TIME in named or any(columns_read(sql, (EVENT_TIME,)) for sql in texts if sql)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Those of a whole batch; of single rows the last step is."""
        return tuple(each for each in self.expected if each.otherwise != "quarantine")

    @property
    def sources(self) -> tuple[str, ...]:
        """What its rows come from, as Kafka or the catalog calls it."""
        return (self.source.identifier,) if self.source else tuple(topic.kafka_name for topic in self.topics)


def in_order(pipelines: Iterable[Pipeline]) -> list[Pipeline]:
    """As they run: one whose rows come from a table behind the one that writes it."""
    named = {pipeline.name: pipeline for pipeline in pipelines}
    before = {name: {pipeline.source.pipeline} if pipeline.source else set() for name, pipeline in named.items()}
    return [named[name] for name in TopologicalSorter(before).static_order() if name in named]


@dataclass(frozen=True, kw_only=True)
class PlannedDocument:
    """A document of a kind that has no place of its own in a plan. `value` is what its kind made of it, `says` its lines in a plan."""

    kind: str
    name: str
    where: Where
    value: Any
    says: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    environment: str
    engine: Engine
    secrets: SecretStore
    clusters: tuple[Cluster, ...]
    catalogs: tuple[Catalog, ...]
    topics: tuple[Topic, ...]
    pipelines: tuple[Pipeline, ...]
    documents: tuple[PlannedDocument, ...] = ()
    # The same specs planned again, with what the registry says by then and, for each topic, schemas of other subjects.
    again: Callable[[Mapping[str, Mapping[int, Schema | None]]], Replanned] | None = field(
        default=None, compare=False, repr=False
    )

    def pipeline(self, name: str) -> Pipeline | None:
        return next((pipeline for pipeline in self.pipelines if pipeline.name == name), None)

    def documents_of(self, kind: str) -> tuple[PlannedDocument, ...]:
        return tuple(document for document in self.documents if document.kind == kind)


@dataclass(frozen=True)
class Replanned:
    """A plan that was made again, with the problems of its specs; `runnable` are the pipelines that none of them stands behind."""

    plan: Plan
    problems: tuple[Problem, ...]
    runnable: tuple[Pipeline, ...]
