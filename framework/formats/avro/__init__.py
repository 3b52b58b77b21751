"""Avro, as Confluent's serializers write it: the id of the schema, then Avro's own bytes.

Guarantee: bytes that are cut off, that go on behind the message, or that another schema wrote make a bad row.
Limit: a field that a message's schema does not have is null, also where the schema names a default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from secrets import token_bytes
from typing import Any

from framework import types
from framework.encoding import json_values
from framework.encoding.confluent_frame import Read, decoded, id_literal, prefix
from framework.encoding.schema_writer import Way
from framework.formats import OBJECT, BySchema
from framework.formats.avro.reader import MARK_BYTES, Writer, schemas
from framework.formats.avro.schema import parse, record, shapes
from framework.model import Of, raw
from framework.model.schemas import Schema
from framework.schemas.versions import Merged
from framework.sql.quote import identifier, literal
from framework.types import Type

__all__ = ["KEY", "VALUE", "decoder", "encoder", "read", "schema_text", "shapes"]

MARK = "_sluice_mark_bytes"
# A message cannot know them, for they are new in each process; and no byte can end one of Avro's numbers.
_MEANT = {MARK: f"X'{bytes(byte | 0x80 for byte in token_bytes(MARK_BYTES)).hex()}'"}
_FEW = 8  # versions that are told apart by comparing


def read(of: Of, merged: Merged) -> Read:
    """All versions by one `from_avro`."""
    writers = [Writer(at, record(fit.version.schema), fit.names) for at, fit in enumerate(merged.fits)]
    made = schemas(merged.shapes, writers)
    message = f"concat({_index(of, merged)}, substring({raw(of)}, 6), {MARK})"
    options = f"map('mode', 'PERMISSIVE', 'avroSchema', {literal(made.reader)})"
    into = decoded(of)
    columns = tuple((name, convert(f"{into}.v")) for name, convert in made.columns)
    unfit = [
        found for (_, sql), shape in zip(columns, merged.shapes, strict=True) if (found := _unfit(sql, shape.type))
    ]  # Avro gives texts and times as they are
    return Read(
        columns=columns,
        wrong=" OR ".join([f"coalesce({into}._sluice_mark <> {MARK}, true)", *unfit]),
        apart=((into, f"from_avro({message}, {literal(made.writer)}, {options})"),),
        meant=_MEANT,
    )


def encoder(schema: Schema) -> Callable[[Any], bytes]:
    from framework.formats.avro import writer

    return writer.encoder(schema)


def schema_text(name: str, columns: Sequence[types.Field]) -> str:
    from framework.formats.avro import writer

    return writer.schema_text(name, columns)


def decoder(schema: Schema) -> Callable[[bytes], str]:
    from framework.formats.avro import shown

    values = shown.decoder(schema)
    return lambda data: json_values.text(values(data))


def _index(of: Of, merged: Merged) -> str:
    """SQL of the union's index, as Avro writes it, of the version that a message is of; null where it is of none."""
    there = [(id_literal(fit.version.id), f"X'{_zigzag(at).hex()}'") for at, fit in enumerate(merged.fits)]
    if len(there) <= _FEW:
        return "CASE " + prefix(of) + " " + " ".join(f"WHEN {id_} THEN {index}" for id_, index in there) + " END"
    return f"try_element_at(map({', '.join(f'{id_}, {index}' for id_, index in there)}), {prefix(of)})"


def _unfit(sql: str, type_: Type, depth: int = 0) -> str | None:
    """SQL that is true where a text is not UTF-8 or a time is not of the years 1 to 9999, beyond which readers fail."""
    variable = f"u{depth}"
    match type_:
        case types.STRING:
            return f"NOT coalesce(is_valid_utf8({sql}), true)"
        case types.DATE | types.TIMESTAMP | types.TIMESTAMP_NTZ:
            name = str(type_).upper()
            first, behind = (f"{name}'{day}'" for day in ("0001-01-01", "+10000-01-01"))
            return f"NOT coalesce({sql} >= {first} AND {sql} < {behind}, true)"
        case types.Array():
            found = _unfit(variable, type_.element, depth + 1)
            return f"coalesce(exists({sql}, {variable} -> {found}), false)" if found else None
        case types.Map():
            ways = [(f"map_keys({sql})", type_.key), (f"map_values({sql})", type_.value)]
            found_in = ((of, _unfit(variable, each, depth + 1)) for of, each in ways)
            return " OR ".join(f"coalesce(exists({of}, {variable} -> {found}), false)" for of, found in found_in if found)
        case types.Struct():
            parts = (_unfit(f"{sql}.{identifier(each.name)}", each.type, depth) for each in type_.fields)
            return " OR ".join(part for part in parts if part) or None
    return None


def _zigzag(number: int) -> bytes:
    """A number that is not below 0, as Avro writes it."""
    number, made = number << 1, b""
    while number > 0x7F:
        made, number = made + bytes([number & 0x7F | 0x80]), number >> 7
    return made + bytes([number])


VALUE = KEY = BySchema(
    kind="AVRO",
    shapes=shapes,
    read=read,
    encoder=encoder,
    decoder=decoder,
    schema_text=schema_text,
    sample=OBJECT,
    way=lambda schema: Way(single=parse(schema).kind != "record"),
)
