"""Tests of pipelines: the engine as it is, on the messages of a test, into a catalog that is thrown away."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.publish.batch import next_batch
from framework.core.spark import defects, scratch_session, session
from framework.operations.trials.given_messages import GivenMessages
from framework.plan import Catalog, Example, GivenRow, Message, Pipeline, Plan, SelectSource, Step, Table, TableSource, Topic
from framework.plan.compare import Beyond
from framework.sql.quote import identifier
from framework.systems.catalogs import in_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_A_TEST_HAS = 100  # rows, or fewer


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test: the rows and bad rows of all batches, or why a batch was not published."""

    rows: tuple[Mapping[str, Any], ...] = ()
    bad: tuple[Mapping[str, Any], ...] = ()
    error: SluiceError | None = None


@dataclass(frozen=True)
class Trials:
    """A place for tests to run, several at once if needed: a Spark session, and the plan with scratch catalogs."""

    spark: SparkSession
    plan: Plan
    slices: int = 1  # partitions of a batch's frame
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def outcomes(self, work: Iterable[tuple[Pipeline, Example]]) -> Iterator[Outcome]:
        """The outcome of each test, in the order of the tests. Two run at once: one thread does most of a test's work."""
        with ThreadPoolExecutor(2) as pool:
            yield from pool.map(lambda each: self.run(*each), work)

    def run(self, pipeline: Pipeline, example: Example) -> Outcome:
        """Runs the test's batches into tables of its own. Bad rows are kept whatever `bad_rows` says, so that they can be seen."""
        own = f"test{next(self.numbers)}_"
        table = replace(pipeline.table, namespace=own + pipeline.table.namespace)
        source = pipeline.source and pipeline.source.with_tables(partial(_of_test, own))
        tried = replace(
            pipeline, table=table, source=source, bad_rows="quarantine", topics=tuple(map(_with_known_schemas, pipeline.topics)),
            steps=tuple(_renamed(step, own) for step in pipeline.steps),
            sets=tuple(replace(each, of=each.of and _of_test(own, each.of)) for each in pipeline.sets),
        )  # fmt: skip
        session.activate(self.spark)
        try:
            selected = source.tables if isinstance(source, SelectSource) else ()
            for each_table in (*selected, *tried.looked_up):
                self.put(each_table, example.tables.get(each_table.identifier.removeprefix(own), ()))
            for batch in example.batches:
                if isinstance(source, TableSource):
                    self.put(
                        source, [each.values for each in example.given if isinstance(each, GivenRow) and each.batch == batch]
                    )
                messages = tuple(each for each in example.given if isinstance(each, Message))
                context = Context(self.plan, spark=lambda: self.spark, source=GivenMessages(messages, batch, self.slices))
                done = next_batch(context, tried)
                while done and done.waiting:
                    done = next_batch(context, tried)
        except Exception as error:
            return Outcome(error=defects.as_sluice_error(pipeline.name, error))
        return Outcome(_rows(table, table.identifier), _rows(table, table.bad_rows))

    def put(self, source: TableSource, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows to the table that a pipeline reads."""
        import pyarrow
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        columns = (*source.columns, *source.kafka)
        schema = cast(StructType, StructType.fromDDL(", ".join(f"{identifier(each.name)} {each.type.sql}" for each in columns)))
        frame = self.spark.createDataFrame(pyarrow.Table.from_pylist(list(rows), to_arrow_schema(schema)))
        namespace, _, _ = source.identifier.rpartition(".")
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {identifier(source.catalog.name, namespace)}")
        table = identifier(source.catalog.name, *source.identifier.split("."))
        writer = frame.writeTo(table).tableProperty("format-version", "3")
        if metadata.read(source.catalog, source.identifier):
            writer.append()
        else:
            writer.using("iceberg").create()


@contextmanager
def trials(plan: Plan) -> Iterator[Trials]:
    """One JVM for all tests of a plan. Tables, and Sluice's state, are in a folder that is gone afterwards."""
    with scratch_session.folder("test") as folder:
        moved = scratch_plan(plan, folder)
        context = Context(moved, warm=plan)
        context.expect(_A_TEST_HAS)
        try:
            yield Trials(context.spark, moved)
        finally:
            context.stop()


def _renamed(step: Step, own: str) -> Step:
    """The step, which looks rows up in a table of the test's own."""
    return _elsewhere(step, partial(_of_test, own))


def _of_test(own: str, source: TableSource) -> TableSource:
    return replace(source, identifier=own + source.identifier, versions=False)


def _elsewhere(step: Step, moved: Callable[[TableSource], TableSource]) -> Step:
    return replace(step, join=replace(step.join, source=moved(step.join.source))) if step.join else step


def _with_known_schemas(topic: Topic) -> Topic:
    """The topic without lookups of unknown schemas: the registry's answer would plan the real tables again."""
    return replace(topic, decoding=replace(topic.decoding, unknown=None))


def scratch_plan(plan: Plan, folder: Path) -> Plan:
    """The plan with its tables in a folder, in catalogs of the same names. Catalog settings in the engine's `conf` are dropped: they
    would lead to the real tables."""
    catalogs = {each.name: in_folder(each.name, folder) for each in plan.catalogs}
    pipelines = tuple(
        replace(
            each, table=replace(each.table, catalog=catalogs[each.table.catalog.name]),
            source=each.source and each.source.with_tables(partial(_in, catalogs)),
            steps=tuple(_elsewhere(step, partial(_in, catalogs)) for step in each.steps),
            sets=tuple(replace(expected, of=expected.of and _in(catalogs, expected.of)) for expected in each.sets),
        )
        for each in plan.pipelines
    )  # fmt: skip
    return replace(
        plan,
        engine=scratch_session.engine(plan.engine, {}, catalogs=False),
        catalogs=tuple(catalogs.values()),
        pipelines=pipelines,
    )


def _in(catalogs: Mapping[str, Catalog], source: TableSource) -> TableSource:
    return replace(source, catalog=catalogs[source.catalog.name])


def _rows(table: Table, identifier: str) -> tuple[Mapping[str, Any], ...]:
    written = table_state.table(table.catalog, identifier)
    if written is None:
        return ()
    arrow = written.scan().to_arrow()
    columns = [[_value(each) for each in column] for column in arrow.columns]
    return tuple(dict(zip(arrow.column_names, row, strict=True)) for row in zip(*columns, strict=True))


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):  # before year 1 or after year 9999
        return Beyond(f"a time beyond the years 1 to 9999 in {scalar.type}")
