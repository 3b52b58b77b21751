"""The commits of a table that is read, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework.base.errors import SourceMissing, Transient
from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.plan import Pipeline, TableSource

Snapshot = Mapping[str, Any]
COMPACTION = "replace"


def now(pipeline: Pipeline, source: TableSource, use: str = "which {} reads") -> tuple[Metadata, Snapshot]:
    """A table that a pipeline uses so, and its newest commit."""
    table = metadata.read(source.catalog, source.identifier)
    main = table.main if table else None
    if table is None or main is None:
        raise SourceMissing(
            "source-missing",
            f"the table {source.identifier}, {use.format(pipeline.name)}, does not exist yet",
            f"run `{source.pipeline}`, which writes it, first",
        )
    return table, main


def number(snapshot: Snapshot) -> int:
    return snapshot.get("sequence-number") or 0


def of_number(table: Metadata, sequence: int) -> Snapshot | None:
    return next((each for each in table.snapshots.values() if number(each) == sequence), None)


def read_at(table: Metadata, source: TableSource, sequence: int) -> Snapshot:
    """The commit of this number, of which rows are read."""
    snapshot = of_number(table, sequence)
    if snapshot is None:
        raise Transient("source-changed", f"{source.identifier} lost a snapshot while it was read", "run again")
    return snapshot


def since(table: Metadata, sequence: int) -> Iterator[Snapshot]:
    """Main's snapshots, the newest first, down to the one after that of this number."""
    for each in table.ancestors():
        if number(each) <= sequence:
            return
        yield each


def changed(snapshot: Snapshot) -> int:
    """About how many rows a commit changed."""
    summary = metadata.summary(snapshot)
    return (
        int(summary.get("added-records", 0))
        + int(summary.get("deleted-records", 0))
        + int(summary.get("added-position-deletes", 0))
    )


def news(table: Metadata, sequence: int) -> int | None:
    """About how many rows changed since that commit; None where it has expired, or was undone."""
    begun, newer = of_number(table, sequence), list(since(table, sequence))
    is_now = begun is not None and not newer and table.main == begun
    if is_now or (begun and newer and newer[-1].get("parent-snapshot-id") == begun["snapshot-id"]):
        return sum(changed(each) for each in newer if metadata.summary(each).get("operation") != COMPACTION)
    return None
