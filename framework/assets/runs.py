"""A pipeline as one step of Dagster's: its batches until it is caught up, and what Dagster is told of them.

Limit: one process and one Spark session per run; several runs of one table are safe, and the later ones find nothing to do.
"""

# Without `from __future__ import annotations`: Dagster reads the types of a step's configuration.
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from dagster import (
    AssetCheckResult,
    AssetExecutionContext,
    AssetMaterialization,
    AssetsDefinition,
    Config,
    Failure,
    InitResourceContext,
    MaterializeResult,
    MetadataValue,
    RetryRequested,
    multi_asset,
)
from dagster_pyspark import LazyPySparkResource
from pydantic import Field

from framework.assets import checks, described
from framework.engine import loop, notes, session
from framework.engine.batch import Batch
from framework.engine.context import Context
from framework.errors import SluiceError
from framework.plan.model import Pipeline, Plan
from framework.watch import Watched, newest, watched

Result = MaterializeResult[Any] | AssetCheckResult
_TRIES = 3
_BETWEEN = 20  # seconds
_PASSING = ("kafka-unreachable", "catalog-unreachable")  # what does not answer may be back in a moment


class SparkOfARun(LazyPySparkResource):
    """Dagster's own lazy session, which ends with the run."""

    def teardown_after_execution(self, context: InitResourceContext) -> None:
        if self._spark_session is not None:
            session.stop(self._spark_session)
            self._spark_session = None


class Launch(Config):
    """What a person can choose for one run."""

    until: str | None = Field(None, description="Read no further than this time of Kafka's, such as 2026-01-05T10:00:00Z.")
    until_offsets: dict[str, int] = Field(
        {}, description="Read no further than these offsets, by topic/partition: {trades/0: 500}."
    )


def table(plan: Plan, pipeline: Pipeline) -> AssetsDefinition:
    specs = [described.table(pipeline)]
    if pipeline.bad_rows != "drop":
        specs.append(described.bad_rows(pipeline))

    @multi_asset(
        name=pipeline.name, specs=specs, check_specs=checks.specs(pipeline), pool=f"table_{pipeline.name}",
        required_resource_keys={"spark"}, can_subset=True,
    )  # fmt: skip
    def run(context: AssetExecutionContext, config: Launch) -> Iterator[Result]:
        if not context.selected_asset_keys:
            raise Failure("the checks of a table are made by its runs: materialize it", allow_retries=False)
        try:
            notes.refuse_paused(pipeline.name)
            engine = Context(plan, spark=lambda: _session(context, plan), until=_until(pipeline, config))
            batches: list[Batch] = []
            for batch in loop.batches(engine, pipeline):
                batches.append(batch)
                context.log.info(f"batch {batch.number}: {batch.rows:,} rows, {batch.bad:,} bad, {batch.seconds:.1f} s")
        except SluiceError as error:
            if error.code in _PASSING:
                raise RetryRequested(_TRIES, _BETWEEN) from Failure(str(error))
            yield from _told(context, checks.stopped(pipeline, error))
            # A person must do something first; trying again would find the same.
            raise Failure(str(error), allow_retries=False) from None
        yield from _told(context, _results(pipeline, watched(plan, pipeline), batches))

    return run


def _told(context: AssetExecutionContext, results: Iterator[Result]) -> Iterator[Result]:
    """A run is of the table and its bad rows, whichever of them was selected: what was not is told as an event."""
    asked = {(key.asset_key, key.name) for key in context.selected_asset_check_keys}
    for result in results:
        if isinstance(result, AssetCheckResult):
            if (result.asset_key, result.check_name) in asked:
                yield result
        elif result.asset_key in context.selected_asset_keys:
            yield result
        elif result.asset_key:
            context.log_event(AssetMaterialization(result.asset_key, metadata=result.metadata))


def _session(context: AssetExecutionContext, plan: Plan) -> Any:
    session.prepare(plan)
    return context.resources.spark.spark_session


def _until(pipeline: Pipeline, config: Launch) -> datetime | Mapping[str, int] | None:
    topics = [topic.kafka_name for topic in pipeline.topics]
    wrong = [each for each in config.until_offsets if each.rpartition("/")[0] not in topics]
    if wrong or (config.until and not topics):
        what = f"`{wrong[0]}` is no partition of what {pipeline.name} reads" if wrong else f"{pipeline.name} reads no topic"
        hint = f"write a topic, / and a number, such as {topics[0]}/0" if topics else "leave `until` out"
        raise SluiceError("bad-limit", what, hint)
    if config.until is None:
        return config.until_offsets or None
    from framework.spec.scalars import read_time

    try:
        return read_time(config.until)
    except ValueError:
        raise SluiceError("bad-time", f"`until: {config.until}` is no time", "write it as 2026-01-05T10:00:00Z") from None


def _results(pipeline: Pipeline, seen: Watched, batches: list[Batch]) -> Iterator[Result]:
    bad = _bad(pipeline, batches)
    moment = newest(pipeline)
    yield MaterializeResult(described.table_key(pipeline), metadata=metadata(seen, batches, moment))
    if pipeline.bad_rows != "drop":
        by_reason = "\n".join(f"- {count:,} {what}" for what, count in bad.most_common(20))
        found: dict[str, Any] = {
            "new": sum(bad.values()),
            "dagster/row_count": seen.bad_rows,
            "reasons": MetadataValue.md(by_reason or "none"),
        }
        yield MaterializeResult(described.bad_rows_key(pipeline), metadata=found)
    yield from checks.results(pipeline, batches, bad, moment)


def metadata(seen: Watched, batches: list[Batch], moment: datetime | None) -> dict[str, Any]:
    """Numbers become plots. The moment is that of the newest event."""
    phases: Counter[str] = Counter()
    for phase, seconds in (each for batch in batches for each in batch.phases):
        phases[phase] += seconds  # type: ignore[assignment]
    changed: Counter[str] = Counter()
    for each in batches:
        changed.update(each.changed.words if each.changed else {})
    found: dict[str, Any] = {
        "batches": len(batches),
        "rows": sum(batch.rows for batch in batches),
        "bad_rows": sum(batch.bad for batch in batches),
        "filtered": sum(batch.filtered for batch in batches),
        **changed,
        "seconds": round(sum(batch.seconds for batch in batches), 3),
        **{f"seconds_{phase}": round(seconds, 3) for phase, seconds in phases.items()},
        "files": seen.files,
        "bytes": seen.bytes,
        "dagster/row_count": seen.rows,
        "dagster/uri": seen.location,
    }
    if seen.lag is not None:
        found["lag_messages"] = seen.lag
    if moment is not None:
        found["lag_seconds"] = round((datetime.now(timezone.utc) - moment).total_seconds(), 1)
    if seen.position is not None:
        # As text: a plot of it would say nothing, and its digits are more than a plot has.
        found["snapshot"] = MetadataValue.text(str(seen.position.snapshot))
        found["offsets"] = MetadataValue.json(dict(seen.position.ends))
    return found


def _bad(pipeline: Pipeline, batches: list[Batch]) -> Counter[str]:
    """This run's bad rows by what is said of them."""
    from framework.engine import look

    if not batches or pipeline.bad_rows == "drop":
        return Counter()
    table = look.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return Counter()
    written = table.scan(row_filter=f"batch >= {batches[0].number}", selected_fields=("message",))
    return Counter(written.to_arrow().column("message").to_pylist())
