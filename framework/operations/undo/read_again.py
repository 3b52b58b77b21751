"""Messages are read again from a moment on, into another table: the pipeline's own stays as it is.

*Guarantee* The other table has what the spec of today, and the joined tables of today, make of the messages that the pipeline's own table
has read since then, each once. Cut off anywhere, the same command continues. Keys that were forgotten stay forgotten.
*Limit* Nobody maintains the other table or follows it, and `sluice forget` does not know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime

from framework.base import iso_times
from framework.base.errors import BatchError, RefusedError
from framework.core import openlineage
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.publish.batch import Batch, next_batch
from framework.core.publish.tables import create_table
from framework.core.rules import forgotten, refusals
from framework.core.rules.protocol import Partition
from framework.plan import Pipeline, Plan

_SINCE = "sluice.read_again_since"


@dataclass(frozen=True)
class ReadAgain:
    """The effects of reading into another table. `starts` is None where the table is there already, and reading continues."""

    pipeline: Pipeline  # with the other table
    _: KW_ONLY
    starts: Mapping[Partition, int] | None
    until: Mapping[Partition, int]  # as far as the pipeline's own table has read
    messages: int
    cut: int  # partitions of which Kafka may have deleted messages since then
    properties: Mapping[str, str]
    accepted: Mapping[Partition, int]  # bad rows below these offsets stop nothing, as in the own table


def judged(context: Context, pipeline: Pipeline, since: datetime, identifier: str) -> ReadAgain:
    """The effects, without Spark."""
    if pipeline.source:
        hint = f"`sluice rebuild {pipeline.name}` computes it again"
        raise RefusedError("cannot-rewind", f"{pipeline.table.identifier} is made of tables, not of messages", hint)
    own = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    state = table_state.state_of(own) if own else None
    if own is None or state is None:
        raise refusals.no_table(pipeline)
    _refuse_taken(context.plan, pipeline, since, identifier)
    source = context.source(pipeline)
    topic = source.topic_state()
    position = refusals.check(pipeline, state, topic)
    namespace, _, name = identifier.rpartition(".")
    topics = tuple(replace(topic, start_from=since) for topic in pipeline.topics)
    other = replace(pipeline, topics=topics, also=(), table=replace(pipeline.table, namespace=namespace, name=name))
    properties = {_SINCE: since.isoformat(), **forgotten.after_renaming(own.properties, {})}
    there = _position_there(context.plan, other, properties)
    starts = context.source(other).starts(topic, {}) if there is None else None
    ends = starts if starts is not None else there or {}
    return ReadAgain(
        other, starts=starts, until={**ends, **position.ends}, messages=refusals.messages_between(ends, position.ends),
        cut=sum(0 < offset == topic.starts[each] for each, offset in (starts or {}).items()), properties=properties,
        accepted=position.accepted,
    )  # fmt: skip


def read(context: Context, to: ReadAgain, on_batch: Callable[[Batch], None], stopped: Callable[[], bool]) -> bool:
    """Reads until the other table has all of it; whether it has."""
    context.expect(to.messages)
    limited = Context(context.plan, spark=lambda: context.spark, at=context.at, until=to.until)
    if to.starts is not None:
        create_table(limited, limited.lake(to.pipeline), to.pipeline, to.properties, to.accepted)
    with openlineage.told(to.pipeline, at_once=False) as told:
        for batch in _batches(limited, to.pipeline):
            told.add(batch.rows)
            on_batch(batch)
            if stopped():
                return False
    return True


def _batches(context: Context, pipeline: Pipeline) -> Iterator[Batch]:
    while True:
        try:
            batch = next_batch(context, context.schemas.current(pipeline))
        except RefusedError as refused:
            hint = f"correct the cause, and the same command continues; or drop {pipeline.table.identifier} and begin again"
            raise BatchError(
                refused.code, f"{pipeline.table.identifier} cannot be read further: {refused.message}", hint
            ) from None
        if batch is None:
            return
        yield batch


def into_another(plan: Plan, pipeline: Pipeline, since: datetime) -> str:
    """The command that reads the messages since then into a table whose name nothing has."""
    names = (f"{pipeline.table.identifier}_again{number}" for number in ("", *range(2, 1000)))
    name = next(name for name in names if not _is_taken(plan, pipeline, name))
    return f"sluice rewind {pipeline.name} --to {iso_times.text(since)} --into {name}"


def _is_taken(plan: Plan, pipeline: Pipeline, identifier: str) -> bool:
    catalog = pipeline.table.catalog
    return _owner(plan, pipeline, identifier) is not None or metadata.read(catalog, identifier) is not None


def _owner(plan: Plan, pipeline: Pipeline, identifier: str) -> Pipeline | None:
    """The pipeline whose table has this name, or whose bad rows have it."""
    return next(
        (
            owner
            for owner in plan.pipelines
            if owner.table.catalog.name == pipeline.table.catalog.name
            and identifier in (owner.table.identifier, owner.table.bad_rows)
        ),
        None,
    )


def _position_there(plan: Plan, other: Pipeline, properties: Mapping[str, str]) -> Mapping[Partition, int] | None:
    """The position of the other table; None where there is none yet."""
    identifier = other.table.identifier
    table = metadata.read(other.table.catalog, identifier)
    if table is None:
        return None
    state = table_state.state_of(table)
    since = table.properties.get(_SINCE)
    own = next(pipeline for pipeline in plan.pipelines if pipeline.name == other.name)
    hint = f"`{into_another(plan, own, datetime.fromisoformat(properties[_SINCE]))}` reads into a new one"
    if since is None or state is None or state.position is None:
        raise RefusedError("cannot-rewind", f"{identifier} is there already, and not from reading again", hint)
    if since != properties[_SINCE] or state.owner != refusals.owner(other):
        begun = iso_times.text(datetime.fromisoformat(since))
        message = f"{identifier} is there already: it was begun for another pipeline, or for messages since {begun}"
        if state.owner == refusals.owner(other):
            hint = f"`sluice rewind {other.name} --to {begun} --into {identifier}` continues it; {hint}"
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
