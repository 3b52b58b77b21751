"""The kinds of schemas that a registry has, and for each what can be done with it.

Cost: a kind's own libraries are imported where one of its messages is written or read here, not to plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from framework.formats.confluent_frame import Of, Read
from framework.formats.versions import Merged, Shape
from framework.model.schemas import Kind, Schema
from framework.types import Field

KINDS: Mapping[str, Kind] = {"avro": "AVRO", "debezium_avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
FORMATS: Mapping[Kind, str] = {"AVRO": "avro", "JSON": "json_schema", "PROTOBUF": "protobuf"}  # what a spec calls a kind


class Format(Protocol):
    """What a package of `framework.formats` does with schemas of its kind."""

    def shapes(self, schema: Schema) -> tuple[Shape, ...]: ...

    def read(self, of: Of, merged: Merged) -> Read: ...

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Writes what stands behind the id. A ValueError says in a few words which field does not fit."""
        ...

    def decoder(self, schema: Schema) -> Callable[[bytes], str]:
        """What stands behind the id as one line of JSON. A ValueError says what is wrong with it."""
        ...

    def schema_text(self, name: str, columns: Sequence[Field]) -> str:
        """A schema whose messages have these columns, none of which they need to have. Unsupported where there is no such column."""
        ...


def of_kind(kind: Kind) -> Format:
    if kind == "PROTOBUF":
        from framework.formats import protobuf

        return protobuf
    if kind == "JSON":
        from framework.formats import json_schema

        return json_schema
    from framework.formats import avro

    return avro
