"""`sluice send`: send given messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import NoSubject, SluiceError
from framework.host.cli import _complete, _specs, _topics

if TYPE_CHECKING:
    from framework.core.schemas.write_schemas import WriteSchema
    from framework.plan import SecretStore, Topic

SECTION, ORDER = "try and tidy", 2
ALSO_CALLED = ("produce", "publish")

_MAX_LISTED = 10  # messages; more are summed up by partition


@click.command()
@click.argument("topic", shell_complete=_complete.topics)
@click.argument("value", metavar="JSON", required=False)
@click.option("--key", help="The message's key, written as the topic's key format says.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be given several times.")
@click.option("--partition", type=click.IntRange(min=0), help="Send to this partition; default: by the key, or any.")
@click.option("--tombstone", is_flag=True, help="Send no value: with `deletes: tombstones` it deletes the row of the key.")
@click.option("--raw", is_flag=True, help="Send value and key unchanged, even if they can only become a bad row.")
@_specs.with_specs
def command(
    topic: str, value: str | None, key: str | None, headers: tuple[str, ...], partition: int | None, tombstone: bool, raw: bool,
    specs: Path, environment: str,
) -> None:  # fmt: skip
    """Send one message.

    TOPIC is a topic of the specs. JSON is the value, sent unchanged, or any text if the topic is not `value: json`. With -
    each line of standard input is a message.

    If the schemas are in a registry, the JSON is encoded with the newest one: dates and times are ISO text or the schema's own
    numbers, decimals numbers or text, bytes base64, and a value of a union has the type that it looks like, or names it:
    {"long": 5}.

    A key is a whole number if the topic's keys are `long`, one JSON object if they are `json` or their schema is a record,
    and text otherwise. Lines of standard input before a refused one are sent.

    Example: sluice send users '{"userid": "User_1", "gender": "OTHER"}'
    """
    if tombstone == (value is not None):
        raise click.UsageError("a tombstone has no value" if tombstone else "give JSON, - for standard input, or --tombstone")
    if tombstone and key is None:
        raise click.UsageError("a tombstone needs --key: the key of the row to delete")
    header_bytes = tuple(_header(header) for header in headers)
    plan = _specs.plan(specs, environment)
    chosen = _topics.topic(plan, topic)
    written = _Written(chosen, {} if raw else _schemas(chosen, plan.secrets, key is not None), raw)
    key_bytes = None if key is None else written.key(key)
    value_bytes = None if value is None or value == "-" else written.value(value.encode("utf-8", "surrogateescape"))
    from framework.core.kafka import read_messages
    from framework.operations.send import generate

    bounds = read_messages.bounds(chosen, plan.secrets)
    if partition is not None:
        _topics.refuse_partition(chosen, partition, bounds)
    lines = _Lines(written) if value == "-" else [value_bytes]
    messages = (generate.GeneratedMessage(key_bytes, line, header_bytes, partition) for line in lines)
    arrived: list[tuple[int, int]] = []
    generate.send(chosen, plan.secrets, messages, arrived=lambda *place: arrived.append(place))
    _tell(chosen, arrived)
    if isinstance(lines, _Lines) and lines.refused:
        raise lines.refused


class _Lines:
    """The lines of standard input, up to the first refused one."""

    def __init__(self, written: _Written) -> None:
        self.written = written
        self.refused: SluiceError | None = None

    def __iter__(self) -> Iterator[bytes]:
        with suppress(KeyboardInterrupt):  # Ctrl-C ends the input; complete lines are sent
            for number, line in enumerate(sys.stdin.buffer, 1):
                try:
                    value = self.written.value(line.removesuffix(b"\n"))
                except SluiceError as error:
                    sent = "line before it was" if number == 2 else f"{number - 1:,} lines before it were"
                    outcome = "nothing was sent" if number == 1 else f"the {sent} sent"
                    self.refused = SluiceError(error.code, f"line {number:,}: {error.message}; {outcome}", error.hint)
                    return
                yield value


@dataclass(frozen=True)
class _Written:
    """The encoding of values and keys as bytes; raises for one that could only become a bad row."""

    topic: Topic
    schemas: Mapping[str, WriteSchema]
    raw: bool

    def value(self, value_bytes: bytes) -> bytes:
        from framework.messages.formats import RegisteredSchema, find

        format_ = find("value", self.topic.value)
        if "value" in self.schemas:
            return self.by_schema("value", value_bytes)
        if self.raw or format_ is None or isinstance(format_, RegisteredSchema) or format_.wrong is None:
            return value_bytes
        reason = format_.wrong(value_bytes)
        if reason:
            message = f"`{self.topic.name}` takes {format_.noun}, and the value {reason}"
            raise SluiceError("not-its-format", message, "--raw sends it anyway, and it becomes a bad row")
        return value_bytes

    def key(self, key_text: str) -> bytes:
        from framework.messages.formats import OneColumn, RegisteredSchema, find

        data = key_text.encode("utf-8", "surrogateescape")
        if "key" in self.schemas:
            return self.by_schema("key", data)
        format_ = find("key", self.topic.key_format)
        if format_ is None or isinstance(format_, RegisteredSchema):
            return data
        try:
            encoded = format_.encode(key_text) if isinstance(format_, OneColumn) else data
            reason = format_.wrong(encoded) if format_.wrong else None
        except ValueError as error:
            encoded, reason = data, str(error)
        if reason and not self.raw:
            message = f"the keys of `{self.topic.name}` are {self.topic.key_format}, and the key {reason}"
            raise SluiceError("not-its-format", message, "--raw sends it anyway, as text")
        return encoded

    def by_schema(self, part: str, json_text: bytes) -> bytes:
        from framework.core.schemas.write_schemas import encoded

        try:
            return encoded(self.schemas[part], json_text)
        except ValueError as error:
            version, subject = self.schemas[part].version, self.schemas[part].subject
            message = f"the {part} does not fit {version} of `{subject}`: {error}"
            raise SluiceError("not-its-format", message, "correct it; --raw sends the bytes as they are") from None


def _schemas(topic: Topic, secrets: SecretStore, keyed: bool) -> Mapping[str, WriteSchema]:
    from framework.core.schemas.write_schemas import current_schemas

    schemas = current_schemas(topic, secrets)
    for schema in schemas:
        if schema.new and (keyed or schema.of == "value"):
            hint = (
                f"`sluice generate {topic.name}` registers one made from the topic's columns; --raw sends the bytes as they are"
            )
            raise NoSubject("no-subject", f"the registry has no schema for the subject `{schema.subject}`", hint)
    return {schema.of: schema for schema in schemas}


def _header(header: str) -> tuple[str, bytes]:
    name, equals, value = header.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"`{header}` is no header: write name=value", param_hint="--header")
    return name, value.encode("utf-8", "surrogateescape")


def _tell(topic: Topic, arrived: list[tuple[int, int]]) -> None:
    """Print the place of each message, or for many the offsets in each partition."""
    if not arrived:
        click.echo(f"{topic.name}: nothing was sent")
    elif len(arrived) <= _MAX_LISTED:
        for partition, offset in arrived:
            click.echo(f"{topic.name}: sent to {topic.kafka_name}, partition {partition}, offset {offset}")
    else:
        click.echo(f"{topic.name}: {len(arrived):,} messages sent to {topic.kafka_name}")
        for partition in sorted({partition for partition, _ in arrived}):
            offsets = [offset for number, offset in arrived if number == partition]
            click.echo(f"  partition {partition}: {len(offsets):,}, offsets {min(offsets)} to {max(offsets)}")
