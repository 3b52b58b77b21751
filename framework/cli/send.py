"""Sends messages as they are given."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.cli import _complete, _specs, _topics
from framework.errors import SluiceError

if TYPE_CHECKING:
    from framework.plan.model import Topic

_EACH = 10  # of more messages than these not each is shown


@click.command()
@click.argument("topic", shell_complete=_complete.topics)
@click.argument("value", metavar="JSON")
@click.option("--key", help="The message's key, written as the topic's key format says.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be given several times.")
@click.option("--partition", type=click.IntRange(min=0), help="Send to this one; default: by the key, else any.")
@click.option("--raw", is_flag=True, help="Send value and key as they are, even what can only become a bad row.")
@_specs.with_specs
def command(
    topic: str, value: str, key: str | None, headers: tuple[str, ...], partition: int | None, raw: bool,
    specs: Path, environment: str,
) -> None:  # fmt: skip
    """Send one message to TOPIC, a topic of the specs: JSON is its value, sent as it is, or any text where the topic is no
    `value: json`. With - each line of standard input is a message.

    A key is a whole number where the topic's keys are `long`, one JSON object where they are `json`, and text otherwise.
    Of standard input, lines before one that is refused are sent.

    Example: sluice send users '{"userid": "User_1", "gender": "OTHER"}'
    """
    header_bytes = tuple(_header(header) for header in headers)
    plan = _specs.plan(specs, environment)
    found = _topics.topic(plan, topic)
    key_bytes = None if key is None else _key(found, key, raw)
    if value != "-":
        refuse(found, value.encode("utf-8", "surrogateescape"), raw)
    from framework import generate
    from framework.engine import peek

    bounds = peek.bounds(found, plan.secrets)
    if partition is not None:
        _topics.refuse_partition(found, partition, bounds)
    lines = _Lines(found, raw) if value == "-" else [value.encode("utf-8", "surrogateescape")]
    made = (generate.Message(key_bytes, line, header_bytes, partition) for line in lines)
    arrived: list[tuple[int, int]] = []
    generate.send(found, plan.secrets, made, arrived=lambda *place: arrived.append(place))
    _tell(found, arrived)
    if isinstance(lines, _Lines) and lines.refused:
        raise lines.refused


class _Lines:
    """The lines of standard input, up to the first that is refused."""

    def __init__(self, topic: Topic, raw: bool) -> None:
        self.topic = topic
        self.raw = raw
        self.refused: SluiceError | None = None

    def __iter__(self) -> Iterator[bytes]:
        with suppress(KeyboardInterrupt):  # Ctrl-C ends what is typed; what was typed is sent
            for number, line in enumerate(sys.stdin.buffer, 1):
                value = line.removesuffix(b"\n")
                try:
                    refuse(self.topic, value, self.raw)
                except SluiceError as error:
                    sent = "line before it was" if number == 2 else f"{number - 1:,} lines before it were"
                    before = "nothing was sent" if number == 1 else f"the {sent} sent"
                    self.refused = SluiceError(error.code, f"line {number:,}: {error.message}; {before}", error.hint)
                    return
                yield value


def refuse(topic: Topic, value: bytes, raw: bool) -> None:
    """Raises where a value could only become a bad row."""
    from framework.engine.obvious import unlike

    reason = None if raw else unlike(topic.value, value)
    if reason:
        wants = "one JSON object" if topic.value == "json" else "UTF-8 text"
        message = f"`{topic.name}` takes {wants}, and the value {reason}"
        raise SluiceError("not-its-format", message, "--raw sends it all the same: it becomes a bad row")


def _key(topic: Topic, key: str, raw: bool) -> bytes:
    from framework.engine.obvious import unlike

    data = key.encode("utf-8", "surrogateescape")
    if topic.key_format == "long":
        with suppress(ValueError, struct.error):
            return struct.pack(">q", int(key))
        reason = "is no whole number of 8 bytes"
    else:
        reason = unlike(topic.key_format, data) or ""
    if reason and not raw:
        message = f"the keys of `{topic.name}` are {topic.key_format}, and the key {reason}"
        raise SluiceError("not-its-format", message, "--raw sends it all the same, as text")
    return data


def _header(header: str) -> tuple[str, bytes]:
    name, equals, value = header.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"`{header}` is no header: write name=value", param_hint="--header")
    return name, value.encode("utf-8", "surrogateescape")


def _tell(topic: Topic, arrived: list[tuple[int, int]]) -> None:
    """The place of each message, or of very many how they are spread."""
    if not arrived:
        click.echo(f"{topic.name}: nothing was sent")
    elif len(arrived) <= _EACH:
        for partition, offset in arrived:
            click.echo(f"{topic.name}: sent to {topic.kafka_name}, partition {partition}, offset {offset}")
    else:
        click.echo(f"{topic.name}: {len(arrived):,} messages sent to {topic.kafka_name}")
        for partition in sorted({partition for partition, _ in arrived}):
            offsets = [offset for each, offset in arrived if each == partition]
            click.echo(f"  partition {partition}: {len(offsets):,}, offsets {min(offsets)} to {max(offsets)}")
