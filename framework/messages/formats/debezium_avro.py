"""Debezium's change events in Avro, by an envelope's schema in the registry."""

from __future__ import annotations

from dataclasses import replace

from framework.base.types import BIGINT
from framework.messages.encoding import debezium
from framework.messages.encoding.confluent_frame import Read, columns_of
from framework.messages.formats import avro
from framework.messages.schemas.versions import Merged, Shape, Unsupported
from framework.plan import Of


def unwrap(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The columns, of the shapes of an envelope."""
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
    if [(each.name, each.type) for each in images["before"]] != [(each.name, each.type) for each in images["after"]]:
        raise Unsupported(
            "`before` and `after` have other fields", "Debezium writes both of one table: see what the registry has"
        )
    if not any(each.name == "ts_ms" and each.type == BIGINT for each in parts["source"].inside):
        raise Unsupported("`source` has no `ts_ms`", hint)
    own = [column.name for column in debezium.CHANGES.columns]
    taken = next((each.name for each in images["after"] if each.name.lower() in own), None)
    if taken:
        raise Unsupported(f"the table has a column `{taken}`, which Sluice makes itself", "rename it in the connector")
    return (*images["after"], *(Shape(column.name, column.type, column.doc) for column in debezium.CHANGES.columns))


def read(of: Of, merged: Merged) -> Read:
    """The row's change that an envelope describes."""
    shapes, own = unwrap(merged.shapes), debezium.CHANGES.columns
    image = columns_of(shapes[: -len(own)])
    return replace(avro.read(of, merged), columns=image, more=debezium.ENVELOPE, shapes=shapes, own=own, keep=debezium.KEEP)


VALUE = replace(
    avro.VALUE,
    read=read,
    schema_text=None,
    changes=debezium.CHANGES,
    cannot_generate="envelopes of Debezium are made of JSON only, `value: debezium_json`",
)
