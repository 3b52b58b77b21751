"""Text: the message is one column."""

from __future__ import annotations

from framework.base.types import STRING, Field
from framework.messages.encoding import json_text
from framework.messages.formats import OneColumn, Sample, one_column
from framework.plan import Decoding, MessagePart, part_sql


def decoding(part: MessagePart, name: str) -> Decoding:
    if part == "value":
        return one_column(part, name, "_sluice_text", wrong="NOT is_valid_utf8(_sluice_text)", why="is not UTF-8 text")
    text = f"CAST({part_sql(part)} AS STRING)"
    return one_column(part, name, text, wrong=f"NOT coalesce(is_valid_utf8({text}), true)", why="is not UTF-8 text")


CONNECT = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
VALUE = KEY = OneColumn(
    noun="UTF-8 text",
    type=STRING,
    decoding=decoding,
    encode=lambda value: str(value).encode("utf-8", "surrogateescape"),
    wrong=json_text.no_text,
    decoded=json_text.as_text,
    sample=Sample(columns=(Field("value", STRING),), values={"value": "grün, 1"}, wrong=b"\xff"),
)
