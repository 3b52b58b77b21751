"""`sluice topics`: list the topics of the specs as Kafka has them, create and delete them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from framework.base.amounts import counted
from framework.base.errors import SluiceError
from framework.host.cli import _complete, _specs, _topic_table, _topics

if TYPE_CHECKING:
    from framework.plan import Plan, Topic

SECTION, ORDER = "see", 7


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
@click.pass_context
def command(ctx: click.Context, as_json: bool, specs: Path, environment: str) -> None:
    """List the topics, create some, or delete some.

    For each topic of the specs, and each that `also` fills: whether Kafka has it, partitions, the brokers that lead them, replicas,
    the lowest number of in-sync replicas of a partition, messages, and the pipelines that read it and that fill it.

    Messages are counted by offsets: a compacted or transactional topic has fewer messages than offsets.

    Example: sluice topics --json
    """
    if ctx.invoked_subcommand:
        options = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
        if options:
            option = {"as_json": "json", "environment": "env"}.get(options[0], options[0])
            raise click.UsageError(f"write --{option} after `{ctx.invoked_subcommand}`, if it takes it")
        return
    plan = _specs.plan_without_registries(specs, environment)
    from framework.core.kafka.topics import listed

    all_topics = (*plan.topics, *_topics.filled_topics(plan))
    listings = [
        listing
        for cluster in plan.clusters
        for listing in listed(cluster, plan.secrets, [topic for topic in all_topics if topic.cluster == cluster])
    ]
    if as_json:
        documents = [_topic_table.document(plan, listing) for listing in listings]
        click.echo(json.dumps({"environment": environment, "topics": documents}, indent=2, ensure_ascii=False))
    elif listings:
        _topic_table.show(plan, listings)
    else:
        click.echo("there are no topics in the specs")


@command.command()
@click.argument("names", nargs=-1, required=True, shell_complete=_complete.all_topics)
@_specs.with_specs
def create(names: tuple[str, ...], specs: Path, environment: str) -> None:
    """Create topics of the specs in Kafka.

    Each of NAMES gets the `partitions` of its spec, and the cluster's default number of replicas. A topic that only `also` names gets
    the cluster's default number of partitions.

    Exit status: 0 the topics exist with these partitions, 1 one has another number of them or could not be created, 2 wrong usage.

    Example: sluice topics create stock_trades sensor_data
    """
    plan = _specs.plan(specs, environment)
    topics = [_topics.topic(plan, name, filled=True) for name in dict.fromkeys(names)]
    errors: list[SluiceError] = []
    for topic in topics:
        try:
            _create(plan, topic)
        except SluiceError as error:
            errors.append(error)
    _raise_all(errors)


@command.command()
@click.argument("names", nargs=-1, required=True, shell_complete=_complete.all_topics)
@click.option("--force", is_flag=True, help="Delete topics that pipelines of the specs read or fill, too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_specs
def delete(names: tuple[str, ...], force: bool, yes: bool, specs: Path, environment: str) -> None:
    """Delete topics of the specs in Kafka, with their messages.

    Shows first how many messages go, and how many of them each pipeline that reads a topic has not loaded. Tables stay. A topic that
    a pipeline of the specs reads, or fills by `also`, needs --force. Nothing is deleted if one of NAMES is refused.

    Exit status: 0 Kafka has none of these topics, 1 one is refused or could not be deleted, or the answer was no, 2 wrong usage.

    Example: sluice topics delete stock_trades --force
    """
    from framework.host.cli import _topic_deletion
    from framework.operations.drop import drop

    plan = _specs.plan(specs, environment)
    deletions, missing_topics = _topic_deletion.find(plan, names)
    refusals = [refusal for deletion in deletions if not force and (refusal := deletion.refusal())]
    _raise_all(refusals)
    for topic in missing_topics:
        click.echo(f"{topic.name}: there is no {topic.kafka_name} in Kafka")
    for line in (line for deletion in deletions for line in deletion.lines()):
        _specs.echo(f"  {line}")
    if deletions and not yes:
        click.confirm(f"Delete {'this topic' if len(deletions) == 1 else f'these {len(deletions):,} topics'}?", abort=True)
    for deletion in deletions:
        drop.delete_topic(deletion.topic, plan.secrets)
        click.echo(f"{deletion.topic.name}: deleted {deletion.topic.kafka_name} in Kafka")


def _raise_all(errors: list[SluiceError]) -> None:
    """Print the errors but the last, and raise that."""
    for problem in errors[:-1]:
        _specs.echo(str(problem), err=True)
    if errors:
        raise errors[-1]


def _create(plan: Plan, topic: Topic) -> None:
    from framework.core.kafka.topics import listed
    from framework.operations.send.generate import ensure_topic

    created = ensure_topic(topic, plan.secrets)
    (kafka_topic,) = listed(topic.cluster, plan.secrets, [topic])
    count = len(kafka_topic.partitions or ())
    state = f"created {topic.kafka_name} in Kafka" if created else f"{topic.kafka_name} exists already"
    click.echo(f"{topic.name}: {state}, {counted(count, 'partition')}")
    if not created and topic.partitions and count != topic.partitions:
        raise _differs(topic, count)


def _differs(topic: Topic, count: int) -> SluiceError:
    message = f"the spec says {counted(topic.partitions, 'partition')}, Kafka has {count:,}"
    if count < topic.partitions:
        hint = "keep it if you can: with more partitions, keys go to other partitions than before"
    else:
        hint = "Kafka cannot remove partitions"
    return SluiceError("partitions-differ", message, f"{hint}; or write `partitions: {count}` at {topic.where}")
