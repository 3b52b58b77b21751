"""A whole number of 8 bytes, the highest first, as Java's clients write it. Only keys have this format."""

from __future__ import annotations

import re
import struct
from typing import Any

from framework.base.types import BIGINT, Field
from framework.messages.encoding.json_text import Decoded, undecoded
from framework.messages.formats import OneColumn, Sample, one_column
from framework.plan import Decoding, MessagePart, part_sql


def decoding(part: MessagePart, name: str) -> Decoding:
    number = f"CAST(conv(hex({part_sql(part)}), 16, -10) AS BIGINT)"
    return one_column(part, name, number, wrong=f"octet_length({part_sql(part)}) <> 8", why="is not a number of 8 bytes")


def encode(value: Any) -> bytes:
    if not re.fullmatch(r"-?\d{1,19}", str(value)) or not -(1 << 63) <= int(value) < 1 << 63:
        raise ValueError("is not a whole number of 8 bytes")
    return struct.pack(">q", int(value))


def decoded(data: bytes) -> Decoded:
    if len(data) != 8:
        return undecoded(data)
    number = str(struct.unpack(">q", data)[0])
    return Decoded(number, number)


KEY = OneColumn(
    noun="a number of 8 bytes",
    type=BIGINT,
    decoding=decoding,
    encode=encode,
    wrong=lambda data: None if len(data) == 8 else "is not a number of 8 bytes",
    decoded=decoded,
    sample=Sample(columns=(Field("value", BIGINT),), values={"value": -5}, wrong=b"five"),
    typed=BIGINT,
    asks=("a number of 8 bytes", "write a whole number, such as 42"),
    guessed="which always has 8 bytes, as Java's numbers have",
)
