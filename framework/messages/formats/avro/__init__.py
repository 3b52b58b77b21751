"""Avro, as Confluent's serializers write it: the id of the schema, then Avro's own bytes.

Guarantee: bytes that are cut off, that go on behind the message, or that another schema wrote make a bad row.
Limit: a field that a message's schema does not have is null, also where the schema names a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framework.base import types
from framework.messages.encoding import json_values
from framework.messages.encoding.confluent_frame import DecoderDescription, columns_of, renamed
from framework.messages.encoding.schema_writer import Way
from framework.messages.formats import OBJECT, RegisteredSchema
from framework.messages.formats.avro.schema import loaded, parse, shapes
from framework.messages.schemas.versions import Merged, Path
from framework.plan import MessagePart
from framework.plan.schema import Schema

__all__ = ["KEY", "VALUE", "decoder", "encoder", "read", "schema_text", "shapes"]

_NEEDED = frozenset(  # by a reader
    ("type", "name", "namespace", "fields", "symbols", "size", "items", "values", "logicalType", "precision", "scale")
)


def read(_part: MessagePart, merged: Merged) -> DecoderDescription:
    writers = {fit.version.id: _writer(fit.version.schema, fit.names) for fit in merged.fits}
    return DecoderDescription(format="avro", columns=columns_of(merged.shapes), writers=writers)


def _writer(schema: Schema, names: Mapping[Path, str]) -> dict[str, Any]:
    references = {"references": [_bare(loaded(reference.text)) for _, reference in schema.behind]} if schema.behind else {}
    return {"schema": _bare(loaded(schema.text)), **references, **renamed(names)}


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _bare(value) for key, value in schema.items() if key in _NEEDED}


def encoder(schema: Schema) -> Callable[[Any], bytes]:
    from framework.messages.formats.avro import writer

    return writer.encoder(schema)


def schema_text(name: str, columns: Sequence[types.Field]) -> str:
    from framework.messages.formats.avro import from_columns

    return from_columns.schema_text(name, columns)


def decoder(schema: Schema) -> Callable[[bytes], str]:
    from framework.messages.formats.avro import as_json

    values = as_json.decoder(schema)
    return lambda data: json_values.text(values(data))


def row(struct: str, schema: str) -> str:
    """Returns SQL of the bytes behind the id, from a struct and the literal of a schema."""
    return f"to_avro({struct}, {schema})"


ROW = row
CONNECT = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
VALUE = KEY = RegisteredSchema(
    kind="AVRO",
    shapes=shapes,
    read=read,
    encoder=encoder,
    decoder=decoder,
    schema_text=schema_text,
    sample=OBJECT,
    way=lambda schema: Way(single=parse(schema).kind != "record"),
)
