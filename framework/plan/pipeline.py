"""Pipelines as they run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Literal

from framework.base.errors import Where
from framework.plan.bounds import Bounds
from framework.plan.column_sql import columns_read
from framework.plan.expectation import Expectation, SetExpectation
from framework.plan.follower import Follower
from framework.plan.maintenance import DependentTable, Maintain
from framework.plan.secret import MaskKey
from framework.plan.source import Lookup, SelectSource, Source, TableChanges
from framework.plan.step import Step
from framework.plan.table import Table
from framework.plan.tests import SpecTest
from framework.plan.topic import EVENT_TIME, Column, Decoding, Fault, Topic


@dataclass(frozen=True, kw_only=True)
class Run:
    """When Dagster runs the pipeline: one of the two, or neither if a person starts the runs."""

    every: int | None = None  # seconds
    cron: str | None = None
    after: int | None = None  # bytes: a run begins earlier once so much waits
    on_new_data: bool = False
    timezone: str = "UTC"  # of `cron`


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    name: str
    environment: str
    where: Where
    doc: str
    owner: str | None
    tags: tuple[tuple[str, str], ...]
    source: Source
    kafka_columns: tuple[Column, ...]  # partition, offset and timestamp of each message
    steps: tuple[Step, ...]
    table: Table
    event_time: str | None  # the table's column with the time of a row; None where the table does not keep it
    batch_rows: int
    run: Run
    bad_rows: Literal["quarantine", "stop", "drop"]
    fresh_within: int | None
    warn_after: int | None
    expected: tuple[Expectation, ...]
    sets: tuple[SetExpectation, ...] = ()
    maintain: Maintain
    spec: str  # a digest of all fields above that decide which rows are written
    examples: tuple[SpecTest, ...] = field(default=(), compare=False, repr=False)
    readers: tuple[DependentTable, ...] = field(default=(), compare=False, repr=False)  # of its table
    alerts: tuple[str, ...] = field(default=(), compare=False, repr=False)  # the names of those on its table
    is_pinned: bool = field(default=False, compare=False, repr=False)  # whether others look rows up in its table
    also: tuple[Follower, ...] = ()  # each shows the rows of its table elsewhere

    @property
    def journal_name(self) -> str:
        """The pipeline's name in the records of this machine, which are kept apart for each environment."""
        return journal_name(self.environment, self.name)

    @property
    def published(self) -> tuple[Follower, ...]:
        """The followers that list the table in another catalog."""
        return tuple(follower for follower in self.also if follower.latest_only)

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics whose messages become rows; none where the rows come from tables."""
        return self.source.topics

    @property
    def topic(self) -> Topic:
        """The first topic. Several topics of one pipeline have the same columns."""
        return self.topics[0]

    @property
    def read_tables(self) -> tuple[TableChanges, ...]:
        """The tables whose rows are read; none where messages are."""
        return self.source.tables

    @property
    def select(self) -> SelectSource | None:
        """The select over tables whose rows are read, if that is the source."""
        return self.source.select

    @property
    def read_columns(self) -> tuple[Column, ...]:
        """The columns before the first step, without Kafka's."""
        return self.source.columns

    @property
    def decoding(self) -> Decoding:
        """The conversion of messages to columns, which is empty where tables are read."""
        return self.source.decoding

    @property
    def noun(self) -> str:
        """The word for what is read, `message` or `row`."""
        return self.source.noun

    @property
    def source_name(self) -> str:
        """The names of the topics or tables that are read, as one text."""
        return ", ".join(self.sources)

    @property
    def source_system(self) -> str:
        """The cluster or the catalog that has what is read, as the owner of a table has it."""
        return self.source.system

    @property
    def computes_all(self) -> bool:
        """Whether each batch computes the table again from all rows of other tables."""
        return self.source.is_whole

    @property
    def has_old_rows(self) -> bool:
        """Whether rows of another table that were changed or deleted are read, too."""
        return self.source.has_old_rows

    @property
    def is_steady(self) -> bool:
        """Whether messages always come in all topics that the pipeline reads."""
        return bool(self.topics) and all(topic.steady for topic in self.topics)

    @property
    def joins(self) -> tuple[Lookup, ...]:
        """The tables in which the pipeline's steps look rows up."""
        return tuple(step.join for step in self.steps if step.join)

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds that the pipeline's steps measure on its own table."""
        return tuple(bound for step in self.steps for bound in step.bounds)

    @property
    def made_of(self) -> frozenset[str]:
        """The names of the pipelines whose tables this pipeline reads."""
        return frozenset(table.pipeline for table in (*self.read_tables, *self.looked_up))

    @property
    def looked_up(self) -> tuple[TableChanges, ...]:
        """The tables in which steps and expectations look for rows."""
        return (*(join.source for join in self.joins), *(expectation.of for expectation in self.sets if expectation.of))

    @property
    def rows_wait(self) -> bool:
        """Whether rows wait for rows of joined tables."""
        return any(join.within is not None for join in self.joins)

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self.decoding.faults + tuple(fault for step in self.steps for fault in step.faults)

    @property
    def mask_keys(self) -> tuple[MaskKey, ...]:
        """The keys of the first step that masks, by which bad rows are encrypted. Without one, nothing is hidden."""
        return next((step.masks.keys for step in self.steps if step.masks), ())

    @property
    def explodes(self) -> bool:
        """Whether one message can become any number of rows."""
        return any(step.each for step in self.steps)

    @property
    def compares(self) -> bool:
        """Whether a step compares rows with those of earlier batches."""
        return any(step.memory for step in self.steps)

    @property
    def reads_event_time(self) -> bool:
        """Whether a step, an expectation or the write needs the column of the event time."""
        texts: list[str | None] = [sql for step in self.steps for _, sql in step.assign]
        texts += [sql for step in self.steps for sql in (step.keep, *(fault.when for fault in step.faults))]
        texts += [expectation.holds for expectation in self.expectations]
        return EVENT_TIME in self.table.rule.order or any(columns_read(sql, (EVENT_TIME,)) for sql in texts if sql)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """The expectations that a whole batch is checked against. The last step checks single rows."""
        return tuple(expectation for expectation in self.expected if expectation.otherwise != "quarantine")

    @property
    def of_batches(self) -> tuple[Expectation | SetExpectation, ...]:
        """The expectations for which no row becomes a bad row."""
        return (*self.expectations, *self.sets)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names in Kafka or in the catalog of the topics or the tables that the rows come from."""
        return self.source.identifiers


def journal_name(environment: str, name: str) -> str:
    return name if environment == "local" else f"{environment}/{name}"


def in_order(pipelines: Iterable[Pipeline]) -> list[Pipeline]:
    """The pipelines in the order of their runs: a pipeline that reads a table follows the pipeline that writes it."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    dependencies = {name: pipeline.made_of for name, pipeline in by_name.items()}
    return [by_name[name] for name in TopologicalSorter(dependencies).static_order() if name in by_name]
