"""Decodes a topic's messages for people: by the topic's formats and, where these use a registry, by the schema that each message names.

Limit: while the registry does not answer, messages whose schemas were not loaded before are shown as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from framework.engine.kafka.newest_messages import Message
from framework.engine.messages import plain_checks
from framework.engine.messages.plain_checks import Decoded
from framework.errors import NoSubject, SluiceError
from framework.formats.confluent_frame import id_of
from framework.formats.kinds import of_kind
from framework.formats.versions import Unsupported
from framework.model import SecretStore, Topic
from framework.model.schemas import Version
from framework.patience import REGISTRY
from framework.registry.client import Registry

Of = Literal["key", "value"]


@dataclass(frozen=True)
class Read:
    """A key or value: its contents, the schema that it names, and the code and the reason that make it a bad row."""

    decoded: Decoded
    version: Version | None = None
    bad_reason: tuple[str, str] | None = None


@dataclass(frozen=True)
class DecodedMessage:
    """A message's key and value. `bad_reason`: the code and the reason by which every batch makes a bad row of it; None where only a
    batch can say."""

    key: Read | None
    value: Read | None
    bad_reason: tuple[str, str] | None


@dataclass(kw_only=True)
class Reader:
    """A reader of one topic's messages. `trouble`: the registry does not answer."""

    topic: Topic
    secrets: SecretStore
    trouble: SluiceError | None = None
    _registry: Registry | None = None
    _versions: dict[Of, dict[int, Version]] = field(default_factory=dict)
    _decoders: dict[int, Callable[[bytes], str] | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Loads the subjects once: they have the version of each id."""
        self._registry = Registry(self.topic.cluster, self.secrets, REGISTRY) if self.topic.registered else None
        for each in self.topic.registered:
            assert self._registry is not None
            try:
                subject = self._registry.subject(each.subject)
            except SluiceError as error:
                self.trouble = self.trouble or (None if isinstance(error, NoSubject) else error)
                continue
            self.trouble = self.trouble or subject.trouble
            self._versions[each.of] = {version.id: version for version in subject.versions}

    def read(self, of: Of, data: bytes) -> Read:
        if all(each.of != of for each in self.topic.registered):
            format_ = self.topic.value if of == "value" else self.topic.key_format
            reason = plain_checks.format_mismatch(format_, data)
            return Read(plain_checks.decoded(format_, data), None, (_code(of), f"the {of} {reason}") if reason else None)
        bytes_ = Decoded(f"0x{data.hex()}", None)
        id_ = id_of(data)
        if id_ is None:
            return Read(bytes_, None, (_code(of), f"the {of} does not begin with the id of a schema"))
        version = self._version(of, id_)
        if version is None:
            bad_reason = None if self.trouble else (_code(of, "unknown_schema"), f"the registry has no schema {id_}")
            return Read(bytes_, None, bad_reason)
        decode = self._decoder(version)
        if isinstance(decode, str):
            return Read(bytes_, version, (_code(of, "wrong_schema"), f"the {of}'s {version} cannot be read: {decode}"))
        try:
            text = decode(data[5:])
        except ValueError as error:
            return Read(bytes_, version, (_code(of), f"the {of} is not what schema {id_} says: {error}"))
        return Read(Decoded(json.loads(text) if text.startswith('"') else text, text), version)

    def decode_message(self, message: Message) -> DecodedMessage:
        key = None if message.key is None else self.read("key", message.key)
        value = None if message.value is None else self.read("value", message.value)
        bad_reason = plain_checks.plain_bad_reason(
            self.topic, message, value.bad_reason if value else None, key.bad_reason if key else None
        )
        return DecodedMessage(key, value, bad_reason)

    def _version(self, of: Of, id_: int) -> Version | None:
        versions = self._versions.setdefault(of, {})
        if id_ not in versions and self._registry and not self.trouble:
            try:
                schema = self._registry.schema(id_)
            except SluiceError as error:
                self.trouble = error
                return None
            if schema is not None:
                versions[id_] = Version(id_, schema)
        return versions.get(id_)

    def _decoder(self, version: Version) -> Callable[[bytes], str] | str:
        if version.id not in self._decoders:
            try:
                self._decoders[version.id] = of_kind(version.schema.kind).decoder(version.schema)
            except Unsupported as error:
                self._decoders[version.id] = error.message
        return self._decoders[version.id]


def _code(of: Of, code: str = "undecodable") -> str:
    return code if of == "value" else f"{code}_key"
