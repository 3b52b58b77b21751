"""Debezium's change events in Avro, by an envelope's schema in the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from framework.encoding import debezium
from framework.encoding.confluent_frame import Read
from framework.formats import avro
from framework.model import Fault, Of
from framework.schemas.versions import Merged, Shape, Unsupported
from framework.sql.quote import identifier, literal
from framework.types import BIGINT

ENVELOPE = "_sluice_envelope"


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


def of_envelope(columns: Sequence[str], envelope: str) -> tuple[tuple[tuple[str, str], ...], Fault, str]:
    """SQL of these columns, `_op` and `_source_at` from a decoded struct whose `before` and `after` have all of them, as `unwrap`
    makes sure; what is wrong with it, if it is there; and which messages become rows."""
    own = ((debezium.OP.name, f"{envelope}.op"), debezium.source_at(f"{envelope}.source.ts_ms"))
    wrong = f"{envelope} IS NOT NULL AND ({debezium.incomplete(envelope)})"
    keep = f"_sluice_value IS NOT NULL AND coalesce({envelope}.op <> 'm', true)"
    of_row = ((name, f"{debezium.image(envelope)}.{identifier(name)}") for name in columns)
    return (*of_row, *own), Fault("value", "undecodable", debezium.NOT_ONE, wrong), keep


def read(of: Of, merged: Merged) -> Read:
    """What an envelope says of a row. A tombstone is left out."""
    whole = avro.read(of, merged)
    shapes, own = unwrap(merged.shapes), debezium.CHANGES.columns
    parts = ", ".join(f"{literal(name)}, {sql}" for name, sql in whole.columns)
    envelope = f"CASE WHEN {whole.apart[0][0]} IS NOT NULL THEN named_struct({parts}) END"
    columns, fault, keep = of_envelope([shape.name for shape in shapes[: -len(own)]], ENVELOPE)
    return replace(
        whole,
        columns=columns,
        apart=(*whole.apart, (ENVELOPE, envelope)),
        shapes=shapes,
        own=own,
        keep=keep,
        faults=(fault,),
        required=debezium.columns_asked(f"{ENVELOPE}.op"),
    )


VALUE = replace(
    avro.VALUE,
    read=read,
    schema_text=None,
    changes=debezium.CHANGES,
    cannot_generate="envelopes of Debezium are made of JSON only, `value: debezium_json`",
)
