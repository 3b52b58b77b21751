"""A line of values with commas between them, in the order of the columns. A toy: all that a format needs is in this file.

Limit: a value has no comma and no line break; an empty one is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from framework.base.types import BIGINT, BINARY, DATE, STRING, VOID, Array, Field as Typed, Map, Struct, Type
from framework.messages.encoding import json_text, json_values
from framework.messages.encoding.fields import MessageField
from framework.messages.encoding.json_text import Decoded
from framework.messages.formats import DeclaredColumns, Sample
from framework.plan import Column, Decoding, Fault

_PARTS = "split(_sluice_text, ',')"


def decoding(fields: Sequence[MessageField], _only_columns: bool) -> Decoding:
    texts = {field.name: f"nullif(get({_PARTS}, {index}), '')" for index, field in enumerate(fields)}
    columns = {field.name: f"try_cast({texts[field.name]} AS {field.type.sql})" for field in fields}
    misfits = (f"({texts[name]} IS NOT NULL AND {sql} IS NULL)" for name, sql in columns.items())
    condition = " OR ".join(("NOT is_valid_utf8(_sluice_text)", f"size({_PARTS}) <> {len(fields)}", *misfits))
    faults = [
        Fault("value", "null_value", "the message has no value", when="_sluice_value IS NULL"),
        Fault("value", "undecodable", "the value is no line of these columns", when=condition),
    ]
    for field in fields:
        if field.required:
            faults.append(
                Fault("value", "missing_field", f"`{field.name}` is required and empty", when=f"{columns[field.name]} IS NULL")
            )
    return Decoding(tuple(columns.items()), tuple(faults))


def encode(columns: Sequence[Column], values: Mapping[str, Any]) -> bytes:
    return ",".join(_text(values.get(column.name)) for column in columns).encode()


def _text(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json_values.text(value)
    if "," in text or "\n" in text:
        raise ValueError(f"{text!r} has a comma or a line break")
    return text


def decoded(data: bytes) -> Decoded:
    text = json_text.utf8(data)
    return json_text.undecoded(data) if text is None else Decoded(text, json_values.text(text.split(",")))


def refuses(type_: Type) -> tuple[str, str] | None:
    if isinstance(type_, Array | Map | Struct) or type_ in (BINARY, VOID):
        return f"a line has no {type_}", "write a type of one value, such as `string`"
    return None


VALUE = DeclaredColumns(
    noun="a line of values",
    decoding=decoding,
    encode=encode,
    wrong=json_text.no_text,
    decoded=decoded,
    sample=Sample(
        columns=(Typed("id", BIGINT), Typed("name", STRING), Typed("day", DATE)),
        values={"id": 7, "name": "grün", "day": "2026-01-02"},
        wrong=b"seven,a name,2026-01-02",
    ),
    refuses=refuses,
    written_as=False,
)
