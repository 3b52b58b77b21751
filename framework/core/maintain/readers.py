"""The snapshots of a table that other pipelines and its followers still have to read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import main_line, number, own_position
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.second_identity import GOING
from framework.core.maintain.thinning import Needs
from framework.core.rules import protocol
from framework.core.rules.protocol import TABLES, Position, parted
from framework.plan import Catalog, DependentTable, Pipeline

_NOTHING_READ = -1
_LONGEST = 86400.0  # seconds


def needs(table: Metadata, pipeline: Pipeline, current_time: datetime) -> Needs:
    """The snapshot up to which each reader has read, now and at each snapshot to which it can be rolled back. A reader of every commit
    also needs the later ones."""
    snapshots: set[int] = set()
    unread: float = math.inf
    pairs = [(reader, numbers) for reader in pipeline.readers for numbers in _read_numbers(table, pipeline, reader, current_time)]
    for reader, numbers in pairs:
        snapshots |= {id_ for id_, snapshot in table.snapshots.items() if number(snapshot) in numbers}
        if reader.every_commit and numbers:
            snapshots |= {entry["snapshot-id"] for entry in main_line(table) if number(entry) > numbers[0]}
        unread = min(unread, _NOTHING_READ if reader.every_commit or not numbers else numbers[0])
    unread = min((unread, *_followed(table, pipeline)))
    # Of a row that waits, the snapshot of the batch that has tried it last says whether to try again.
    return Needs(
        snapshots=frozenset(snapshots), pinned=pipeline.is_pinned, unread=_NOTHING_READ if pipeline.rows_wait else unread
    )


def reached(table: Metadata, pipeline: Pipeline, catalog: Catalog, reader: str) -> int | None:
    """The number of the last commit that a reader's table has read; None if it has read nothing of this table."""
    reader_table = metadata.read(catalog, reader)
    position = reader_table.position if reader_table else None
    return _reached(position, table, pipeline) if position else None


def _reached(position: Position, table: Metadata, pipeline: Pipeline) -> int | None:
    identifier = pipeline.table.identifier
    ids = position.topics.get(identifier) or position.topics.get(TABLES, "")
    if table.uuid not in ids.split():
        return None
    return next((end for partition, end in position.ends.items() if parted(partition)[0] == identifier), None)


def _read_numbers(table: Metadata, pipeline: Pipeline, reader: DependentTable, current_time: datetime) -> Iterator[list[int]]:
    """The numbers of the commits that a reader's table has reached: the current one first, and those of its snapshots. The same of the
    table into which a rebuild computes it, if one is under way."""
    reader_table = metadata.read(reader.catalog, reader.identifier)
    yield _numbers(reader_table, table, pipeline)
    second_table = metadata.read(reader.catalog, reader.second)
    if reader_table and second_table and _is_under_way(reader_table, second_table, current_time):
        yield _numbers(second_table, table, pipeline)


def _is_under_way(first: Metadata, second: Metadata, current_time: datetime) -> bool:
    """Whether a rebuild has written to its table within a day. One that was given up must not hold snapshots for ever."""
    is_gone = GOING in second.properties or first.properties.get(protocol.REBUILT) == second.uuid
    age = current_time.timestamp() - second.document["last-updated-ms"] / 1000
    return second.properties.get(protocol.OF) == first.uuid and not is_gone and age < _LONGEST


def _numbers(reader_table: Metadata | None, table: Metadata, pipeline: Pipeline) -> list[int]:
    positions = [reader_table.position, *map(own_position, main_line(reader_table))] if reader_table else []
    return [end for position in positions if position and (end := _reached(position, table, pipeline)) is not None]


def _followed(table: Metadata, pipeline: Pipeline) -> Iterator[int]:
    """The number of the last commit that each follower has shown. One that shows the newest commit alone needs no others."""
    for follower in pipeline.also:
        if not follower.latest_only:
            shown_snapshot = table.snapshots.get(table.refs.get(follower.tag, -1))
            yield number(shown_snapshot) if shown_snapshot else _NOTHING_READ
