"""The Avro schema of a record with given columns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from framework.base import types
from framework.base.types import Array, Decimal, Field, Map, Struct, Type
from framework.messages.schemas.versions import Unsupported

Json = Any
_SAYS: dict[Type, Json] = {
    types.BOOLEAN: "boolean", types.TINYINT: "int", types.SMALLINT: "int", types.INT: "int", types.BIGINT: "long",
    types.FLOAT: "float", types.DOUBLE: "double", types.STRING: "string", types.BINARY: "bytes",
    types.DATE: {"type": "int", "logicalType": "date"},
    types.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    types.TIMESTAMP_NTZ: {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def schema_text(name: str, columns: Sequence[Field]) -> str:
    """Returns a schema of a record with these columns. Each may be null, its default; tinyint and smallint come back as int."""
    return json.dumps(_record(name, columns))


def _record(name: str, fields: Sequence[Field]) -> Json:
    members = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise Unsupported(f"`{field.name}` cannot be a field of an Avro record", "its names are of A-Z, a-z, 0-9 and `_`")
        members.append({"name": field.name, "type": ["null", _says(field.type, f"{name}_{field.name}")], "default": None})
    return {"type": "record", "name": name, "fields": members}


def _says(type_: Type, name: str) -> Json:
    match type_:
        case Array():
            return {"type": "array", "items": ["null", _says(type_.element, name)]}
        case Map() if type_.key == types.STRING:
            return {"type": "map", "values": ["null", _says(type_.value, name)]}
        case Struct():
            return _record(name, type_.fields)
        case Decimal():
            return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if type_ not in _SAYS:
        raise Unsupported(f"Avro has no {type_}", "its maps have keys that are text")
    return _SAYS[type_]
