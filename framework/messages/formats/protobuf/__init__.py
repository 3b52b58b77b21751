"""Protobuf: messages as Confluent's clients write them. The place of the message type follows the schema's id, then the message.

Guarantee: bytes that are cut off, that have fields which the schema does not have, that lack a required field or hold a value that
its column cannot take make a bad row, never another value and never an error.
Limit: only the first message type of a schema is read; a type that contains itself, a group and an extension have no columns. Times
are kept to the microsecond.
"""

from __future__ import annotations

from collections.abc import Callable

from framework.messages.encoding.confluent_frame import DecoderDescription, columns_of, renamed
from framework.messages.formats import OBJECT, RegisteredSchema
from framework.messages.formats.protobuf import descriptions
from framework.messages.formats.protobuf.columns import shapes
from framework.messages.formats.protobuf.encode import encoder, schema_text
from framework.messages.schemas.versions import Merged
from framework.plan import MessagePart
from framework.plan.schema import Schema

__all__ = ["KEY", "VALUE", "decoder", "encoder", "read", "schema_text", "shapes"]


def decoder(schema: Schema) -> Callable[[bytes], str]:
    from framework.messages.formats.protobuf import as_json

    return as_json.decoder(schema)


def read(_part: MessagePart, merged: Merged) -> DecoderDescription:
    writers = {fit.version.id: {**descriptions.writer(fit.version.schema), **renamed(fit.names)} for fit in merged.fits}
    return DecoderDescription(format="protobuf", columns=columns_of(merged.shapes), writers=writers)


CONNECT = {"value.converter": "io.confluent.connect.protobuf.ProtobufConverter"}
VALUE = KEY = RegisteredSchema(
    kind="PROTOBUF", shapes=shapes, read=read, encoder=encoder, decoder=decoder, schema_text=schema_text, sample=OBJECT
)
