"""JSON: one object per message, each field only as its own JSON type.

Guarantee: trailing text, a second document, a wrong type, a number out of range or bytes that are not UTF-8 make a bad row,
never another value.
Limit: a `string` column takes an object, a list or a fraction as Spark writes it again: without spaces, 2.50 as 2.5.
Cost: Spark's parser once per message; a message with a `}` before its end (nested objects) is walked a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework.encoding import json_object, json_text, json_values
from framework.encoding.fields import Field
from framework.formats import OBJECT, Given, Guess
from framework.model import Decoding, Fault
from framework.sql.quote import literal
from framework.types import STRING, Array, Map, Struct, Type


def decoding(fields: Sequence[Field], only_columns: bool) -> Decoding:
    return Decoding(
        parse=json_object.parse(fields),
        columns=tuple((field.name, json_object.column(field)) for field in fields),
        faults=tuple(_faults(fields, only_columns)),
        meant=json_object.MEANT,
        explain=(*json_object.NOT_AN_OBJECT, *json_object.explained(fields, "$"), json_object.SOMETHING),
        explained=json_object.EXPLAINED,
    )


def _faults(fields: Sequence[Field], only_columns: bool) -> Iterator[Fault]:
    yield Fault("value", "null_value", "the message has no value", "_sluice_value IS NULL")
    yield json_object.TOO_LARGE
    yield Fault("value", "undecodable", "the value is not one JSON object with these columns", json_object.wrong(fields))
    if only_columns:
        known = ", ".join(literal(field.name) for field in fields)
        unknown = f"size(array_except(json_object_keys(_sluice_text), array({known}))) > 0"
        yield Fault("value", "unknown_field", "the value has a field that is no column", unknown)
    for field in fields:
        if field.required:
            message = f"`{field.name}` is required and missing or null"
            yield Fault("value", "missing_field", message, f"{json_object.column(field)} IS NULL")


def key_decoding(fields: Sequence[Field], only_columns: bool) -> Decoding:
    """The same of a message's key, which may be missing."""
    of_value = decoding(fields, only_columns)

    def of_key(sql: str) -> str:
        return json_object.behind(sql, "_sluice_key", f"({of_value.parse})")

    wrong = next(fault.when for fault in of_value.faults if fault.code == "undecodable")
    there = f"_sluice_key IS NOT NULL AND ({of_key(wrong)})"
    faults = [Fault("key", "undecodable_key", "the key is not one JSON object with its columns", there)]
    faults += [replace(fault, stage="key", when=of_key(fault.when)) for fault in of_value.faults if fault.code == "missing_field"]
    columns = tuple((name, of_key(sql)) for name, sql in of_value.columns)
    return Decoding(None, columns, tuple(faults), meant=json_object.MEANT)


def refuses(type_: Type) -> tuple[str, str] | None:
    """A map in it whose keys are no text."""
    if isinstance(type_, Map):
        hint = f"JSON's objects have text as keys: write `map<string,{type_.value}>`"
        return (f"JSON has no {type_}", hint) if type_.key != STRING else refuses(type_.value)
    inside = [type_.element] if isinstance(type_, Array) else []
    inside += [field.type for field in type_.fields] if isinstance(type_, Struct) else []
    return next((why for each in inside if (why := refuses(each))), None)


def encode(_columns: object, values: Mapping[str, Any]) -> bytes:
    return json_values.text(values).encode()


def rows(data: bytes) -> Sequence[Mapping[str, Any]] | None:
    found = json_text.one_object(data)
    return None if found is None else (found,)


VALUE = Given(
    noun="one JSON object",
    decoding=decoding,
    encode=encode,
    wrong=json_text.no_object,
    decoded=json_text.as_json,
    sample=OBJECT,
    refuses=refuses,
    takes_unknown_fields=True,
    guess=Guess(rows=rows, key=json_text.one_object, are="JSON objects", are_not="not one JSON object"),
)
KEY = replace(VALUE, decoding=key_decoding)
