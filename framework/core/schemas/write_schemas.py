"""The schemas with which a topic's keys and values are written: the newest of their subjects, or new ones from its columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from framework.base.errors import NoSubject, SluiceError
from framework.base.patience import REGISTRY_NEEDED
from framework.messages import formats
from framework.messages.encoding import json_values
from framework.messages.encoding.schema_writer import Writer
from framework.messages.registry.client import Registry
from framework.messages.schemas.versions import Unsupported
from framework.plan import MessagePart, PlannedSubject, SecretStore, Topic
from framework.plan.schema import Version


@dataclass(frozen=True, kw_only=True)
class WriteSchema:
    """A schema that keys or values are written with. `new`: it is still to be registered, as the subject's first one."""

    of: MessagePart
    subject: str
    version: Version
    writer: Writer
    new: bool = False


def current_schemas(topic: Topic, secrets: SecretStore) -> tuple[WriteSchema, ...]:
    """The newest schemas of keys and values that use the registry. Raises if it does not answer."""
    registry = Registry(topic.cluster, secrets, REGISTRY_NEEDED)
    return tuple(_current(topic, registered, registry) for registered in topic.registered)


def _current(topic: Topic, registered: PlannedSubject, registry: Registry) -> WriteSchema:
    try:
        subject = registry.subject(registered.subject)
    except NoSubject as error:
        if registered.write_version is None or registered.numbers:
            hint = f"{error.hint}; the topic's `columns` make none: their values would come back with another type"
            raise SluiceError(error.code, error.message, hint) from None
        return WriteSchema(
            of=registered.of,
            subject=registered.subject,
            version=registered.write_version,
            writer=_writer(registered.write_version),
            new=True,
        )
    if subject.trouble:
        raise subject.trouble
    version = subject.versions[-1]
    names = registered.names if registered.write_version == version else ()
    return WriteSchema(of=registered.of, subject=registered.subject, version=version, writer=_writer(version, names))


def _writer(version: Version, names: tuple[tuple[tuple[str, ...], str], ...] = ()) -> Writer:
    try:
        return formats.writer(version.id, version.schema, names)
    except Unsupported as error:
        raise SluiceError("unsupported-schema", f"nothing can be written with {version}: {error.message}", error.hint) from None


def register_new(topic: Topic, secrets: SecretStore, schemas: tuple[WriteSchema, ...]) -> Iterator[WriteSchema]:
    """Registers the new schemas; yields all schemas with the registry's ids."""
    registry = Registry(topic.cluster, secrets, REGISTRY_NEEDED)
    for write_schema in schemas:
        if write_schema.new:
            schema = write_schema.version.schema
            version = Version(registry.register(write_schema.subject, schema.kind, schema.text), schema, 1)
            yield replace(write_schema, version=version, writer=replace(write_schema.writer, id=version.id))
        else:
            yield write_schema


def encoded(schema: WriteSchema, data: bytes) -> bytes:
    """Encodes a message given as JSON or, for a single value, as text or a number. A ValueError says what does not fit."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    if schema.writer.single and schema.of == "key":
        with suppress(ValueError):
            return schema.writer.whole(text)
    try:
        value = json_values.loads(text)
    except (ValueError, RecursionError):
        if not schema.writer.single:
            raise ValueError("it is not one JSON object, or names a field twice") from None
        value = text
    return schema.writer.whole(value)
