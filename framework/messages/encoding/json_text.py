"""JSON as text, for people: what a text is, plainly, and its lines. No digit of a number is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BLANKS = " \t\r\n"  # of JSON
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_KINDS = ((dict, "an object"), (list, "a list"), (str, "text"), (bool, "true or false"), (int, "a number"))


@dataclass(frozen=True)
class Decoded:
    """Bytes, decoded: `text` for people, and `json`, a JSON document, or None for bytes that are not of their format."""

    text: str
    json: str | None


def utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def undecoded(data: bytes) -> Decoded:
    """Returns bytes that are not of their format as text, or as hexadecimal digits where they are no text."""
    text = utf8(data)
    return Decoded(f"0x{data.hex()}" if text is None else text, None)


def as_text(data: bytes) -> Decoded:
    text = utf8(data)
    return undecoded(data) if text is None else Decoded(text, json.dumps(text, ensure_ascii=False))


def as_json(data: bytes) -> Decoded:
    """Returns the bytes as one JSON document, or undecoded where they are none, or are nested deeper than Python can read."""
    text = utf8(data)
    try:
        document = _first(text) if text is not None else None
    except RecursionError:
        document = None
    return Decoded(text, text.strip(_BLANKS)) if text is not None and document and not document.has_more else undecoded(data)


def no_text(data: bytes) -> str | None:
    """Returns why these bytes are no text, or None."""
    return "is not UTF-8 text" if utf8(data) is None else None


def no_object(data: bytes) -> str | None:
    """Returns why these bytes are not one JSON object; None where they are, or where they are nested too deep to tell."""
    text = utf8(data)
    if text is None:
        return no_text(data)
    if not text.strip(_BLANKS):
        return "is empty"
    try:
        document = _first(text)
    except RecursionError:
        return None
    if document is None:
        return "is not JSON"
    if document.kind != "an object":
        return f"is no JSON object but {document.kind}"
    return "has more text behind the JSON object" if document.has_more else None


def one_object(data: bytes) -> Mapping[str, Any] | None:
    """Returns the JSON object in a message, or None if it is not one."""
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def in_one_line(document: str) -> str:
    """Returns the JSON document in one line. Its tokens stay unchanged: no digit of a number is lost."""
    return "".join({",": ", ", ":": ": "}.get(token, token) for token in _TOKEN.findall(document))


def indented(document: str) -> list[str]:
    """The lines of the JSON document, one for each field and item."""
    lines = [""]
    depth = 0
    previous_token = ""
    for token in _TOKEN.findall(document):
        opened, closes = previous_token in ("{", "["), token in ("}", "]")
        depth -= closes
        if previous_token == "," or opened != closes:
            lines.append("  " * depth)
        lines[-1] += ": " if token == ":" else token
        depth += token in ("{", "[")
        previous_token = token
    return lines


@dataclass(frozen=True)
class _First:
    """The first document of a text."""

    kind: str
    has_more: bool  # whether anything follows


def _first(text: str) -> _First | None:
    text = text.strip(_BLANKS)
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return _First(next((noun for type_, noun in _KINDS if isinstance(value, type_)), "null"), end < len(text))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Numbers are not parsed, since Python refuses very long ones. `NaN` is no JSON, though Python's parser takes it.
_DECODER = json.JSONDecoder(parse_int=lambda _: 0, parse_float=lambda _: 0, parse_constant=_refuse)
