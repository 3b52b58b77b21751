"""JSON: one object per message, each field only as its own JSON type.

Guarantee: trailing text, a second document, a wrong type, a number that its column cannot hold to the last digit, or bytes that are
not UTF-8 make a bad row, never another value. A `string` column takes an object, a list or a number as it stands in the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework.base.types import STRING, Array, Map, Struct, Type
from framework.messages.encoding import decoder, json_text, json_values
from framework.messages.encoding.fields import MessageField
from framework.messages.formats import OBJECT, DeclaredColumns, Guess
from framework.plan import Decoding

NOT_ONE = "is not one JSON object with these columns"


def description(fields: Sequence[MessageField]) -> dict[str, Any]:
    return {"format": "json", "columns": decoder.columns_of(fields), "largest": decoder.LARGEST}


def decoding(fields: Sequence[MessageField], only_columns: bool) -> Decoding:
    codes = ["null_value", "too_large", "undecodable"]
    codes += ["unknown_field"] if only_columns else []
    options = {"unknown_fields": "bad"} if only_columns else {}
    return decoder.decoding("value", description(fields) | options, codes, NOT_ONE)


def key_decoding(fields: Sequence[MessageField], _only_columns: bool) -> Decoding:
    """Returns the decoding of a message's key, which may be missing."""
    return decoder.decoding(
        "key", {**description(fields), "part": "key", "absent": "empty"}, ["too_large", "undecodable"], NOT_ONE
    )


def refuses(type_: Type) -> tuple[str, str] | None:
    """Returns a message and a hint if the type has a map in it whose keys are no text."""
    if isinstance(type_, Map):
        hint = f"JSON's objects have text as keys: write `map<string,{type_.value}>`"
        return (f"JSON has no {type_}", hint) if type_.key != STRING else refuses(type_.value)
    inside = [type_.element] if isinstance(type_, Array) else []
    inside += [field.type for field in type_.fields] if isinstance(type_, Struct) else []
    return next((problem for inner_type in inside if (problem := refuses(inner_type))), None)


def encode(_columns: object, values: Mapping[str, Any]) -> bytes:
    return json_values.text(values).encode()


def rows(data: bytes) -> Sequence[Mapping[str, Any]] | None:
    row = json_text.one_object(data)
    return None if row is None else (row,)


CONNECT = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
VALUE = DeclaredColumns(
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
