"""`sluice drop`: delete a pipeline's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import NoTopic, SluiceError, visible
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.operations.drop.drop import Held
    from framework.plan import Pipeline, Plan, Topic

SECTION, ORDER = "try and tidy", 4
ALSO_CALLED = ("delete", "destroy", "rm")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--data", is_flag=True, help="Delete the files of the tables, too.")
@click.option("--topic", "with_topic", is_flag=True, help="Delete the topic in Kafka, with its messages.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_specs
def command(name: str, data: bool, with_topic: bool, yes: bool, specs: Path, environment: str) -> None:
    """Drop a pipeline's table, so that its next run starts over.

    Drops the table of pipeline NAME and its bad rows, after listing what is dropped. The next run creates them again and reads from
    `start_from` of its topics.

    Without --data the tables are only removed from the catalog, and their files stay. Refused for a table that Sluice did not
    create, or to which a batch is being written, and for a topic that another pipeline reads.

    Example: sluice drop flagged_stock_trades --data
    """
    from framework.base import amounts
    from framework.core.rules import journal
    from framework.operations.drop import drop, unpublish

    plan = _specs.plan_without_registries(specs, environment, name)
    pipeline = _specs.chosen(plan, [name])[0]
    topics = _topics(plan, pipeline) if with_topic else []
    tables = drop.of_pipeline(pipeline)
    publications = list(unpublish.of_pipeline(plan, pipeline))
    if not tables and not topics:
        if not journal.read(pipeline.journal_name).paused:
            journal.forget(pipeline.journal_name)
        click.echo(f"{name}: nothing to drop, {pipeline.table.identifier} does not exist")
        return
    for line in (
        *(publication.words for publication in publications),
        *(f"table {table.words}, {amounts.size(table.bytes)}" for table in tables),
        *(line for _, line in topics),
        *(
            f"stays: {path}, which {table.name} names and which is not in its folder"
            for table in tables
            for path in table.outside
        ),
        *_warnings(plan, pipeline, tables),
    ):
        click.echo(f"  {line}")
    if not yes:
        click.confirm("Drop this?" if data or not tables else "Drop this? The files stay.", abort=True)
    for publication in publications:  # while its files are there
        unpublish.end(plan, pipeline, publication)
        click.echo(f"{publication.catalog}.{publication.identifier}: no longer listed")
    for table in tables:
        file_count = drop.drop(table, data)
        message = (
            f"dropped; {amounts.counted(file_count, 'file')} in {table.folder}"
            if file_count
            else "dropped, and its files deleted"
        )
        unlisted_message = f"{message} that the table did not list stay"
        click.echo(f"{table.name}: {(unlisted_message if data else f'{message} stay') if file_count else message}")
    for topic, _ in topics:
        drop.delete_topic(topic, plan.secrets)
        click.echo(f"{topic.kafka_name}: deleted in Kafka")
    journal.forget(pipeline.journal_name)
    _specs.echo(f"`sluice run {name}` starts again{_start(pipeline)}")


def _topics(plan: Plan, pipeline: Pipeline) -> list[tuple[Topic, str]]:
    """The existing topics, each with a line about it."""
    from framework.base.amounts import counted
    from framework.core.kafka.cluster import Kafka
    from framework.operations.drop import drop

    if not pipeline.topics:
        raise SluiceError("no-topic", f"`{pipeline.name}` reads a table and no topic", "leave --topic out")
    for name, readers in drop.readers(plan, pipeline).items():
        if readers:
            message = f"the topic `{name}` is also read by {', '.join(f'`{reader}`' for reader in readers)}"
            raise SluiceError("topic-is-read", message, "leave --topic out, or delete these pipelines from the specs first")
    topics = []
    for topic in pipeline.topics:
        try:
            topic_state = Kafka(topic.cluster, plan.secrets).topic_state(topic)
        except NoTopic:
            continue
        messages = sum(end - topic_state.starts[partition] for partition, end in topic_state.ends.items())
        topics.append((topic, f"topic {topic.kafka_name} at {topic.cluster.bootstrap}: {counted(messages, 'message')}"))
    return topics


def _warnings(plan: Plan, pipeline: Pipeline, tables: Sequence[Held]) -> Iterator[str]:
    from framework.base import amounts
    from framework.core.rules import journal

    for table in tables:
        for name, count in table.diverged.items():
            commits = amounts.counted(count, "commit")
            yield f"the tag or branch `{visible(name)}` of others in {table.name} goes, with {commits} that main does not have"
    if any(table.forgotten for table in tables):
        yield "it keeps a hash of what `sluice forget` deleted; without it, messages of these persons that Kafka still has land again"
    for reader in plan.pipelines:
        if tables and pipeline.name in reader.made_of:
            yield f"`{reader.name}` reads this table, and fails until it exists again"
    if since := journal.read(pipeline.journal_name).paused:
        yield f"{pipeline.name} is paused since {since}; dropping it ends the pause"


def _start(pipeline: Pipeline) -> str:
    if not pipeline.topics:
        return ""
    from framework.plan.text import start

    starts = dict.fromkeys(map(start, pipeline.topics))
    return f" at `start_from: {', '.join(starts)}`"
