"""Tests of pipelines: the engine as it is, on the messages of a test, into a catalog that is thrown away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.engine import look, session
from framework.engine.batch import next_batch
from framework.engine.context import Context
from framework.engine.local import Local
from framework.errors import SluiceError
from framework.home import home
from framework.plan.model import Catalog, Engine, Example, Pipeline, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONF = {
    # Starts in half the time; some hundred rows are never worth more.
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={session._LOGGING}",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a test: the rows and bad rows of all batches, or why a batch was not published."""

    rows: tuple[Mapping[str, Any], ...] = ()
    bad: tuple[Mapping[str, Any], ...] = ()
    error: SluiceError | None = None


@dataclass(frozen=True)
class Trials:
    """Where tests run: a Spark session, and the plan with catalogs that may be written to."""

    spark: SparkSession
    plan: Plan
    slices: int = 1  # partitions of a batch's frame

    def run(self, pipeline: Pipeline, example: Example) -> Outcome:
        """Runs the test's batches into new tables. Bad rows are kept whatever `bad_rows` says, so that they can be seen."""
        kept = replace(pipeline, bad_rows="quarantine")
        tables = (pipeline.table.identifier, pipeline.table.bad_rows)
        for identifier in tables:
            self._context(example, 0).lake(pipeline).drop(identifier)
        try:
            for batch in range(1, max(message.batch for message in example.messages) + 1):
                context = self._context(example, batch)
                done = next_batch(context, kept)
                while done and done.waiting:
                    done = next_batch(context, kept)
        except SluiceError as error:
            return Outcome(error=error)
        return Outcome(*(_rows(pipeline, identifier) for identifier in tables))

    def _context(self, example: Example, batch: int) -> Context:
        return Context(self.plan, spark=lambda: self.spark, source=Local(example.messages, batch, self.slices))


@contextmanager
def trials(plan: Plan) -> Iterator[Trials]:
    """One JVM for all tests of a plan. Tables, and Sluice's state, are in a folder that is gone afterwards."""
    before = os.environ.get("SLUICE_HOME")
    with tempfile.TemporaryDirectory(prefix="sluice-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "jars").symlink_to(home() / "jars")
        os.environ["SLUICE_HOME"] = name
        moved = thrown_away(plan, folder)
        context = Context(moved)
        try:
            yield Trials(context.spark, moved)
        finally:
            context.stop()
            os.environ.pop("SLUICE_HOME")
            if before is not None:
                os.environ["SLUICE_HOME"] = before


def thrown_away(plan: Plan, folder: Path) -> Plan:
    """The plan with its tables in a folder, in catalogs of the same names. Of the engine's `conf` only what changes SQL is kept:
    what says where a catalog is would lead to the real tables."""
    catalogs = {
        each.name: Catalog(each.name, "sql", f"sqlite:///{folder}/{each.name}.db", str(folder / each.name))
        for each in plan.catalogs
    }
    pipelines = tuple(
        replace(each, table=replace(each.table, catalog=catalogs[each.table.catalog.name])) for each in plan.pipelines
    )
    kept = {
        key: value for key, value in plan.engine.conf if key.startswith("spark.sql.") and not key.startswith("spark.sql.catalog")
    }
    engine = Engine("local[2]", "1g", tuple(sorted({**_CONF, **kept}.items())))
    return replace(plan, engine=engine, catalogs=tuple(catalogs.values()), pipelines=pipelines)


def _rows(pipeline: Pipeline, identifier: str) -> tuple[Mapping[str, Any], ...]:
    table = look.table(pipeline.table.catalog, identifier)
    return () if table is None else tuple(table.scan().to_arrow().to_pylist())
