"""`sluice peek`: messages of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from framework.host.cli import _complete, _specs, _topics
from framework.host.cli._interrupted import until_interrupted

if TYPE_CHECKING:
    from framework.core.kafka.newest_messages import KafkaMessage
    from framework.core.kafka.read_messages import OffsetRanges
    from framework.core.schemas.decode import MessageReader
    from framework.plan import Plan, Topic

SECTION, ORDER = "see", 6
ALSO_CALLED = ("consume", "tail", "cat")

_DEFAULT_COUNT = 10


@click.command()
@click.argument("topic", shell_complete=_complete.all_topics)
@click.option("--count", type=click.IntRange(1, 10_000), help=f"How many, at most; {_DEFAULT_COUNT} if not said.")
@click.option("--from", "start", type=click.Choice(["earliest", "latest"]), default="latest", show_default=True,
              help="Show the topic's first or last messages.")  # fmt: skip
@click.option("--partition", type=click.IntRange(min=0), help="Show only messages of this partition.")
@click.option("--follow", is_flag=True, help="Keep showing new messages until Ctrl-C; with `--from earliest`, all messages.")
@click.option("--json", "as_json", is_flag=True, help="Print each message as one line of JSON only.")
@_specs.with_specs
def command(
    topic: str, count: int | None, start: Literal["earliest", "latest"], partition: int | None, follow: bool, as_json: bool,
    specs: Path, environment: str,
) -> None:  # fmt: skip
    """Show a topic's messages.

    By default the last ones: place, time, key, headers and value, decoded as the topic's spec says.
    TOPIC is a topic of the specs, by its own name or by Kafka's, or one that `also` of a pipeline fills.

    Keys and values whose schemas are in a registry are shown as JSON, each decoded with the schema that it names.

    Obvious bad rows, such as a value that is not JSON, are marked; `sluice preview` finds all of them.
    Reads without a consumer group: nothing in Kafka changes.

    Example: sluice peek stock_trades --count 3
    """
    if follow and start == "earliest" and count is not None:
        raise click.UsageError("--count has no effect here: --follow --from earliest shows all messages")
    plan = _specs.plan(specs, environment)
    chosen = _topics.topic(plan, topic, filled=True)
    from framework.core.kafka import read_messages
    from framework.core.schemas.decode import MessageReader

    offset_ranges = _within(chosen, read_messages.bounds(chosen, plan.secrets), partition)
    all_of_them = follow and start == "earliest"
    sample = [] if all_of_them else read_messages.read_some(chosen, plan.secrets, offset_ranges, count or _DEFAULT_COUNT, start)
    reader = MessageReader(topic=_as_read(plan, chosen), secrets=plan.secrets)
    if not as_json:
        _specs.echo(_head(plan, chosen, offset_ranges, len(sample), start, partition, all_of_them))
    if reader.trouble:
        click.echo(f"{reader.trouble.message}: values are shown as bytes, unless their schema is cached", err=True)
    _print(reader, sample, as_json)
    if follow:
        if not as_json:
            click.echo("waiting for more, Ctrl-C ends", err=True)
        next_offsets = {number: start_offset if all_of_them else end for number, (start_offset, end) in offset_ranges.items()}
        with until_interrupted() as stop:
            for message in read_messages.follow(chosen, plan.secrets, next_offsets, stop.is_set):
                _print(reader, [message], as_json)


def _within(topic: Topic, bounds: OffsetRanges, partition: int | None) -> OffsetRanges:
    if partition is None:
        return bounds
    _topics.refuse_partition(topic, partition, bounds)
    return {partition: bounds[partition]}


def _head(
    plan: Plan, topic: Topic, offset_ranges: OffsetRanges, sampled: int, start: str, partition: int | None, all_of_them: bool
) -> str:
    place = topic.kafka_name if partition is None else f"partition {partition} of {topic.kafka_name}"
    message_count = sum(end - start_offset for start_offset, end in offset_ranges.values())
    is_filled = topic in _topics.filled_topics(plan)
    if all_of_them:
        head = f"{topic.name}: all messages of {place}"
    elif not sampled:
        ever = any(end for _, end in offset_ranges.values())
        return f"{topic.name}: there are no messages in {place}{' any more' if ever else ' yet'}"
    else:
        which = "last" if start == "latest" else "first"
        sample_text = f"the {which} message" if sampled == 1 else f"the {which} {sampled:,} messages"
        is_counted = message_count > sampled and not is_filled  # ends of transactions have offsets, too
        head = f"{topic.name}: {sample_text} of {place}" + (f", which has {message_count:,}" if is_counted else "")
    if is_filled:
        return f"{head}\nthey are the rows that `also` of {', '.join(_topics.feeders(plan, topic))} sends"
    readers = _topics.readers(plan, topic)
    advice = f"; `sluice preview {readers[0]}` shows the rows that a run would make from them" if readers else ""
    return f"{head}\nonly obvious bad rows are marked{advice}"


def _print(reader: MessageReader, messages: Sequence[KafkaMessage], as_json: bool) -> None:
    from framework.host.cli._messages import document, show

    for message in messages:
        if as_json:
            click.echo(document(reader, message))
        else:
            click.echo()
            show(reader, message)


def _as_read(plan: Plan, topic: Topic) -> Topic:
    """The topic as its pipelines read it, if none makes bad rows from messages without a value."""
    read_topics = [read_topic for pipeline in plan.pipelines for read_topic in pipeline.topics if read_topic.name == topic.name]
    handled = read_topics and all(
        fault.code != "null_value" for read_topic in read_topics for fault in read_topic.decoding.faults
    )
    return read_topics[0] if handled else topic
