"""What a registry's answers say, read strictly: one that has another form raises `Strange`, never anything else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from framework.errors import visible
from framework.formats import kinds
from framework.registry.http import Strange

MOST_REFERENCES = 1000
"""Of a schema, all those of its references counted; and each by itself."""
_MOST_VERSIONS = 10_000
UNNAMED = "AVRO"  # the kind of a schema for which a registry names none
_SHOWN = 300  # characters of what a registry says
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Reference:
    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Entry:
    """A schema as the registry has it. `id` is None where it was asked for by its id."""

    id: int | None
    kind: str
    text: str
    references: tuple[Reference, ...]


def parsed(body: bytes) -> Any:
    """None: it is no JSON."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def numbers(said: Any) -> tuple[int, ...]:
    """Versions of a subject."""
    found = tuple(sorted({_number(each, "version") for each in _list(said, "versions")}))
    if len(found) > _MOST_VERSIONS:
        raise Strange(f"has {len(found):,} versions of one subject")
    return found


def subjects(said: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(_of(each, "subject"), "subject") for each in _list(said, "subjects")))


def id_of(said: Any) -> int:
    return _number(_of(said, "id"), "id")


def entry(said: Any) -> Entry:
    kind = _of(said, "schemaType") or UNNAMED
    if not isinstance(kind, str) or kind not in kinds():
        raise Strange(f"has a schema of the kind {str(kind)[:40]!r}")
    there = _list(_of(said, "references") or [], "references")
    if len(there) > MOST_REFERENCES:
        raise Strange(f"has a schema with {len(there):,} references")
    references = (
        Reference(
            _text(_of(each, "name"), "name"), _text(_of(each, "subject"), "subject"), _number(_of(each, "version"), "version")
        )
        for each in there
    )
    id_ = said.get("id")
    return Entry(None if id_ is None else _number(id_, "id"), kind, _text(_of(said, "schema"), "schema"), tuple(references))


def code_of(said: Any) -> int | None:
    """Why it refuses, by Confluent's numbers."""
    code = said.get("error_code") if isinstance(said, dict) else None
    return code if isinstance(code, int) else None


def message_of(said: Any) -> str:
    """What it says about that, on one line of any terminal."""
    message = said.get("message") if isinstance(said, dict) else None
    if not isinstance(message, str):
        return ""
    line = " ".join(message.split())[:_SHOWN]
    return visible(line)


def _of(said: Any, name: str) -> Any:
    if not isinstance(said, dict):
        raise Strange(f"answers with {_called(said)} where an object is expected")
    return said.get(name)


def _list(said: Any, what: str) -> list[Any]:
    if not isinstance(said, list):
        raise Strange(f"answers with {_called(said)} where a list of {what} is expected")
    return said


def _number(said: Any, what: str) -> int:
    if not isinstance(said, int) or isinstance(said, bool) or not -1 <= said <= _LARGEST:
        raise Strange(f"has the {what} {_short(said)}, which is no number of one")
    return said


def _text(said: Any, what: str) -> str:
    if not isinstance(said, str):
        raise Strange(f"has the {what} {_short(said)}, which is no text")
    try:
        said.encode()
    except UnicodeEncodeError:
        raise Strange(f"has a {what} with half a character (a lone surrogate)") from None
    return said


def _called(said: Any) -> str:
    if said is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names[type(said)]


def _short(said: Any) -> str:
    """A value of JSON in a message: deep and long ones by their kind alone."""
    return json.dumps(said)[:40] if isinstance(said, (str, int, float, bool)) or said is None else _called(said)
