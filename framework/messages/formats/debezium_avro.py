"""Debezium's change events in Avro, by an envelope's schema in the registry."""

from __future__ import annotations

from dataclasses import replace

from framework.base.types import BIGINT
from framework.messages.encoding import debezium
from framework.messages.encoding.confluent_frame import DecoderDescription, columns_of
from framework.messages.formats import avro
from framework.messages.schemas.versions import ColumnShape, Merged, Unsupported
from framework.plan import MessagePart


def unwrap(shapes: tuple[ColumnShape, ...]) -> tuple[ColumnShape, ...]:
    """Returns the columns of an envelope, whose own fields are these shapes."""
    parts = {shape.name: shape for shape in shapes}
    hint = "is it a topic of Debezium? Otherwise write `value: avro`"
    for name in ("op", "before", "after", "source"):
        if name not in parts:
            raise Unsupported(f"an envelope of Debezium has `{name}`, and this schema has not", hint)
    images = {name: parts[name].inside for name in ("after", "before")}
    if not all(images.values()):
        hint = (
            "a text, as of MongoDB, has no columns: unwrap it in the connector (ExtractNewDocumentState), and write `value: avro`"
        )
        raise Unsupported("`before` and `after` are no records", hint)
    if [(field.name, field.type) for field in images["before"]] != [(field.name, field.type) for field in images["after"]]:
        raise Unsupported(
            "`before` and `after` have other fields", "Debezium writes both of one table: see what the registry has"
        )
    if not any(field.name == "ts_ms" and field.type == BIGINT for field in parts["source"].inside):
        raise Unsupported("`source` has no `ts_ms`", hint)
    own_names = [column.name for column in debezium.CHANGES.columns]
    taken_name = next((field.name for field in images["after"] if field.name.lower() in own_names), None)
    if taken_name:
        raise Unsupported(f"the table has a column `{taken_name}`, which Sluice makes itself", "rename it in the connector")
    return (*images["after"], *(ColumnShape(column.name, column.type, column.doc) for column in debezium.CHANGES.columns))


def read(part: MessagePart, merged: Merged) -> DecoderDescription:
    """Returns the decoder's description of the change of a row that an envelope holds."""
    shapes, own_columns = unwrap(merged.shapes), debezium.CHANGES.columns
    image = columns_of(shapes[: -len(own_columns)])
    return replace(
        avro.read(part, merged),
        columns=image,
        extra_keys=debezium.ENVELOPE,
        shapes=shapes,
        own_columns=own_columns,
        keep=debezium.KEEP,
    )


VALUE = replace(
    avro.VALUE,
    read=read,
    schema_text=None,
    changes=debezium.CHANGES,
    cannot_generate="envelopes of Debezium are made of JSON only, `value: debezium_json`",
)
