"""The commits of a table that is read, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework.base.errors import SourceMissing, Transient
from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import number
from framework.core.iceberg.metadata import Metadata
from framework.plan import Pipeline, TableChanges

Snapshot = Mapping[str, Any]
COMPACTION = "replace"


def current(pipeline: Pipeline, source: TableChanges, use: str = "which {} reads") -> tuple[Metadata, Snapshot]:
    """A table that a pipeline uses, and its newest commit. `use` says in the error what for."""
    table = metadata.read(source.catalog, source.identifier)
    main = table.main if table else None
    if table is None or main is None:
        raise SourceMissing(
            "source-missing",
            f"the table {source.identifier}, {use.format(pipeline.name)}, does not exist yet",
            f"run `{source.pipeline}`, which writes it, first",
        )
    return table, main


def of_number(table: Metadata, sequence: int) -> Snapshot | None:
    return next((snapshot for snapshot in table.snapshots.values() if number(snapshot) == sequence), None)


def read_at(table: Metadata, source: TableChanges, sequence: int) -> Snapshot:
    """The commit of this number, whose rows are read; raises if it is gone."""
    snapshot = of_number(table, sequence)
    if snapshot is None:
        raise Transient("source-changed", f"{source.identifier} lost a snapshot while it was read", "run again")
    return snapshot


def expired(pipeline: Pipeline, ends: Mapping[str, int]) -> tuple[TableChanges, int] | None:
    """A table that the pipeline reads, and the commit up to which it was read, if that is gone: then the next changes are unknown."""
    for source in pipeline.read_tables:
        table, sequence = metadata.read(source.catalog, source.identifier), ends.get(source.partition)
        if table is not None and sequence is not None and of_number(table, sequence) is None:
            return source, sequence
    return None


def snapshots_after(table: Metadata, sequence: int) -> Iterator[Snapshot]:
    """Main's snapshots after that of this number, the newest first."""
    for snapshot in table.ancestors():
        if number(snapshot) <= sequence:
            return
        yield snapshot


def changed(snapshot: Snapshot) -> int:
    """About how many rows a commit changed."""
    summary = metadata.summary(snapshot)
    return (
        int(summary.get("added-records", 0))
        + int(summary.get("deleted-records", 0))
        + int(summary.get("added-position-deletes", 0))
    )


def news(table: Metadata, sequence: int) -> int | None:
    """About how many rows changed since the commit of this number; None if it has expired or was undone."""
    start, newer_snapshots = of_number(table, sequence), list(snapshots_after(table, sequence))
    is_current = start is not None and not newer_snapshots and table.main == start
    if is_current or (start and newer_snapshots and newer_snapshots[-1].get("parent-snapshot-id") == start["snapshot-id"]):
        return sum(changed(snapshot) for snapshot in newer_snapshots if metadata.summary(snapshot).get("operation") != COMPACTION)
    return None
