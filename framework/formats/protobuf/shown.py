"""Protobuf's bytes become JSON for people to read, by way of the columns, which are all that Sluice reads of a message."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from framework.encoding import json_values
from framework.encoding.confluent_frame import prefix_bytes
from framework.formats.protobuf.columns import shapes
from framework.model.schemas import Schema
from framework.types import BOOLEAN, TIMESTAMP, Array, Field, Map, Struct, Type

WRONG = "_sluice_wrong"  # the last field: whether the message is not what its schema says


def decoder(schema: Schema) -> Callable[[bytes], str]:
    import pyarrow

    from framework.formats.protobuf.decode import structs

    type_ = Struct((*(Field(each.name, each.type) for each in shapes(schema)), Field(WRONG, BOOLEAN)))

    def decode(data: bytes) -> str:
        (row,) = structs(pyarrow.array([prefix_bytes(0) + data], pyarrow.binary()), ((0, schema, ()),), type_).to_pylist()
        if row is None or row.pop(WRONG):
            raise ValueError("it is cut off, has fields that the schema does not have, or was written by another")
        return json_values.text({each.name: _plain(row[each.name], each.type) for each in type_.fields[:-1]})

    return decode


def _plain(value: Any, type_: Type) -> Any:
    """A value of Arrow as JSON has it."""
    if value is None:
        return None
    match type_:
        case Array():
            return [_plain(each, type_.element) for each in value]
        case Map():
            return {key: _plain(each, type_.value) for key, each in value}
        case Struct():
            return {each.name: _plain(value[each.name], each.type) for each in type_.fields}
    if isinstance(value, datetime):
        return json_values.iso(value.astimezone(json_values.EPOCH.tzinfo), TIMESTAMP)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
