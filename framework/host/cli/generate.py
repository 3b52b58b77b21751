"""`sluice generate`: send generated messages to Kafka."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.amounts import counted
from framework.base.errors import SluiceError
from framework.host.cli import _complete, _specs, _topics
from framework.host.cli._interrupted import until_interrupted
from framework.host.cli._scalar import ScalarParameter

if TYPE_CHECKING:
    from framework.plan import Generator, Topic

SECTION, ORDER = "try and tidy", 1


@click.command()
@click.argument("topic", shell_complete=_complete.topics)
@click.option("--rate", type=ScalarParameter("Rate"), help="Messages per time, such as 10/s; default: the topic's.")
@click.option("--for", "seconds", type=ScalarParameter("Duration"), help="Stop after this time, such as 1m.")
@click.option(
    "--count", type=click.IntRange(min=1), help="Stop after this many; without --rate and --for as fast as Kafka accepts them."
)
@click.option("--seed", type=int, help="The same seed gives the same messages, apart from timestamps.")
@_specs.with_specs
def command(
    topic: str, rate: float | None, seconds: int | None, count: int | None, seed: int | None, specs: Path, environment: str
) -> None:
    """Send generated messages to a topic, as its `generate:` says.

    Runs until Ctrl-C, unless --for or --count ends it.

    Creates the topic if Kafka does not have it. If its schemas are in a registry, messages are written with the newest one; for
    a subject without a schema, one is registered, made from the topic's `columns`.

    Example: sluice generate stock_trades --rate 10/s --for 1m
    """
    from framework.core.schemas.write_schemas import current_schemas, register_new
    from framework.host.cli._progress import bar
    from framework.operations.send import generate

    plan = _specs.plan(specs, environment)
    chosen = _topics.topic(plan, topic)
    generator = _generator(chosen)
    paced = rate is not None or seconds is not None or count is None
    generator = replace(generator, rate=rate or generator.rate)
    if seconds is not None:
        count_in_time = max(1, round(seconds * generator.rate))
        count = min(count or count_in_time, count_in_time)
    write_schemas = current_schemas(chosen, plan.secrets)
    generate.refuse(chosen, {schema.of: schema.writer for schema in write_schemas})
    if generate.ensure_topic(chosen, plan.secrets):
        click.echo(f"{chosen.name}: created {chosen.kafka_name} in Kafka, {counted(chosen.partitions, 'partition')}")
    schemas = tuple(register_new(chosen, plan.secrets, write_schemas))
    for write_schema, schema in zip(write_schemas, schemas, strict=True):
        if write_schema.new:
            click.echo(f"{chosen.name}: registered the schema of {schema.subject}, id {schema.version.id}")
    writers = {schema.of: schema.writer for schema in schemas}
    start = datetime.now(timezone.utc)
    if not paced and count:  # so that the topic's rate ends them now
        start -= timedelta(seconds=count / generator.rate)
    messages = itertools.islice(generate.messages(replace(chosen, generator=generator), seed, start, writers), count)
    with until_interrupted() as stop, bar(chosen.name, "messages", count) as progress:
        sent = generate.send(chosen, plan.secrets, messages, generator.rate if paced else None, stop.is_set, progress.update)
    click.echo(f"{chosen.name}: {sent.messages:,} messages sent in {sent.seconds:.1f} s, {sent.rate:,.1f}/s")


def _generator(topic: Topic) -> Generator:
    if topic.generator is None:
        raise SluiceError(
            "no-generate",
            f"the topic `{topic.name}` has no `generate:`",
            f"add `generate:` with a rate and columns to the topic at {topic.where}",
        )
    return topic.generator
