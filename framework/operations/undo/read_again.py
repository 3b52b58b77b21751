"""Reads messages again from a moment on, into another table. The pipeline's own table stays as it is.

*Guarantee* The other table has the rows that today's spec and today's joined tables make of the messages that the pipeline's own table
has read since then, each once. The same command continues if it was interrupted. Keys that were forgotten stay forgotten.
*Limit* The other table is not maintained and has no followers, and `sluice forget` does not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime

from framework.base import iso_times
from framework.base.errors import BatchError, RefusedError
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.publish.batch import Batch, next_batch
from framework.core.publish.tables import create_table
from framework.core.rules import forgotten, refusals
from framework.core.rules.protocol import Partition
from framework.core.run.events import BatchDone, Began, Event
from framework.core.run.failures import ended
from framework.plan import Pipeline, Plan, Topics

_SINCE = "sluice.read_again_since"


@dataclass(frozen=True)
class ReadAgain:
    """The effects of reading into another table. `starts` is None where the table exists already, and reading continues."""

    pipeline: Pipeline  # with the other table
    _: KW_ONLY
    starts: Mapping[Partition, int] | None
    until: Mapping[Partition, int]  # the offsets that the pipeline's own table has reached
    messages: int
    cut: int  # partitions of which Kafka may have deleted messages since then
    properties: Mapping[str, str]
    accepted: Mapping[Partition, int]  # bad rows below these offsets stop nothing, as in the pipeline's own table


def judged(context: Context, pipeline: Pipeline, since: datetime, identifier: str) -> ReadAgain:
    """The effects of reading the messages since `since` into the table `identifier`. Starts no Spark."""
    if pipeline.read_tables:
        hint = f"`sluice rebuild {pipeline.name}` computes it again"
        raise RefusedError("cannot-rewind", f"{pipeline.table.identifier} is made of tables, not of messages", hint)
    own_table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    state = table_state.state_of(own_table) if own_table else None
    if own_table is None or state is None:
        raise refusals.no_table(pipeline)
    _refuse_taken(context.plan, pipeline, since, identifier)
    topic_state = context.source(pipeline).topic_state()
    position = refusals.check(pipeline, state, topic_state)
    namespace, _, name = identifier.rpartition(".")
    source = Topics(tuple(replace(kafka_topic, start_from=since) for kafka_topic in pipeline.topics))
    other_pipeline = replace(pipeline, source=source, also=(), table=replace(pipeline.table, namespace=namespace, name=name))
    properties = {_SINCE: since.isoformat(), **forgotten.after_renaming(own_table.properties, {})}
    existing_position = _existing_position(context.plan, other_pipeline, properties)
    starts = context.source(other_pipeline).starts(topic_state, {}) if existing_position is None else None
    ends = starts if starts is not None else existing_position or {}
    return ReadAgain(
        other_pipeline, starts=starts, until={**ends, **position.ends}, messages=refusals.messages_between(ends, position.ends),
        cut=sum(0 < offset == topic_state.starts[partition] for partition, offset in (starts or {}).items()), properties=properties,
        accepted=position.accepted,
    )  # fmt: skip


def read(context: Context, target: ReadAgain, stopped: Callable[[], bool]) -> Iterator[Event]:
    """Reads until the other table has all messages, or it is stopped."""
    return ended(target.pipeline, _read(context, target, stopped))


def _read(context: Context, target: ReadAgain, stopped: Callable[[], bool]) -> Iterator[Event]:
    context.expect(target.messages)
    limited_context = Context(context.plan, spark=lambda: context.spark, reached=context.reached, until=target.until)
    if target.starts is not None:
        create_table(limited_context, limited_context.lake(target.pipeline), target.pipeline, target.properties, target.accepted)
    yield Began(target.pipeline, target.messages)
    for batch in _batches(limited_context, target.pipeline):
        yield BatchDone(target.pipeline, batch)
        if stopped():
            return


def _batches(context: Context, pipeline: Pipeline) -> Iterator[Batch]:
    while True:
        try:
            batch = next_batch(context, context.schemas.current(pipeline))
        except RefusedError as refusal:
            hint = f"correct the cause, and the same command continues; or drop {pipeline.table.identifier} and begin again"
            raise BatchError(
                refusal.code, f"{pipeline.table.identifier} cannot be read further: {refusal.message}", hint
            ) from None
        if batch is None:
            return
        yield batch


def into_another(plan: Plan, pipeline: Pipeline, since: datetime) -> str:
    """The command that reads the messages since `since` into a table with an unused name."""
    names = (f"{pipeline.table.identifier}_again{number}" for number in ("", *range(2, 1000)))
    name = next(name for name in names if not _is_taken(plan, pipeline, name))
    return f"sluice rewind {pipeline.name} --to {iso_times.text(since)} --into {name}"


def _is_taken(plan: Plan, pipeline: Pipeline, identifier: str) -> bool:
    catalog = pipeline.table.catalog
    return _owner(plan, pipeline, identifier) is not None or metadata.read(catalog, identifier) is not None


def _owner(plan: Plan, pipeline: Pipeline, identifier: str) -> Pipeline | None:
    """The pipeline whose table, or whose table of bad rows, has this name."""
    return next(
        (
            owner
            for owner in plan.pipelines
            if owner.table.catalog.name == pipeline.table.catalog.name
            and identifier in (owner.table.identifier, owner.table.bad_rows)
        ),
        None,
    )


def _existing_position(plan: Plan, other_pipeline: Pipeline, properties: Mapping[str, str]) -> Mapping[Partition, int] | None:
    """The position of the other table; None if the table does not exist yet."""
    identifier = other_pipeline.table.identifier
    table = metadata.read(other_pipeline.table.catalog, identifier)
    if table is None:
        return None
    state = table_state.state_of(table)
    since = table.properties.get(_SINCE)
    own_pipeline = next(pipeline for pipeline in plan.pipelines if pipeline.name == other_pipeline.name)
    hint = f"`{into_another(plan, own_pipeline, datetime.fromisoformat(properties[_SINCE]))}` reads into a new one"
    if since is None or state is None or state.position is None:
        raise RefusedError("cannot-rewind", f"{identifier} is there already, and not from reading again", hint)
    if since != properties[_SINCE] or state.owner != refusals.owner(other_pipeline):
        start_text = iso_times.text(datetime.fromisoformat(since))
        message = f"{identifier} is there already: it was begun for another pipeline, or for messages since {start_text}"
        if state.owner == refusals.owner(other_pipeline):
            hint = f"`sluice rewind {other_pipeline.name} --to {start_text} --into {identifier}` continues it; {hint}"
        raise RefusedError("cannot-rewind", message, hint)
    if table.properties.get(forgotten.PROPERTY) != properties.get(forgotten.PROPERTY):
        message = f"keys were forgotten in the pipeline's own table since {identifier} was begun, so that it may have their rows"
        raise RefusedError("cannot-rewind", message, hint)
    return state.position.ends


def _refuse_taken(plan: Plan, pipeline: Pipeline, since: datetime, identifier: str) -> None:
    owner = _owner(plan, pipeline, identifier)
    if owner is not None:
        hint = f"`{into_another(plan, pipeline, since)}` reads into a new one"
        raise RefusedError("cannot-rewind", f"{identifier} is the table of the pipeline `{owner.name}`", hint)
