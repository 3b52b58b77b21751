"""The snapshots of a table that other pipelines still have to read."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.plan import Catalog, DependentTable, Pipeline


def needed(table: Metadata, pipeline: Pipeline) -> frozenset[int]:
    """The snapshots that readers need: the last one that each has read, and for a reader of every commit also the later ones."""
    return frozenset(id_ for reader in pipeline.readers for id_ in _needed(table, pipeline, reader))


def reached(table: Metadata, pipeline: Pipeline, catalog: Catalog, reader: str) -> int | None:
    """The number of the last commit that a reader's table has read; None if it has read nothing of this table."""
    reader_table = metadata.read(catalog, reader)
    text = reader_table.properties.get(protocol.POSITION) if reader_table else None
    position = Position.read(text) if text else None
    if position is None or position.topics.get(pipeline.table.identifier) != table.uuid:
        return None
    return next(iter(position.ends.values()), None)


def _needed(table: Metadata, pipeline: Pipeline, reader: DependentTable) -> Iterator[int]:
    sequence = reached(table, pipeline, reader.catalog, reader.identifier)
    if sequence is None:
        return
    for id_, snapshot in table.snapshots.items():
        if snapshot.get("sequence-number") == sequence:
            yield id_
    for snapshot in table.ancestors() if reader.every_commit else ():
        if (snapshot.get("sequence-number") or 0) > sequence:
            yield snapshot["snapshot-id"]
