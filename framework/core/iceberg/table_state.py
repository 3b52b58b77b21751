"""A table's state without Spark: from its metadata, or by PyIceberg where rows are needed. Read-only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from framework.core.iceberg import metadata
from framework.core.iceberg.existing_table import existing as read_existing
from framework.core.iceberg.main_line import of_rules
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import attempts, protocol
from framework.core.rules.protocol import Position, Snapshot, TableState
from framework.core.rules.read_again import read_again, replay_undone
from framework.plan import Catalog, Pipeline, Table
from framework.plan.change import TableNow
from framework.systems import catalogs

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

_LARGE = 100_000  # messages of a batch whose speed counts: a smaller one is mostly overhead
_RECENT = 20  # snapshots


def table(catalog: Catalog, identifier: str) -> IcebergTable | None:
    """The table as it is now, or None."""
    try:
        return catalogs.client_of(catalog).load(identifier)
    except Exception as error:  # a broken catalog raises errors of PyIceberg, SQLAlchemy or the file system
        raise metadata.unreachable(catalog, error) from None


def state(table_: Table) -> TableState | None:
    """The table's state, or None where it does not exist or has no snapshot."""
    table_metadata = metadata.read(table_.catalog, table_.identifier)
    return state_of(table_metadata) if table_metadata else None


def state_of(table_metadata: Metadata) -> TableState | None:
    main = table_metadata.main
    if main is None:
        return None
    position = table_metadata.position
    return TableState(
        uuid=table_metadata.uuid,
        main=main["snapshot-id"],
        snapshots={snapshot.id: snapshot for snapshot in ancestors_of(table_metadata, position.snapshot if position else None)},
        position=position,
        owner=table_metadata.properties.get(protocol.OWNER),
    )


def existing(table_: Table) -> TableNow | None:
    """The table without its rows; None where it does not exist."""
    table_metadata = metadata.read(table_.catalog, table_.identifier)
    if table_metadata is None:
        return None
    return read_existing(
        json.dumps(table_metadata.schema),
        json.dumps(table_metadata.partitions),
        json.dumps(table_metadata.order),
        table_metadata.document["format-version"],
        table_metadata.properties,
    )


def speed(table_: Table) -> float | None:
    """The messages per second of the fastest of the last batches, from the start of an attempt until it was staged; None where no
    batch was large."""
    table_metadata = metadata.read(table_.catalog, table_.identifier)
    if table_metadata is None:
        return None
    recent = islice(ancestors_of(table_metadata, None), _RECENT)
    positions = [(snapshot, Position.read(snapshot.position)) for snapshot in recent if snapshot.position]
    speeds = []
    for (snapshot, position), (_, previous_position) in pairwise(positions):
        message_count = sum(end - previous_position.ends.get(partition, end) for partition, end in position.ends.items())
        written = table_metadata.snapshots[snapshot.id]["timestamp-ms"] / 1000
        seconds = written - attempts.began(snapshot.attempt) if snapshot.attempt else 0.0
        if message_count >= _LARGE and seconds > 0:
            speeds.append(message_count / seconds)
    return max(speeds, default=None)


def bad_waiting(pipeline: Pipeline, position: Position | None) -> int:
    """The number of bad rows of the last batch that are not published yet."""
    return position.bad if position and pending(pipeline, position) else 0


def pending(pipeline: Pipeline, position: Position) -> bool:
    """Whether bad rows still wait to be published or deleted."""
    if not position.is_followed:
        return False
    bad_metadata = metadata.read(pipeline.table.catalog, pipeline.table.bad_rows)
    if bad_metadata is None:
        return False
    if protocol.BRANCH + position.attempt in bad_metadata.refs:
        return True
    if position.forget is None:
        return False
    bad_rows = table(pipeline.table.catalog, pipeline.table.bad_rows)
    if bad_rows is None:
        return False
    conditions = [read_again(position)]
    if "replayed_in" in bad_rows.schema().column_names:
        conditions.append(replay_undone(position))
    return bad_rows.scan(row_filter=" OR ".join(f"({condition})" for condition in conditions)).count() > 0


def ancestors_of(table_metadata: Metadata, oldest_id: int | None) -> Iterator[Snapshot]:
    """Main's snapshots that the table still has, the newest first, down to `oldest_id`."""
    for snapshot in table_metadata.ancestors():
        yield of_rules(snapshot, snapshot.get("parent-snapshot-id"))
        if snapshot["snapshot-id"] == oldest_id:
            return
