"""The description of a decoder: JSON that says what a message holds and which columns it becomes. `Description.java` reads it.

| key | what it says |
| --- | --- |
| `format` | `json`, `avro`, `protobuf`, `string`, `bytes` or `long` (eight bytes, the highest first) |
| `part` | `value` (default) or `key`: which part of the message it is, for the words of errors |
| `columns` | a list of columns |
| `unknown_fields` | `bad`: a field at the top level that is no column makes a bad row; JSON only |
| `root` | a field that holds the message where it is an object, as Connect's `payload` beside a `schema`; JSON only |
| `envelope` | `debezium`: the columns are those of `before` and `after`; `_op` and `_source_at` come behind them |
| `absent` | a message without bytes is `bad` (default: `null_value`), `empty` (required columns are missing) or `null` (no fault) |
| `largest` | bytes; a larger message is `too_large` |
| `writers` | by the ids in Confluent's frame, how messages with this id are read; without it a message has no frame |
| `code`, `why` | other names for the last two columns of the result, `_code` and `_why` |

A column has a `name`, a `type`, and where needed its `source` (its name in the message), a `format` (`epoch_millis`, `epoch_micros`,
`epoch_days`, `base64` of a decimal, `integral`), `required`, and `masked` (its values are in no error). The types `array` (`element`),
`map` (`value`) and `struct` (`fields`) hold others; all else is Spark's name of a type.

A writer is `{"refused": why, "code": code}` for a schema whose messages are all bad rows, or
of JSON `{"single": true}` (the message is one value, of the only column) or `{}`;
of Avro `schema`, the schemas that it refers to as `references`, and `names`: paths of fields whose columns have another name;
of Protobuf what `protobuf.writer` makes, and `names`.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from framework.encoding.fields import Written
from framework.encoding.json_object import LARGEST
from framework.model.schemas import Schema
from framework.schemas.versions import Path
from framework.types import Array, Map, Struct, Type

Json = Any
CATALOG = "fn"
CLASS = "sluice.Functions"
_SHORT = 200  # characters that are not worth compressing


def text(description: Mapping[str, Json]) -> str:
    """As the name of a function. Compressed, it has no character that SQL or Spark's substitution of variables could read."""
    plain = json.dumps(description, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    if len(plain) <= _SHORT and not set("`$") & set(plain):
        return plain
    return "z:" + base64.b64encode(zlib.compress(plain.encode(), 9)).decode()


def call(description: Mapping[str, Json], argument: str) -> str:
    """SQL of the struct that the decoder makes."""
    return f"{CATALOG}.`{text(description)}`({argument})"


def column(name: str, type_: Type, **more: Json) -> dict[str, Json]:
    """What is false or None is left out."""
    return {"name": name, **of_type(type_), **{key: value for key, value in more.items() if value}}


def of_type(type_: Type) -> dict[str, Json]:
    match type_:
        case Array():
            return {"type": "array", "element": of_type(type_.element)}
        case Map():
            return {"type": "map", "value": of_type(type_.value)}
        case Struct():
            return {"type": "struct", "fields": [column(field.name, field.type) for field in type_.fields]}
        case Written():
            return {"type": str(type_.type), "format": type_.format}
    return {"type": str(type_)}


def of_json(columns: Iterable[Mapping[str, Json]], **more: Json) -> dict[str, Json]:
    return {"format": "json", "columns": list(columns), "largest": LARGEST, **more}


def avro_writer(schema: Schema, names: Mapping[Path, str] | None = None) -> dict[str, Json]:
    """How messages of a registered Avro schema are read. `names` are its fields whose columns have another name."""
    writer: dict[str, Json] = {"schema": _avro(schema.text)}
    if schema.behind:
        writer["references"] = [_avro(behind.text) for _, behind in schema.behind]
    if names:
        writer["names"] = named(names)
    return writer


def named(names: Mapping[Path, str]) -> list[Json]:
    return [[list(path), name] for path, name in sorted(names.items())]


def _avro(schema: str) -> Json:
    """Without what a reader does not need."""
    from framework.formats.avro.schema import loaded

    return _bare(loaded(schema))


def _bare(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _bare(value) for key, value in schema.items() if key not in ("doc", "aliases", "default", "order")}
