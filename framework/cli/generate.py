"""Makes messages and sends them to Kafka."""

from __future__ import annotations

import itertools
import re
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import click

from framework.cli import _specs
from framework.errors import SluiceError
from framework.plan.model import Generator, Plan, Topic
from framework.spec.scalars import Duration, Rate


class _Scalar(click.ParamType[Any]):
    """An option that is read as a spec's scalar of the same kind is."""

    def __init__(self, annotated: Any) -> None:
        self.scalar = typing.get_args(annotated)[1]
        self.name = self.scalar.noun.split()[-1]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not re.search(self.scalar.pattern, value):
            self.fail(f"`{value}` is not {self.scalar.noun}: write {self.scalar.rule}", param, ctx)
        return self.scalar.read(value)


@click.command()
@click.argument("topic")
@click.option("--rate", type=_Scalar(Rate), help="Messages per time, such as 10/s; default: the topic's.")
@click.option("--for", "seconds", type=_Scalar(Duration), help="Only so long, such as 1m.")
@click.option("--count", type=click.IntRange(min=1), help="Only so many; without --rate and --for as fast as Kafka takes them.")
@click.option("--seed", type=int, help="Of equal seeds come equal messages, but for their times.")
@_specs.with_specs
def command(
    topic: str, rate: float | None, seconds: int | None, count: int | None, seed: int | None, specs: Path, environment: str
) -> None:
    """Send messages to TOPIC, made as its `generate:` says, until Ctrl-C.

    Creates the topic if Kafka does not have it.

    Example: sluice generate stock_trades --rate 10/s --for 1m
    """
    from framework import generate
    from framework.engine.loop import until_interrupted

    plan = _specs.plan(specs, environment)
    chosen, generator = _generated(plan, topic)
    paced = rate is not None or seconds is not None or count is None
    generator = replace(generator, rate=rate or generator.rate)
    if seconds is not None:
        within = max(1, round(seconds * generator.rate))
        count = min(count or within, within)
    if generate.ensure_topic(chosen, plan.secrets):
        click.echo(f"{topic}: created {chosen.kafka_name} in Kafka, partitions: {chosen.partitions}")
    start = datetime.now(timezone.utc)
    if not paced and count:  # as if they had come at the topic's rate until now
        start -= timedelta(seconds=count / generator.rate)
    made = itertools.islice(generate.messages(replace(chosen, generator=generator), seed, start), count)
    with until_interrupted() as stop, _progress(topic, count) as tell:
        sent = generate.send(chosen, plan.secrets, made, generator.rate if paced else None, stop.is_set, tell)
    click.echo(f"{topic}: {sent.messages:,} messages sent in {sent.seconds:.1f} s, {sent.rate:,.1f}/s")


def _generated(plan: Plan, name: str) -> tuple[Topic, Generator]:
    found = next((topic for topic in plan.topics if topic.name == name), None)
    if found is None:
        from framework.sql.faults import closest

        known = [topic.name for topic in plan.topics]
        raise SluiceError("unknown-topic", f"there is no topic `{name}`", closest(name, known, f"there is {', '.join(known)}"))
    if found.generator is None:
        raise SluiceError(
            "no-generate",
            f"the topic `{name}` does not say how its messages are made",
            f"add `generate:` with a rate and columns to the topic at {found.where}",
        )
    return found, found.generator


@contextmanager
def _progress(topic: str, count: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere; gives what is told the number of messages so far."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(topic, total=count)
        yield lambda sent: bar.update(task, completed=sent)
