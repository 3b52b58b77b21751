"""Messages as `sluice peek` shows them: for people, and as JSON documents."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone

from rich.text import Text

from framework.cli._terminal import console, visible
from framework.engine.obvious import decoded, in_one_line, indented, plainly_wrong
from framework.engine.sample import Message
from framework.plan.model import Topic

_WIDEST = 4000  # characters of a value on a terminal


def show(topic: Topic, message: Message) -> None:
    out = console(sys.stdout, soft_wrap=True)
    place = [f"partition {message.partition}, offset {message.offset}"]
    place += [moment] if (moment := _moment(message)) else []
    place += [f"key {_text(topic.key_format, message.key)}"] if message.key is not None else []
    out.print(Text(", ".join(place), style="bold"))
    if message.headers:
        headers = ", ".join(f"{visible(name)}={_text('string', value)}" for name, value in message.headers)
        out.print(Text(f"  headers: {headers}", style="dim"))
    lines = _lines(topic.value, message.value) if out.is_terminal else [_text(topic.value, message.value)]
    for line in lines:
        out.print(Text(f"  {line}"))
    if wrong := plainly_wrong(topic, message):
        out.print(Text(f"  bad row: {wrong[0]}: {wrong[1]}", style="red"))


def document(topic: Topic, message: Message) -> str:
    """One line of JSON. A value or key that is JSON stands in it as it came, to the last digit."""
    wrong = plainly_wrong(topic, message)
    headers = [_object({"name": json.dumps(name), **_raw("value", "string", value)}) for name, value in message.headers]
    said = {
        "topic": json.dumps(topic.kafka_name), "partition": str(message.partition), "offset": str(message.offset),
        "timestamp": json.dumps(_moment(message)), **_raw("key", topic.key_format, message.key),
        "headers": f"[{', '.join(headers)}]", **_raw("value", topic.value, message.value),
        "bad": json.dumps({"code": wrong[0], "message": wrong[1]} if wrong else None),
    }  # fmt: skip
    return _object(said)


def _object(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}"


def _raw(name: str, format_: str, data: bytes | None) -> dict[str, str]:
    """What is not of its format is null, with its bytes beside it."""
    if data is None:
        return {name: "null"}
    found = decoded(format_, data)
    if found.json is None:
        return {name: "null", f"{name}_hex": json.dumps(data.hex())}
    return {name: in_one_line(found.json) if format_ == "json" else found.json}


def _text(format_: str, data: bytes | None) -> str:
    if data is None:
        return "(no value)"
    found = decoded(format_, data)
    return visible(in_one_line(found.json) if format_ == "json" and found.json else found.text)


def _lines(format_: str, data: bytes | None) -> list[str]:
    found = None if data is None else decoded(format_, data)
    if found is None or format_ != "json" or found.json is None:
        text = _text(format_, data)
        return [text if len(text) <= _WIDEST else f"{text[:_WIDEST]}… ({len(data or b''):,} bytes, --json shows all)"]
    if len(found.json) > _WIDEST:
        return [f"{visible(found.json[:_WIDEST])}… ({len(data or b''):,} bytes, --json shows all)"]
    return [visible(line) for line in indented(found.json)]


def _moment(message: Message) -> str | None:
    if message.timestamp is None:
        return None
    try:
        moment = datetime.fromtimestamp(message.timestamp / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):  # a producer may say any number
        return str(message.timestamp)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
