"""Strict readers of a registry's answers: an answer of another form raises `Strange`, never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from framework.base.errors import visible
from framework.messages.formats import kinds
from framework.systems.http import Strange

MOST_REFERENCES = 1000
"""The most references of one schema, together with the references of its references."""
_MOST_VERSIONS = 10_000
UNNAMED = "AVRO"  # the kind of a schema for which a registry names none
_LONGEST_TEXT = 300  # characters of a registry's own message
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Reference:
    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Entry:
    """A schema as the registry returns it. `id` is None if the request named the id."""

    id: int | None
    kind: str
    text: str
    references: tuple[Reference, ...]


def parsed(body: bytes) -> Any:
    """Returns the JSON of an answer; None if it is not JSON."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def numbers(answer: Any) -> tuple[int, ...]:
    """Returns the numbers of a subject's versions."""
    version_numbers = tuple(sorted({_number(number, "version") for number in _list(answer, "versions")}))
    if len(version_numbers) > _MOST_VERSIONS:
        raise Strange(f"has {len(version_numbers):,} versions of one subject")
    return version_numbers


def subjects(answer: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_text(_of(subject, "subject"), "subject") for subject in _list(answer, "subjects")))


def id_of(answer: Any) -> int:
    return _number(_of(answer, "id"), "id")


def entry(answer: Any) -> Entry:
    kind = _of(answer, "schemaType") or UNNAMED
    if not isinstance(kind, str) or kind not in kinds():
        raise Strange(f"has a schema of the kind {str(kind)[:40]!r}")
    reference_list = _list(_of(answer, "references") or [], "references")
    if len(reference_list) > MOST_REFERENCES:
        raise Strange(f"has a schema with {len(reference_list):,} references")
    references = (
        Reference(
            _text(_of(reference, "name"), "name"),
            _text(_of(reference, "subject"), "subject"),
            _number(_of(reference, "version"), "version"),
        )
        for reference in reference_list
    )
    id_ = answer.get("id")
    return Entry(None if id_ is None else _number(id_, "id"), kind, _text(_of(answer, "schema"), "schema"), tuple(references))


def code_of(answer: Any) -> int | None:
    """Returns the error code of a refusal, by Confluent's numbers."""
    code = answer.get("error_code") if isinstance(answer, dict) else None
    return code if isinstance(code, int) else None


def message_of(answer: Any, without_login: Callable[[str], str]) -> str:
    """Returns the registry's own message, safe to print on one line."""
    message = answer.get("message") if isinstance(answer, dict) else None
    if not isinstance(message, str):
        return ""
    line = " ".join(without_login(message).split())[:_LONGEST_TEXT]
    return visible(line)


def _of(answer: Any, name: str) -> Any:
    if not isinstance(answer, dict):
        raise Strange(f"answers with {_called(answer)} where an object is expected")
    return answer.get(name)


def _list(answer: Any, noun: str) -> list[Any]:
    if not isinstance(answer, list):
        raise Strange(f"answers with {_called(answer)} where a list of {noun} is expected")
    return answer


def _number(value: Any, noun: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= _LARGEST:
        raise Strange(f"has the {noun} {_short(value)}, which is no number of one")
    return value


def _text(value: Any, noun: str) -> str:
    if not isinstance(value, str):
        raise Strange(f"has the {noun} {_short(value)}, which is no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Strange(f"has a {noun} with half a character (a lone surrogate)") from None
    return value


def _called(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names[type(value)]


def _short(value: Any) -> str:
    """Returns a JSON value for a message; a list or an object is named by its kind alone."""
    return json.dumps(value)[:40] if isinstance(value, (str, int, float, bool)) or value is None else _called(value)
