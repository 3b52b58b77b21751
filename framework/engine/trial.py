"""Tests of pipelines: the engine as it is, on the messages of a test, into a catalog that is thrown away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a test: the rows and bad rows of all batches, or why a batch was not published."""

    rows: tuple[Mapping[str, Any], ...] = ()
    bad: tuple[Mapping[str, Any], ...] = ()
    error: SluiceError | None = None


@contextmanager
def thrown_away(plan: Plan) -> Iterator[Plan]:
    """The plan with its tables, and Sluice's state, in a folder that is gone afterwards. Of the engine's `conf` only what
    changes SQL is kept."""
    before = os.environ.get("SLUICE_HOME")
    with tempfile.TemporaryDirectory(prefix="sluice-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "jars").symlink_to(home() / "jars")
        os.environ["SLUICE_HOME"] = name
        try:
            yield _moved(plan, folder)
        finally:
            os.environ.pop("SLUICE_HOME")
            if before is not None:
                os.environ["SLUICE_HOME"] = before


def _moved(plan: Plan, folder: Path) -> Plan:
    """Catalogs keep their names."""
    catalogs = {
        each.name: Catalog(each.name, "sql", f"sqlite:///{folder}/{each.name}.db", str(folder / each.name))
        for each in plan.catalogs
    }
    pipelines = tuple(
        replace(each, table=replace(each.table, catalog=catalogs[each.table.catalog.name])) for each in plan.pipelines
    )
    kept = {key: value for key, value in plan.engine.conf if key.startswith("spark.sql.")}
    engine = Engine("local[2]", "1g", tuple(sorted({**_CONF, **kept}.items())))
    return replace(plan, engine=engine, catalogs=tuple(catalogs.values()), pipelines=pipelines)


def run(spark: SparkSession, plan: Plan, pipeline: Pipeline, example: Example, slices: int = 1) -> Outcome:
    """Runs the test's batches into new tables. Bad rows are kept whatever `bad_rows` says, so that they can be seen."""
    kept = replace(pipeline, bad_rows="quarantine")
    batches = max(message.batch for message in example.messages)
    first = Context(plan, spark=lambda: spark)
    for identifier in (pipeline.table.identifier, pipeline.table.bad_rows):
        first.lake(pipeline).drop(identifier)
    try:
        for batch in range(1, batches + 1):
            context = Context(plan, spark=lambda: spark, source=Local(example.messages, batch, slices))
            waiting = 1
            while waiting:
                done = next_batch(context, kept)
                waiting = done.waiting if done else 0
    except SluiceError as error:
        return Outcome(error=error)
    return Outcome(_rows(spark, pipeline, pipeline.table.identifier), _rows(spark, pipeline, pipeline.table.bad_rows))


def _rows(spark: SparkSession, pipeline: Pipeline, identifier: str) -> tuple[Mapping[str, Any], ...]:
    namespace, name = identifier.split(".")
    table = f"`{pipeline.table.catalog.name}`.`{namespace}`.`{name}`"
    if not spark.catalog.tableExists(table):
        return ()
    found: list[dict[str, Any]] = spark.table(table).toArrow().to_pylist()
    return tuple(found)
