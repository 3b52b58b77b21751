"""Calls of Sluice's own decoders, which are Java functions inside Spark (`framework/machine/jvm`), and what they find wrong with a message.

The name of such a function is its description: JSON that says what a message holds and which columns it becomes. `Description.java`
reads it.

| key | what it says |
| --- | --- |
| `format` | `json`, `avro` or `protobuf` |
| `part` | `value` (default) or `key`: which part of the message it is, for the words of errors |
| `columns` | a list of columns |
| `unknown_fields` | `bad`: a field at the top level that is no column makes a bad row; JSON only |
| `root` | a field that holds the message where it is an object, as Connect's `payload` beside a `schema`; JSON only |
| `envelope` | `debezium`: the columns are those of `before` and `after`; `_op` and `_source_at` come behind them |
| `absent` | a message without bytes is `bad` (default: `null_value`), `empty` (required columns are missing) or `null` (no fault) |
| `largest` | bytes; a larger message is `too_large` |
| `writers` | by the ids in Confluent's frame, how messages with this id are read; without it a message has no frame |

The result has the columns, then `_sluice_code` and `_sluice_why`, which are null for a good message.

A column has a `name`, a `type`, and where needed its `source` (its name in the message), a `format` (`epoch_millis`, `epoch_micros`,
`epoch_days`, `base64` of a decimal, `integral`), and `required`. The types `array` (`element`),
`map` (`value`) and `struct` (`fields`) hold others; all else is Spark's name of a type.

A writer is `{"refused": why, "code": code}` for a schema whose messages are all bad rows, or
of JSON `{"single": true}` (the message is one value, of the column `value`, or of the only one) or `{}`;
of Avro `schema`, the schemas that it refers to as `references`, and `names`: paths of fields whose columns have another name;
of Protobuf the message types, their fields and enums (`formats/protobuf/descriptions.py`), and `names`.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from framework.base.types import Array, Map, Struct, Type
from framework.messages.encoding.fields import MessageField, WrittenType
from framework.plan import Decoding, Fault, MessagePart, part_sql
from framework.sql.quote import identifier
from framework.sql.settings import FUNCTIONS

Json = Any
CLASS = "sluice.Functions"
LARGEST = 20_000_000  # bytes of a message in JSON
_SHORT = 200  # characters that are not worth compressing
_MESSAGES = {
    "null_value": "the message has no value",
    "too_large": "the {} is too large",
    "unknown_field": "the {} has a field that is not a column",
    "unknown_schema": "the registry does not have the schema that the {} names",
    "wrong_schema": "the {} has a schema that does not fit the columns",
}
_OF_KEYS = ("undecodable", "unknown_schema", "wrong_schema")  # codes that end in `_key` for a message's key


def text(description: Mapping[str, Json]) -> str:
    """Returns the description as the name of a function, compressed if it is long or has a character that SQL or Spark's
    substitution of variables could read."""
    plain = json.dumps(description, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    if len(plain) <= _SHORT and not set("`$") & set(plain):
        return plain
    return "z:" + base64.b64encode(zlib.compress(plain.encode(), 9)).decode()


def call(description: Mapping[str, Json], argument: str) -> str:
    """SQL of the struct that the decoder makes."""
    return f"{FUNCTIONS}.`{text(description)}`({argument})"


def called(sql: str) -> tuple[MessagePart, str]:
    """Returns the part of the message that is decoded, and the function's name, from the SQL of a call."""
    _, function, argument = sql.split("`")
    return ("key" if argument == f"({part_sql('key')})" else "value"), function


def quiet(sql: str) -> str:
    """Returns the SQL of a call, changed so that its reasons have no part of a message."""
    return sql.replace(f"{FUNCTIONS}.`", f"{FUNCTIONS}.`quiet:")


def struct(part: MessagePart) -> str:
    """Returns the name of the struct into which the message's key or value is decoded."""
    return "_sluice_decoded" if part == "value" else "_sluice_decoded_key"


def column_sql(part: MessagePart, name: str) -> str:
    return f"{struct(part)}.{identifier(name)}"


def decoding(part: MessagePart, description: Mapping[str, Json], codes: Iterable[str], complaint: str) -> Decoding:
    """Returns a decoding with all columns of the description, and with faults of these codes. `complaint` completes "the value …" of a
    message that cannot be decoded."""
    columns = tuple((column["name"], column_sql(part, column["name"])) for column in description["columns"])
    required = [f"`{column['name']}`" for column in description["columns"] if column.get("required")]
    messages = {code: message.format(part) for code, message in _MESSAGES.items()} | {"undecodable": f"the {part} {complaint}"}
    if "largest" in description:
        messages |= {"too_large": f"the {part} is over {description['largest']} bytes"}
    if required:
        messages |= {"missing_field": f"{' or '.join(required)} is required and missing or null"}
    faults = [
        Fault(part, _fault_code(part, code), messages[code], when=_when(part, code), why=f"{struct(part)}._sluice_why")
        for code in (*codes, *(["missing_field"] if required else []))
    ]
    return Decoding(columns, tuple(faults), structs=((struct(part), call(description, part_sql(part))),))


def code_sql(part: MessagePart) -> str:
    """Returns SQL of the code of the message's fault, null where there is none."""
    return f"{struct(part)}._sluice_code"


def _when(part: MessagePart, code: str) -> str:
    if code != "undecodable":
        return f"{code_sql(part)} = '{code}'"
    known_codes = ", ".join(f"'{known_code}'" for known_code in (*_MESSAGES, "missing_field"))
    return f"{code_sql(part)} NOT IN ({known_codes})"  # no code is left without a fault


def _fault_code(part: MessagePart, code: str) -> str:
    return f"{code}_key" if part == "key" and code in _OF_KEYS else code


def columns_of(fields: Iterable[MessageField]) -> list[Json]:
    return [column(field.name, field.written, required=field.required) for field in fields]


def column(name: str, type_: Type, **attributes: Json) -> dict[str, Json]:
    """Returns a column of a description. Attributes that are false or None are left out."""
    return {"name": name, **of_type(type_), **{key: value for key, value in attributes.items() if value}}


def of_type(type_: Type) -> dict[str, Json]:
    match type_:
        case Array():
            return {"type": "array", "element": of_type(type_.element)}
        case Map():
            return {"type": "map", "value": of_type(type_.value)}
        case Struct():
            return {"type": "struct", "fields": [column(field.name, field.type) for field in type_.fields]}
        case WrittenType():
            return {"type": str(type_.type), "format": type_.format}
    return {"type": str(type_)}
