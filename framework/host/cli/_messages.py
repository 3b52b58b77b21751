"""Messages as `sluice peek` shows them: for people, and as JSON documents."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone

from rich.text import Text

from framework.base import iso_times
from framework.base.errors import visible
from framework.core.kafka.newest_messages import KafkaMessage
from framework.core.schemas.decode import DecodedPart, MessageReader
from framework.host.cli._terminal import console
from framework.messages.encoding.json_text import Decoded, as_text, in_one_line, indented

_WIDEST = 4000  # characters of a value on a terminal


def show(reader: MessageReader, message: KafkaMessage) -> None:
    terminal = console(sys.stdout, soft_wrap=True)
    decoded_message = reader.decode_message(message)
    key, value = decoded_message.key, decoded_message.value
    place = [f"partition {message.partition}, offset {message.offset}"]
    place += [moment] if (moment := _moment(message)) else []
    place += [f"key {_text(key)}{f' by {key.version}' if key.version else ''}"] if key else []
    place += [f"value by {value.version}"] if value and value.version else []
    terminal.print(Text(", ".join(place), style="bold"))
    if message.headers:
        headers = ", ".join(f"{visible(name)}={_header(data)}" for name, data in message.headers)
        terminal.print(Text(f"  headers: {headers}", style="dim"))
    for line in _lines(value, len(message.value or b"")) if terminal.is_terminal else [_text(value)]:
        terminal.print(Text(f"  {line}"))
    if decoded_message.bad_reason:
        terminal.print(Text(f"  bad row: {decoded_message.bad_reason[0]}: {decoded_message.bad_reason[1]}", style="red"))


def document(reader: MessageReader, message: KafkaMessage) -> str:
    """One line of JSON. A value or key that is JSON stands in it as it came, to the last digit."""
    decoded_message = reader.decode_message(message)
    key, value, bad_reason = decoded_message.key, decoded_message.value, decoded_message.bad_reason
    headers = [_object({"name": json.dumps(name), **_raw("value", data, _of_header(data))}) for name, data in message.headers]
    page = {
        "topic": json.dumps(reader.topic.kafka_name), "partition": str(message.partition), "offset": str(message.offset),
        "timestamp": json.dumps(_moment(message)), **_raw("key", message.key, key),
        "headers": f"[{', '.join(headers)}]", **_raw("value", message.value, value),
        "bad": json.dumps({"code": bad_reason[0], "message": bad_reason[1]} if bad_reason else None),
    }  # fmt: skip
    for schema in reader.topic.registered:
        read = value if schema.of == "value" else key
        version = read.version if read else None
        page[f"{schema.of}_schema"] = json.dumps({"id": version.id, "version": version.number} if version else None)
    return _object(page)


def _of_header(data: bytes | None) -> DecodedPart | None:
    return None if data is None else DecodedPart(as_text(data))


def _header(data: bytes | None) -> str:
    return _text(_of_header(data))


def _object(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}"


def _raw(name: str, data: bytes | None, read: DecodedPart | None) -> dict[str, str]:
    """A value that is not of its format is null, with its bytes next to it."""
    if data is None or read is None:
        return {name: "null"}
    if read.decoded.json is None:
        return {name: "null", f"{name}_hex": json.dumps(data.hex())}
    return {name: in_one_line(read.decoded.json)}


def _text(read: DecodedPart | None) -> str:
    if read is None:
        return "(no value)"
    contents = read.decoded
    return visible(in_one_line(contents.json or "") if _is_document(contents) else contents.text)


def _lines(read: DecodedPart | None, size: int) -> list[str]:
    if read is None or not _is_document(read.decoded):
        text = _text(read)
        return [text if len(text) <= _WIDEST else f"{text[:_WIDEST]}… ({size:,} bytes, --json shows all)"]
    document = read.decoded.json or ""
    if len(document) > _WIDEST:
        return [f"{visible(document[:_WIDEST])}… ({size:,} bytes, --json shows all)"]
    return [visible(line) for line in indented(document)]


def _is_document(contents: Decoded) -> bool:
    """Whether the contents are JSON, or are shown as such, and an object or a list."""
    return contents.json is not None and contents.json.lstrip()[:1] in ("{", "[")


def _moment(message: KafkaMessage) -> str | None:
    if message.timestamp is None:
        return None
    try:
        moment = datetime.fromtimestamp(message.timestamp / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):  # a producer may say any number
        return str(message.timestamp)
    return iso_times.text(moment)
