"""What landed and what still waits, pipeline by pipeline. Reads Kafka and the catalog, changes nothing, starts no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from framework.engine import bad_rows, look, protocol, refusals
from framework.engine.kafka import Kafka
from framework.engine.protocol import Position, TableState, TopicState
from framework.errors import SluiceError
from framework.plan.model import KAFKA_COLUMNS, Pipeline, Plan
from framework.types import TIMESTAMP

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable


@dataclass(frozen=True)
class Watched:
    """A pipeline now. `bad_rows` counts those too that the next batch brings to their table. Where the lag is not known,
    `trouble` says why: Kafka does not answer, or a run would refuse to go on."""

    pipeline: str
    table: str
    rows: int
    bad_rows: int
    lag: int | None  # messages up to the last stable offsets
    position: Position | None
    committed: datetime | None
    files: int
    bytes: int
    trouble: SluiceError | None = None


def watch(plan: Plan) -> tuple[Watched, ...]:
    clusters = {cluster.name: Kafka(cluster, plan.secrets) for cluster in plan.clusters}
    return tuple(_watched(pipeline, clusters[pipeline.topic.cluster.name]) for pipeline in plan.pipelines)


def newest(pipeline: Pipeline) -> datetime | None:
    """The newest event time in the table, by the bounds of its files. *Cost*: a look at every manifest."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import TimestamptzType

    table = look.table(pipeline.table.catalog, pipeline.table.identifier)
    kept = [column.name for column in pipeline.table.columns if column.type == TIMESTAMP]
    name = next((name for name in (pipeline.topic.event_time, KAFKA_COLUMNS[-1].name) if name in kept), None)
    if table is None or name is None:
        return None
    field = table.schema().find_field(name)
    bounds = [task.file.upper_bounds.get(field.field_id) for task in table.scan().plan_files()]
    latest = max((from_bytes(TimestamptzType(), bound) for bound in bounds if bound is not None), default=None)
    return None if latest is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=int(latest))


def _watched(pipeline: Pipeline, kafka: Kafka) -> Watched:
    # The position first: what is committed in between is then in the rows and still counted as lag, never missing from both.
    seen = look.state(pipeline.table)
    position = seen.position if seen else None
    table = look.table(pipeline.table.catalog, pipeline.table.identifier)
    bad = look.table(pipeline.table.catalog, pipeline.table.bad_rows)
    waiting = position.bad if position and bad_rows.pending(pipeline, position) else 0
    lag, trouble = _lag(pipeline, seen, kafka)
    total = _summary(table)
    main = table.current_snapshot() if table else None
    return Watched(
        pipeline.name,
        pipeline.table.identifier,
        _rows(total),
        _rows(_summary(bad)) + waiting,
        lag,
        position,
        datetime.fromtimestamp(main.timestamp_ms / 1000, timezone.utc) if main else None,
        int(total.get("total-data-files", 0)),
        int(total.get("total-files-size", 0)),
        trouble,
    )


def _lag(pipeline: Pipeline, seen: TableState | None, kafka: Kafka) -> tuple[int | None, SluiceError | None]:
    try:
        topic = kafka.look(pipeline.topic)
        position = refusals.check(pipeline, seen, topic) if seen else _unborn(pipeline, topic, kafka)
    except SluiceError as error:
        return None, error
    range_ = protocol.next_range(position, topic, 1)
    return (range_.waiting if range_ else 0), None


def _unborn(pipeline: Pipeline, topic: TopicState, kafka: Kafka) -> Position:
    """Where a table that does not exist would begin if it were made now."""
    start = pipeline.topic.start_from
    starts = topic.starts if start == "earliest" else topic.ends
    if isinstance(start, datetime):
        starts = kafka.offsets_at(pipeline.topic, start)
    return Position("", 0, topic.cluster, topic.topic, starts, 0, 0)


def _summary(table: IcebergTable | None) -> Mapping[str, Any]:
    main = table.current_snapshot() if table else None
    return main.summary.additional_properties if main and main.summary else {}


def _rows(total: Mapping[str, Any]) -> int:
    return int(total.get("total-records", 0)) - int(total.get("total-position-deletes", 0))
