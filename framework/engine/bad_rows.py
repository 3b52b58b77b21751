"""Bad rows: staged beside the table by the same attempt, brought to their own table once the table's commit is done.

Guarantee: the table's commit alone decides. What it had no time to bring over, the next batch brings over before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError

from framework.engine import attempts, look, protocol, rows
from framework.engine.context import Context
from framework.engine.lake import Lake, Refused
from framework.engine.protocol import Position, Range
from framework.engine.refusals import Acceptance
from framework.errors import BadRowsStop, BatchError, TableRecreated
from framework.plan.model import Column, Pipeline
from framework.types import BINARY, BIGINT, INT, STRING, TIMESTAMP, Array, Field, Struct

OF = "sluice.of"  # the uuid of the table whose bad rows these are
_HEADERS = Array(Struct((Field("key", STRING), Field("value", BINARY))))
COLUMNS = (
    Column("stage", STRING, "Where it failed: value, key, headers, or the step"),
    Column("code", STRING, "What is wrong, as a code"),
    Column("message", STRING, "What is wrong, in words"),
    Column("topic", STRING, "Kafka topic"),
    Column("partition", INT, "Kafka partition"),
    Column("offset", BIGINT, "Kafka offset"),
    Column("timestamp", TIMESTAMP, "Kafka timestamp"),
    Column("headers", _HEADERS, "Kafka headers"),
    Column("schema_id", INT, "The id of the message's schema in the registry"),
    Column("key", BINARY, "The message's key, as it is"),
    Column("value", BINARY, "The message's value, as it is"),
)
_TRIES = 5


def stage(
    context: Context, lake: Lake, pipeline: Pipeline, attempt: str, uuid: str, range_: Range, counted: rows.Counted
) -> None:
    """Writes the batch's bad rows to a branch of their table. Those too large to travel with the first pass are read again."""
    identifier = pipeline.table.bad_rows
    table = lake.load(identifier)
    if table is None:
        lake.create(identifier, COLUMNS, (), (), {"format-version": "2"}, lambda *_: {OF: uuid})
        table = lake.load(identifier)
    if table is None:
        raise BatchError("table-not-created", f"the table {identifier} could not be made", "run again")
    if counted.too_large:
        every = rows.frame(context.spark, pipeline, range_, context.plan.secrets, carry=False)
        bad = every.all.where("_sluice_bad IS NOT NULL").select("_sluice_bad.*")
    else:
        bad = rows.carried_frame(context.spark, counted)
    lake.branch(table, attempt, table.currentSnapshot().snapshotId())
    made = rows.bad_rows(context.spark, pipeline, bad)
    catalog, namespace, name = pipeline.table.catalog.name, *identifier.split(".")
    writer = made.writeTo(f"`{catalog}`.`{namespace}`.`{name}`.`branch_{protocol.BRANCH}{attempt}`")
    writer.option(f"snapshot-property.{protocol.ATTEMPT}", attempt).append()


def pending(pipeline: Pipeline, position: Position) -> bool:
    """Whether the last batch's bad rows still wait on their branch; asked without Spark."""
    if not position.bad:
        return False
    table = look.table(pipeline.table.catalog, pipeline.table.bad_rows)
    return table is not None and protocol.BRANCH + position.attempt in table.metadata.refs


def roll_forward(lake: Lake, pipeline: Pipeline, position: Position) -> None:
    """Brings the bad rows of the last published batch to their table, if that has not been done."""
    if not position.bad:
        return
    for _ in range(_TRIES):
        table = lake.load(pipeline.table.bad_rows)
        if table is None:
            return
        try:
            lake.join(table, position.attempt)
        except (Refused, Py4JError, OSError):
            continue  # refused, or the answer is lost: joining again finds out
        return
    raise BatchError(
        "bad-rows-not-published",
        f"the catalog did not take the commit to {pipeline.table.bad_rows} in {_TRIES} tries",
        "they are kept and published first of all by the next run",
    )


def forget(context: Context, pipeline: Pipeline, starts: Mapping[int, int]) -> None:
    """Removes the bad rows at and behind these offsets, whose messages are read again."""
    if look.table(pipeline.table.catalog, pipeline.table.bad_rows) is None:
        return
    behind = " OR ".join(f"(partition = {partition} AND offset >= {offset})" for partition, offset in starts.items())
    context.spark.sql(f"DELETE FROM `{pipeline.table.catalog.name}`.{pipeline.table.bad_rows} WHERE {behind or 'false'}")


def stop(pipeline: Pipeline, position: Position, counted: rows.Counted) -> None:
    """With `bad_rows: stop`, refuses a batch with bad rows that nobody has accepted."""
    if pipeline.bad_rows != "stop" or not counted.bad:
        return
    fresh = [row for row in counted.carried if row["offset"] >= position.accepted.get(row["partition"], 0)]
    if not fresh:
        return
    first = min(fresh, key=lambda row: (row["partition"], row["offset"]))
    fault = pipeline.faults[first["fault"]]
    below = dict(position.accepted)
    for row in fresh:
        below[row["partition"]] = max(below.get(row["partition"], 0), row["offset"] + 1)
    says = f"the {len(fresh)} bad messages of this batch are quarantined in {pipeline.table.bad_rows}"
    raise BadRowsStop(
        "bad-rows",
        f"{len(fresh)} bad messages in {pipeline.topic.kafka_name}, the first at partition {first['partition']}, "
        f"offset {first['offset']}: {fault.code}: {fault.message}",
        f"`sluice accept {pipeline.name}`: {says}",
        Acceptance(says, Position(**{**vars(position), "accepted": below})),
    )


def refuse_leftovers(lake: Lake, pipeline: Pipeline, table: Any | None) -> None:
    """A table that was dropped and made anew does not share the bad rows of its predecessor: their messages are read again."""
    left = lake.load(pipeline.table.bad_rows)
    if left is None or (table is not None and left.properties().get(OF) == str(table.uuid())):
        return
    raise TableRecreated(
        "table-recreated",
        f"the table {pipeline.table.identifier} is gone or new, but {pipeline.table.bad_rows} still holds bad rows of its predecessor",
        f"`sluice accept {pipeline.name}`: those bad rows are dropped and the topic is read from `start_from` into a new table",
        Acceptance("", Position("", 0, "", "", {}, 0, 0)),
    )


def sweep(lake: Lake, pipeline: Pipeline) -> None:
    """Removes branches of dead attempts. A batch that was published before it died keeps its branch until that is brought over."""
    table = lake.load(pipeline.table.bad_rows)
    if table is None:
        return
    dead = [
        name.removeprefix(protocol.BRANCH)
        for name in list(table.refs())
        if name.startswith(protocol.BRANCH) and attempts.is_dead(name.removeprefix(protocol.BRANCH))
    ]
    # Loaded after the dead were found: who is dead now and is not the last published one will never be.
    main = lake.load(pipeline.table.identifier) if dead else None
    said = main.properties().get(protocol.POSITION) if main is not None else None
    for name in dead:
        if said is not None and Position.read(said).attempt != name:
            lake.sweep(lake.load(pipeline.table.bad_rows), name)
