"""Decodes a message by its topic's spec, and finds errors that need no Spark.

Limit: most bad rows need Spark. A batch, and `sluice preview`, check types, required fields and steps.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from framework.engine.kafka.newest_messages import Message
from framework.model import Topic

AS_JSON = ("json", "debezium_json")
_BLANKS = " \t\r\n"  # of JSON
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_KINDS = ((dict, "an object"), (list, "a list"), (str, "text"), (bool, "true or false"), (int, "a number"))


@dataclass(frozen=True)
class Decoded:
    """Bytes by a format: `text` for people, `json` as a JSON document, which is None where they are not of that format."""

    text: str
    json: str | None


def decoded(format_: str, data: bytes) -> Decoded:
    """Decodes bytes by a format. Bytes that are not text become hexadecimal digits."""
    text = _utf8(data)
    if format_ == "long" and len(data) == 8:
        number = str(struct.unpack(">q", data)[0])
        return Decoded(number, number)
    if format_ == "bytes" or text is None:
        return Decoded(f"0x{data.hex()}", json.dumps(data.hex()) if format_ == "bytes" else None)
    if format_ == "string":
        return Decoded(text, json.dumps(text, ensure_ascii=False))
    try:
        first = _first(text) if format_ in AS_JSON else None
    except RecursionError:  # as deep as that it is shown as it is
        first = None
    return Decoded(text, text.strip(_BLANKS) if first and not first.more else None)


def in_one_line(document: str) -> str:
    """The JSON document without its line breaks. Its tokens stay as they are: no digit of a number is lost."""
    return "".join({",": ", ", ":": ": "}.get(token, token) for token in _TOKEN.findall(document))


def indented(document: str) -> list[str]:
    """The lines of the JSON document, one for each field and item."""
    lines = [""]
    depth = 0
    before = ""
    for token in _TOKEN.findall(document):
        opened, closes = before in ("{", "["), token in ("}", "]")
        depth -= closes
        if before == "," or opened != closes:
            lines.append("  " * depth)
        lines[-1] += ": " if token == ":" else token
        depth += token in ("{", "[")
        before = token
    return lines


BadReason = tuple[str, str]


def plain_bad_reason(topic: Topic, message: Message, value: BadReason | None, key: BadReason | None) -> BadReason | None:
    """The code and the reason by which every batch makes a bad row of the message, given those of its value and key; None where only
    a batch can say."""
    codes = {fault.code for fault in topic.decoding.faults}
    return next((reason for reason in _bad_reasons(topic, message, value, key) if reason and reason[0] in codes), None)


def _bad_reasons(topic: Topic, message: Message, value: BadReason | None, key: BadReason | None) -> Iterator[BadReason | None]:
    yield ("null_value", "the message has no value") if message.value is None else value
    yield key
    headers = dict(message.headers)  # of equal names the last counts
    for name in topic.headers:
        if _utf8(headers.get(name) or b"") is None:
            yield "undecodable_header", f"the header `{name}` is not UTF-8 text"


def format_mismatch(format_: str, data: bytes) -> str | None:
    """Why these bytes do not fit the format; None where they fit, or where only a batch can say."""
    if format_ == "long":
        return None if len(data) == 8 else "is not a number of 8 bytes"
    text = _utf8(data)
    if format_ not in (*AS_JSON, "string"):
        return None
    if text is None:
        return "is not UTF-8 text"
    return _object_mismatch(text) if format_ in AS_JSON else None


def _object_mismatch(text: str) -> str | None:
    if not text.strip(_BLANKS):
        return "is empty"
    try:
        first = _first(text)
    except RecursionError:
        return None
    if first is None:
        return "is not JSON"
    if first.kind != "an object":
        return f"is no JSON object but {first.kind}"
    return "has more text behind the JSON object" if first.more else None


@dataclass(frozen=True)
class _First:
    """The first document of a text."""

    kind: str
    more: bool  # whether anything follows


def _first(text: str) -> _First | None:
    text = text.strip(_BLANKS)
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return _First(next((noun for type_, noun in _KINDS if isinstance(value, type_)), "null"), end < len(text))


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


# Numbers are not parsed: Python refuses one with very many digits. `NaN` is no JSON, though Python's parser accepts it.
_DECODER = json.JSONDecoder(parse_int=lambda _: 0, parse_float=lambda _: 0, parse_constant=_refuse)


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
