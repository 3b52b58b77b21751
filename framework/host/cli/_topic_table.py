"""Topics as `sluice topics` lists them: as a table for people, and as JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from framework.base.amounts import counted
from framework.host.cli import _specs, _topics

if TYPE_CHECKING:
    from framework.core.kafka.topics import Listed, PartitionState
    from framework.plan import Plan

_COLUMNS = ("topic", "in Kafka", "there", "partitions", "leaders", "replicas", "in sync", "messages", "read by")
_FED = "filled by"
_NUMBERS = ("partitions", "replicas", "in sync", "messages")


def show(plan: Plan, topics: list[Listed]) -> None:
    rows = [[(name, "") for name in _COLUMNS], *(_cells(plan, listing) for listing in topics)]
    columns = list(_COLUMNS)
    fed = [", ".join(_topics.feeders(plan, listing.topic)) for listing in topics]
    if any(fed):  # without `also` the column would be empty
        columns.append(_FED)
        rows = [[*row, (text, "")] for row, text in zip(rows, [_FED, *fed], strict=True)]
    widths = [max(len(row[index][0]) for row in rows) for index in range(len(columns))]
    for row in rows:
        cells = []
        for name, width, (text, colour) in zip(columns, widths, row, strict=True):
            padded = text.rjust(width) if name in _NUMBERS else text.ljust(width)
            cells.append(click.style(padded, fg=colour) if colour else padded)
        click.echo("  ".join(cells).rstrip())
    for listing in topics:
        if listing.trouble:
            click.echo(f"{listing.topic.name}: messages are unknown: {listing.trouble}")
        if listing.partitions is None:
            _specs.echo(f"{listing.topic.name}: `sluice topics create {listing.topic.name}` creates it")
        elif listing.topic.partitions not in (0, len(listing.partitions)):
            says = f"the spec says {counted(listing.topic.partitions, 'partition')}, Kafka has {len(listing.partitions):,}"
            click.echo(f"{listing.topic.name}: {says}")


def _cells(plan: Plan, listing: Listed) -> list[tuple[str, str]]:
    readers = ", ".join(_topics.readers(plan, listing.topic)) or "nobody"
    if listing.partitions is None:
        return [(listing.topic.name, ""), (listing.topic.kafka_name, ""), ("no", "yellow"), *([("", "")] * 5), (readers, "")]
    leaderless_count = sum(part.leader is None for part in listing.partitions)
    leaders = ", ".join(str(broker) for broker in sorted({part.leader for part in listing.partitions if part.leader is not None}))
    replicas = min(len(part.replicas) for part in listing.partitions)
    in_sync = min(len(part.in_sync) for part in listing.partitions)
    return [
        (listing.topic.name, ""),
        (listing.topic.kafka_name, ""),
        ("yes", "green"),
        (f"{len(listing.partitions):,}", ""),
        (
            ", ".join(filter(None, [leaders, f"{leaderless_count:,} without" if leaderless_count else ""])),
            "red" if leaderless_count else "",
        ),
        (str(replicas), ""),
        (str(in_sync), "red" if in_sync < replicas else ""),
        ("unknown" if listing.messages is None else f"{listing.messages:,}", ""),
        (readers, ""),
    ]


def document(plan: Plan, listing: Listed) -> dict[str, Any]:
    partitions = None if listing.partitions is None else [_partition(part) for part in listing.partitions]
    return {
        "topic": listing.topic.name, "kafka_name": listing.topic.kafka_name, "cluster": listing.topic.cluster.name,
        "there": listing.partitions is not None, "partitions": partitions, "spec_partitions": listing.topic.partitions or None,
        "messages": listing.messages, "trouble": listing.trouble or None, "read_by": _topics.readers(plan, listing.topic),
        "filled_by": _topics.feeders(plan, listing.topic),
    }  # fmt: skip


def _partition(part: PartitionState) -> dict[str, Any]:
    return {
        "partition": part.number, "leader": part.leader, "replicas": part.replicas, "in_sync": part.in_sync,
        "start": part.start, "end": part.end,
    }  # fmt: skip
