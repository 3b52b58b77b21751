"""Tests of pipelines: the unchanged engine loads the messages of a test into a catalog that is deleted afterwards."""

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
from framework.plan import Catalog, Message, Pipeline, Plan, SpecTest, SpecTestRow, Step, Table, TableChanges, Topic
from framework.plan.compare import TimeBeyondRange
from framework.sql.quote import identifier
from framework.systems.catalogs import in_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_TEST_ROWS = 100  # a test has this many rows, or fewer


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test: the rows and bad rows of all batches, or the error that kept a batch from being published."""

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

    def outcomes(self, work: Iterable[tuple[Pipeline, SpecTest]]) -> Iterator[Outcome]:
        """The outcome of each test, in the order of the tests. Two run at once: one thread does most of a test's work."""
        with ThreadPoolExecutor(2) as pool:
            yield from pool.map(lambda test: self.run(*test), work)

    def run(self, pipeline: Pipeline, example: SpecTest) -> Outcome:
        """Runs the test's batches into tables of their own. Bad rows are kept whatever `bad_rows` says, so that they can be seen."""
        prefix = f"test{next(self.numbers)}_"
        table = replace(pipeline.table, namespace=prefix + pipeline.table.namespace)
        source = pipeline.source.mapped(topic=_with_known_schemas, table=partial(_of_test, prefix))
        trial_pipeline = replace(
            pipeline, table=table, source=source, bad_rows="quarantine",
            steps=tuple(_renamed(step, prefix) for step in pipeline.steps),
            sets=tuple(replace(expected, of=expected.of and _of_test(prefix, expected.of)) for expected in pipeline.sets),
        )  # fmt: skip
        session.activate(self.spark)
        try:
            select_tables = source.tables if source.select else ()
            for read_table in (*select_tables, *trial_pipeline.looked_up):
                self.put(read_table, example.tables.get(read_table.identifier.removeprefix(prefix), ()))
            for batch in example.batches:
                if isinstance(source, TableChanges):
                    self.put(source, [row.values for row in example.given if isinstance(row, SpecTestRow) and row.batch == batch])
                messages = tuple(message for message in example.given if isinstance(message, Message))
                context = Context(self.plan, spark=lambda: self.spark, source=GivenMessages(messages, batch, self.slices))
                result = next_batch(context, trial_pipeline)
                while result and result.waiting:
                    result = next_batch(context, trial_pipeline)
        except Exception as error:
            return Outcome(error=defects.as_sluice_error(pipeline.name, error))
        return Outcome(_rows(table, table.identifier), _rows(table, table.bad_rows))

    def put(self, source: TableChanges, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows to the table that a pipeline reads."""
        import pyarrow
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        columns = (*source.columns, *source.kafka)
        schema = cast(
            StructType, StructType.fromDDL(", ".join(f"{identifier(column.name)} {column.type.sql}" for column in columns))
        )
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
    """Starts one JVM for all tests of a plan. Tables and Sluice's state are in a folder that is deleted afterwards."""
    with scratch_session.folder("test") as folder:
        moved_plan = scratch_plan(plan, folder)
        context = Context(moved_plan, warm=plan)
        context.expect(_TEST_ROWS)
        try:
            yield Trials(context.spark, moved_plan)
        finally:
            context.stop()


def _renamed(step: Step, prefix: str) -> Step:
    """The step, changed to look rows up in a table of the test's own."""
    return _with_source(step, partial(_of_test, prefix))


def _of_test(prefix: str, source: TableChanges) -> TableChanges:
    return replace(source, identifier=prefix + source.identifier, versions=False)


def _with_source(step: Step, move_source: Callable[[TableChanges], TableChanges]) -> Step:
    return replace(step, effect=replace(step.join, source=move_source(step.join.source))) if step.join else step


def _with_known_schemas(topic: Topic) -> Topic:
    """The topic without lookups of unknown schemas: the registry's answer would plan the real tables again."""
    return replace(topic, decoding=replace(topic.decoding, unknown=None))


def scratch_plan(plan: Plan, folder: Path) -> Plan:
    """The plan with its tables in a folder, in catalogs of the same names. Catalog settings in the engine's `conf` are dropped: they
    would lead to the real tables."""
    catalogs = {catalog.name: in_folder(catalog.name, folder) for catalog in plan.catalogs}
    pipelines = tuple(
        replace(
            pipeline, table=replace(pipeline.table, catalog=catalogs[pipeline.table.catalog.name]),
            source=pipeline.source.mapped(table=partial(_in_catalog, catalogs)),
            steps=tuple(_with_source(step, partial(_in_catalog, catalogs)) for step in pipeline.steps),
            sets=tuple(replace(expected, of=expected.of and _in_catalog(catalogs, expected.of)) for expected in pipeline.sets),
        )
        for pipeline in plan.pipelines
    )  # fmt: skip
    return replace(
        plan,
        engine=scratch_session.engine(plan.engine, {}, catalogs=False),
        catalogs=tuple(catalogs.values()),
        pipelines=pipelines,
    )


def _in_catalog(catalogs: Mapping[str, Catalog], source: TableChanges) -> TableChanges:
    return replace(source, catalog=catalogs[source.catalog.name])


def _rows(table: Table, identifier: str) -> tuple[Mapping[str, Any], ...]:
    iceberg_table = table_state.table(table.catalog, identifier)
    if iceberg_table is None:
        return ()
    arrow = iceberg_table.scan().to_arrow()
    columns = [[_value(scalar) for scalar in column] for column in arrow.columns]
    return tuple(dict(zip(arrow.column_names, row, strict=True)) for row in zip(*columns, strict=True))


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):  # before year 1 or after year 9999
        return TimeBeyondRange(f"a time beyond the years 1 to 9999 in {scalar.type}")
