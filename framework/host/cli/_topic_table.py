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
    rows = [[(name, "") for name in _COLUMNS], *(_cells(plan, each) for each in topics)]
    columns = list(_COLUMNS)
    fed = [", ".join(_topics.feeders(plan, each.topic)) for each in topics]
    if any(fed):  # without `also` the column would be empty
        columns.append(_FED)
        rows = [[*row, (text, "")] for row, text in zip(rows, [_FED, *fed], strict=True)]
    widths = [max(len(row[at][0]) for row in rows) for at in range(len(columns))]
    for row in rows:
        cells = []
        for name, width, (text, colour) in zip(columns, widths, row, strict=True):
            padded = text.rjust(width) if name in _NUMBERS else text.ljust(width)
            cells.append(click.style(padded, fg=colour) if colour else padded)
        click.echo("  ".join(cells).rstrip())
    for each in topics:
        if each.trouble:
            click.echo(f"{each.topic.name}: messages are unknown: {each.trouble}")
        if each.partitions is None:
            _specs.echo(f"{each.topic.name}: `sluice topics create {each.topic.name}` creates it")
        elif each.topic.partitions not in (0, len(each.partitions)):
            says = f"the spec says {counted(each.topic.partitions, 'partition')}, Kafka has {len(each.partitions):,}"
            click.echo(f"{each.topic.name}: {says}")


def _cells(plan: Plan, each: Listed) -> list[tuple[str, str]]:
    readers = ", ".join(_topics.readers(plan, each.topic)) or "nobody"
    if each.partitions is None:
        return [(each.topic.name, ""), (each.topic.kafka_name, ""), ("no", "yellow"), *([("", "")] * 5), (readers, "")]
    without = sum(part.leader is None for part in each.partitions)
    leaders = ", ".join(str(broker) for broker in sorted({part.leader for part in each.partitions if part.leader is not None}))
    replicas = min(len(part.replicas) for part in each.partitions)
    in_sync = min(len(part.in_sync) for part in each.partitions)
    return [
        (each.topic.name, ""),
        (each.topic.kafka_name, ""),
        ("yes", "green"),
        (f"{len(each.partitions):,}", ""),
        (", ".join(filter(None, [leaders, f"{without:,} without" if without else ""])), "red" if without else ""),
        (str(replicas), ""),
        (str(in_sync), "red" if in_sync < replicas else ""),
        ("unknown" if each.messages is None else f"{each.messages:,}", ""),
        (readers, ""),
    ]


def document(plan: Plan, each: Listed) -> dict[str, Any]:
    partitions = None if each.partitions is None else [_partition(part) for part in each.partitions]
    return {
        "topic": each.topic.name, "kafka_name": each.topic.kafka_name, "cluster": each.topic.cluster.name,
        "there": each.partitions is not None, "partitions": partitions, "spec_partitions": each.topic.partitions or None,
        "messages": each.messages, "trouble": each.trouble or None, "read_by": _topics.readers(plan, each.topic),
        "filled_by": _topics.feeders(plan, each.topic),
    }  # fmt: skip


def _partition(part: PartitionState) -> dict[str, Any]:
    return {
        "partition": part.number, "leader": part.leader, "replicas": part.replicas, "in_sync": part.in_sync,
        "start": part.start, "end": part.end,
    }  # fmt: skip
