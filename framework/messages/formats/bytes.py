"""Bytes: the message is one column, unchanged."""

from __future__ import annotations

import json

from framework.base.types import BINARY, Field
from framework.messages.encoding.json_text import Decoded
from framework.messages.formats import Sample, Single, one_column
from framework.plan import Decoding, Of, raw


def decoding(part: Of, name: str) -> Decoding:
    return one_column(part, name, raw(part))


CONNECT = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
VALUE = KEY = Single(
    noun="any bytes",
    type=BINARY,
    decoding=decoding,
    encode=lambda value: str(value).encode("utf-8", "surrogateescape"),
    wrong=None,
    decoded=lambda data: Decoded(f"0x{data.hex()}", json.dumps(data.hex())),
    sample=Sample(columns=(Field("value", BINARY),), values={"value": "some text"}, wrong=None),
    guessed="which is not always text",
)
