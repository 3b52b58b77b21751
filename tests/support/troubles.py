"""Events that strike a batch at a kill point."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import strategies as st

from framework.core.context.context import Context
from framework.core.iceberg import metadata
from framework.core.maintain import compact, due, maintain
from framework.core.publish.batch import next_batch
from framework.plan import Pipeline
from tests.support.keyed_rows import rows
from tests.support.kill_points import POINTS, Died


@dataclass(frozen=True)
class Trouble:
    """An event while a batch is at a kill point."""

    kind: str  # dies, joins, maintains, foreign, another
    where: str


trouble = st.builds(
    Trouble, st.sampled_from(["dies", "dies", "joins", "maintains", "foreign", "another"]), st.sampled_from(POINTS)
)


def maintained(context: Context, pipeline: Pipeline) -> None:
    """Compacts all that can be compacted and expires all snapshots that nothing needs, as if nine days had passed."""
    context.clock = lambda: datetime.now(timezone.utc) + timedelta(days=9)
    with pytest.MonkeyPatch.context() as patch:
        for module in (due, compact):
            patch.setattr(module, "FEWEST_FILES", 1)  # a batch of the model is one file
        done = [words for result in maintain.maintain(context, pipeline) for words in result.says]
    assert not any("left to the next time" in words for words in done), done


def with_trouble(context: Context, pending: list[Trouble], number: int) -> Context:
    """A context in which the pending trouble happens once, at its point."""

    def strike(point: str) -> None:
        if pending and pending[0].where == point:
            happen(pending.pop().kind, context, number)

    return Context(context.plan, spark=lambda: context.spark, source=context._source, reached=strike)


def happen(kind: str, context: Context, number: int) -> None:
    pipeline = context.plan.pipelines[0]
    table = pipeline.table
    exists = metadata.read(table.catalog, table.identifier) is not None
    if kind == "dies":
        raise Died
    if kind == "another":
        next_batch(context, pipeline)
    elif kind == "maintains" and exists:
        before = rows(pipeline, context.spark)
        maintained(context, pipeline)
        assert rows(pipeline, context.spark) == before
    elif kind == "joins" and exists:
        before = rows(pipeline, context.spark)
        jvm: Any = context.spark._jvm
        action = jvm.org.apache.iceberg.spark.actions.SparkActions.get(context.spark._jsparkSession)
        action.rewriteDataFiles(context.lake(pipeline).load(table.identifier)).option("rewrite-all", "true").execute()
        assert rows(pipeline, context.spark) == before
    elif exists:
        context.spark.sql(f"ALTER TABLE lake.{table.identifier} SET TBLPROPERTIES ('note' = '{number}')")
