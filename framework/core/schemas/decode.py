"""Decodes a topic's messages for people: by the topic's formats and, where these use a registry, by the schema that each message names.

Limit: while the registry does not answer, messages whose schemas were not loaded before are shown as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from framework.base.errors import NoSubject, SluiceError
from framework.base.patience import REGISTRY
from framework.core.kafka.newest_messages import KafkaMessage
from framework.messages.encoding.confluent_frame import id_of
from framework.messages.encoding.json_text import Decoded, undecoded, utf8
from framework.messages.formats import RegisteredSchema, by_schema, find
from framework.messages.registry.client import Registry
from framework.messages.schemas.versions import Unsupported
from framework.plan import MessagePart, SecretStore, Topic
from framework.plan.schema import Version

BadReason = tuple[str, str]


@dataclass(frozen=True)
class DecodedPart:
    """A decoded key or value: its contents, the schema that it names, and the code and the reason that make it a bad row."""

    decoded: Decoded
    version: Version | None = None
    bad_reason: BadReason | None = None


@dataclass(frozen=True)
class DecodedMessage:
    """A message's key and value. `bad_reason`: the code and the reason by which every batch makes a bad row of it; None where only a
    batch can say."""

    key: DecodedPart | None
    value: DecodedPart | None
    bad_reason: BadReason | None


@dataclass(kw_only=True)
class MessageReader:
    """A reader of one topic's messages. `trouble`: the registry does not answer."""

    topic: Topic
    secrets: SecretStore
    trouble: SluiceError | None = None
    _registry: Registry | None = None
    _versions: dict[MessagePart, dict[int, Version]] = field(default_factory=dict)
    _decoders: dict[int, Callable[[bytes], str] | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Loads the topic's subjects once, with the version of each schema id."""
        self._registry = Registry(self.topic.cluster, self.secrets, REGISTRY) if self.topic.registered else None
        for registered in self.topic.registered:
            assert self._registry is not None
            try:
                subject = self._registry.subject(registered.subject)
            except SluiceError as error:
                self.trouble = self.trouble or (None if isinstance(error, NoSubject) else error)
                continue
            self.trouble = self.trouble or subject.trouble
            self._versions[registered.of] = {version.id: version for version in subject.versions}

    def read(self, part: MessagePart, data: bytes) -> DecodedPart:
        format_ = find(part, self.topic.value if part == "value" else self.topic.key_format)
        if format_ is None:
            return DecodedPart(undecoded(data))
        if not isinstance(format_, RegisteredSchema):
            reason = format_.wrong(data) if format_.wrong else None
            return DecodedPart(format_.decoded(data), None, (_code(part), f"the {part} {reason}") if reason else None)
        bytes_ = Decoded(f"0x{data.hex()}", None)
        id_ = id_of(data)
        if id_ is None:
            return DecodedPart(bytes_, None, (_code(part), f"the {part} does not begin with the id of a schema"))
        version = self._version(part, id_)
        if version is None:
            bad_reason = None if self.trouble else (_code(part, "unknown_schema"), f"the registry has no schema {id_}")
            return DecodedPart(bytes_, None, bad_reason)
        decode = self._decoder(version)
        if isinstance(decode, str):
            return DecodedPart(bytes_, version, (_code(part, "wrong_schema"), f"the {part}'s {version} cannot be read: {decode}"))
        try:
            text = decode(data[5:])
        except ValueError as error:
            return DecodedPart(bytes_, version, (_code(part), f"the {part} is not what schema {id_} says: {error}"))
        return DecodedPart(Decoded(json.loads(text) if text.startswith('"') else text, text), version)

    def decode_message(self, message: KafkaMessage) -> DecodedMessage:
        key = None if message.key is None else self.read("key", message.key)
        value = None if message.value is None else self.read("value", message.value)
        codes = {fault.code for fault in self.topic.decoding.faults}
        reasons = self._bad_reasons(message, key, value)
        return DecodedMessage(key, value, next((reason for reason in reasons if reason and reason[0] in codes), None))

    def _bad_reasons(
        self, message: KafkaMessage, key: DecodedPart | None, value: DecodedPart | None
    ) -> Iterator[BadReason | None]:
        yield value.bad_reason if value else ("null_value", "the message has no value")
        yield key.bad_reason if key else None
        headers = dict(message.headers)  # of equal names the last counts
        for name in self.topic.headers:
            if utf8(headers.get(name) or b"") is None:
                yield "undecodable_header", f"the header `{name}` is not UTF-8 text"

    def _version(self, part: MessagePart, id_: int) -> Version | None:
        versions = self._versions.setdefault(part, {})
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
                self._decoders[version.id] = by_schema(version.schema).decoder(version.schema)
            except Unsupported as error:
                self._decoders[version.id] = error.message
        return self._decoders[version.id]


def _code(part: MessagePart, code: str = "undecodable") -> str:
    return code if part == "value" else f"{code}_key"
