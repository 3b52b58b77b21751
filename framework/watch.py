"""What landed and what still waits, pipeline by pipeline. Reads Kafka and the catalog, changes nothing, starts no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from framework.engine import bad_rows, look
from framework.engine.ahead import going_on
from framework.engine.kafka import Kafka
from framework.engine.protocol import Position, TableState
from framework.engine.source import FromTable, FromTopics, Source
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
    lag: int | None  # messages up to the last stable offsets; rows of another table, if it has changed since they were read
    position: Position | None
    committed: datetime | None
    files: int
    bytes: int
    location: str
    trouble: SluiceError | None = None


def watch(plan: Plan) -> tuple[Watched, ...]:
    clusters = {cluster.name: Kafka(cluster, plan.secrets) for cluster in plan.clusters}
    return tuple(_watched(pipeline, _source(pipeline, clusters)) for pipeline in plan.pipelines)


def watched(plan: Plan, pipeline: Pipeline) -> Watched:
    clusters = {cluster.name: Kafka(cluster, plan.secrets) for cluster in plan.clusters}
    return _watched(pipeline, _source(pipeline, clusters))


def newest(pipeline: Pipeline) -> datetime | None:
    """The newest event time in the table, by the bounds of its files. *Cost*: a look at every manifest."""
    from pyiceberg.conversions import from_bytes
    from pyiceberg.types import TimestamptzType

    table = look.table(pipeline.table.catalog, pipeline.table.identifier)
    kept = [column.name for column in pipeline.table.columns if column.type == TIMESTAMP]
    event_time = None if pipeline.source else pipeline.topic.event_time
    name = next((name for name in (event_time, KAFKA_COLUMNS[-1].name) if name in kept), None)
    if table is None or name is None:
        return None
    field = table.schema().find_field(name)
    bounds = [task.file.upper_bounds.get(field.field_id) for task in table.scan().plan_files()]
    latest = max((from_bytes(TimestamptzType(), bound) for bound in bounds if bound is not None), default=None)
    return None if latest is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=int(latest))


def _source(pipeline: Pipeline, clusters: Mapping[str, Kafka]) -> Source:
    return FromTable(pipeline) if pipeline.source else FromTopics(pipeline, clusters[pipeline.topic.cluster.name])


def _watched(pipeline: Pipeline, source: Source) -> Watched:
    # The position first: what is committed in between is then in the rows and still counted as lag, never missing from both.
    seen = look.state(pipeline.table)
    position = seen.position if seen else None
    table = look.table(pipeline.table.catalog, pipeline.table.identifier)
    bad = look.table(pipeline.table.catalog, pipeline.table.bad_rows)
    waiting = position.bad if position and bad_rows.pending(pipeline, position) else 0
    lag, trouble = _lag(pipeline, seen, source)
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
        table.metadata.location if table else "",
        trouble,
    )


def _lag(pipeline: Pipeline, seen: TableState | None, source: Source) -> tuple[int | None, SluiceError | None]:
    try:
        range_ = source.next(*going_on(pipeline, seen, source))
    except SluiceError as error:
        return None, error
    if range_ is None:
        return 0, None
    return source.rows() if isinstance(source, FromTable) else range_.waiting, None


def _summary(table: IcebergTable | None) -> Mapping[str, Any]:
    main = table.current_snapshot() if table else None
    return main.summary.additional_properties if main and main.summary else {}


def _rows(total: Mapping[str, Any]) -> int:
    return int(total.get("total-records", 0)) - int(total.get("total-position-deletes", 0))
