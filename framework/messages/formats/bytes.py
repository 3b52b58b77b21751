"""Bytes: the message is one column, unchanged."""

from __future__ import annotations

import json

from framework.base.types import BINARY, Field
from framework.messages.encoding.json_text import Decoded
from framework.messages.formats import OneColumn, Sample, one_column
from framework.plan import Decoding, MessagePart, part_sql


def decoding(part: MessagePart, name: str) -> Decoding:
    return one_column(part, name, part_sql(part))


CONNECT = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
VALUE = KEY = OneColumn(
    noun="any bytes",
    type=BINARY,
    decoding=decoding,
    encode=lambda value: str(value).encode("utf-8", "surrogateescape"),
    wrong=None,
    decoded=lambda data: Decoded(f"0x{data.hex()}", json.dumps(data.hex())),
    sample=Sample(columns=(Field("value", BINARY),), values={"value": "some text"}, wrong=None),
    guessed="which is not always text",
)
