"""`sluice topics`: list the topics of the specs as Kafka has them, and create them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from framework.amounts import counted
from framework.cli import _complete, _specs, _topics
from framework.errors import SluiceError

if TYPE_CHECKING:
    from framework.engine.kafka.topics import Listed, PartitionState
    from framework.model import Plan, Topic

SECTION, ORDER = "see", 7

_COLUMNS = ("topic", "in Kafka", "there", "partitions", "leaders", "replicas", "in sync", "messages", "read by")
_NUMBERS = ("partitions", "replicas", "in sync", "messages")


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
@click.pass_context
def command(ctx: click.Context, as_json: bool, specs: Path, environment: str) -> None:
    """List the topics, or create one.

    For each topic of the specs: whether Kafka has it, partitions, the brokers that lead them, replicas, the lowest number of
    in-sync replicas of a partition, messages, and the pipelines that read it.

    Messages are counted by offsets: a compacted or transactional topic has fewer messages than offsets.

    Example: sluice topics --json
    """
    if ctx.invoked_subcommand:
        given = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if given:
            option = {"as_json": "json", "environment": "env"}.get(given[0], given[0])
            raise click.UsageError(f"write --{option} after `{ctx.invoked_subcommand}`, if it takes it")
        return
    plan = _specs.plan(specs, environment)
    from framework.engine.kafka.topics import listed

    topics = [
        each
        for cluster in plan.clusters
        for each in listed(cluster, plan.secrets, [topic for topic in plan.topics if topic.cluster == cluster])
    ]
    if as_json:
        documents = [_document(plan, each) for each in topics]
        click.echo(json.dumps({"environment": environment, "topics": documents}, indent=2, ensure_ascii=False))
    elif topics:
        _print(plan, topics)
    else:
        click.echo("there are no topics in the specs")


@command.command()
@click.argument("name", shell_complete=_complete.topics)
@_specs.with_specs
def create(name: str, specs: Path, environment: str) -> None:
    """Create a topic of the specs in Kafka.

    NAME gets the `partitions` of its spec, and the cluster's default number of replicas.

    Exit status: 0 the topic exists with these partitions, 1 it has another number of them or could not be created, 2 wrong usage.

    Example: sluice topics create stock_trades
    """
    plan = _specs.plan(specs, environment)
    topic = _topics.topic(plan, name)
    from framework.engine.kafka.topics import listed
    from framework.generate import ensure_topic

    if ensure_topic(topic, plan.secrets):
        click.echo(f"{topic.name}: created {topic.kafka_name} in Kafka, {counted(topic.partitions, 'partition')}")
        return
    (kafka_topic,) = listed(topic.cluster, plan.secrets, [topic])
    has = len(kafka_topic.partitions or ())
    click.echo(f"{topic.name}: {topic.kafka_name} exists already, {counted(has, 'partition')}")
    if has != topic.partitions:
        raise _differs(topic, has)


def _differs(topic: Topic, has: int) -> SluiceError:
    message = f"the spec says {counted(topic.partitions, 'partition')}, Kafka has {has:,}"
    if has < topic.partitions:
        hint = "keep it if you can: with more partitions, keys go to other partitions than before"
    else:
        hint = "Kafka cannot remove partitions"
    return SluiceError("partitions-differ", message, f"{hint}; or write `partitions: {has}` at {topic.where}")


def _print(plan: Plan, topics: list[Listed]) -> None:
    rows = [[(name, "") for name in _COLUMNS], *(_cells(plan, each) for each in topics)]
    widths = [max(len(row[at][0]) for row in rows) for at in range(len(_COLUMNS))]
    for row in rows:
        cells = []
        for name, width, (text, colour) in zip(_COLUMNS, widths, row, strict=True):
            padded = text.rjust(width) if name in _NUMBERS else text.ljust(width)
            cells.append(click.style(padded, fg=colour) if colour else padded)
        click.echo("  ".join(cells).rstrip())
    for each in topics:
        if each.trouble:
            click.echo(f"{each.topic.name}: messages are unknown: {each.trouble}")
        if each.partitions is None:
            _specs.echo(f"{each.topic.name}: `sluice topics create {each.topic.name}` creates it")
        elif len(each.partitions) != each.topic.partitions:
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


def _document(plan: Plan, each: Listed) -> dict[str, Any]:
    partitions = None if each.partitions is None else [_partition(part) for part in each.partitions]
    return {
        "topic": each.topic.name, "kafka_name": each.topic.kafka_name, "cluster": each.topic.cluster.name,
        "there": each.partitions is not None, "partitions": partitions, "spec_partitions": each.topic.partitions,
        "messages": each.messages, "trouble": each.trouble or None, "read_by": _topics.readers(plan, each.topic),
    }  # fmt: skip


def _partition(part: PartitionState) -> dict[str, Any]:
    return {
        "partition": part.number, "leader": part.leader, "replicas": part.replicas, "in_sync": part.in_sync,
        "start": part.start, "end": part.end,
    }  # fmt: skip
