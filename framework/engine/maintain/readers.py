"""What other pipelines still have to read of a table."""

from __future__ import annotations

from collections.abc import Iterator

from framework.engine.iceberg import metadata
from framework.engine.iceberg.metadata import Metadata
from framework.engine.rules import protocol
from framework.engine.rules.protocol import Position
from framework.model import Pipeline, Reader


def needed(table: Metadata, pipeline: Pipeline) -> frozenset[int]:
    """The snapshots that readers need: the last one that each has read, and where it reads every commit by itself those since."""
    return frozenset(id_ for reader in pipeline.readers for id_ in _needed(table, pipeline, reader))


def _needed(table: Metadata, pipeline: Pipeline, reader: Reader) -> Iterator[int]:
    read = metadata.read(reader.catalog, reader.identifier)
    text = read.properties.get(protocol.POSITION) if read else None
    position = Position.read(text) if text else None
    if position is None or position.topics.get(pipeline.table.identifier) != table.uuid:
        return
    sequence = next(iter(position.ends.values()), None)
    if sequence is None:
        return
    for id_, each in table.snapshots.items():
        if each.get("sequence-number") == sequence:
            yield id_
    for each in table.ancestors() if reader.every_commit else ():
        if (each.get("sequence-number") or 0) > sequence:
            yield each["snapshot-id"]
