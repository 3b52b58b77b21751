"""Messages that begin with the id of their schema: a byte 0, four bytes of the id, then what the schema describes.

Guarantee: a message whose id or bytes are not right is a bad row, and says which schema it claims. One whose id the registry does
not have is no bad row before the registry has been asked for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.messages.encoding import decoder
from framework.messages.schemas.versions import ColumnShape, Merged, Path
from framework.plan import Column, Decoding, MessagePart, part_sql

ALL = 0
"""Stands among the absent ids where messages name too many unknown ids, so that the registry is asked for none."""


@dataclass(frozen=True, kw_only=True)
class DecoderDescription:
    """A decoder's description of the bytes behind the id: the columns, and for each schema's id how its messages are read."""

    format: str  # as a description calls it
    columns: tuple[Mapping[str, Any], ...]
    writers: Mapping[int, Mapping[str, Any]]
    extra_keys: Mapping[str, Any] = field(default_factory=dict)  # of the description
    shapes: tuple[ColumnShape, ...] | None = None  # where the columns are not the fields of the schemas
    own_columns: tuple[Column, ...] = ()  # columns that the decoder adds
    keep: str | None = None  # like `keep` of a decoding


def columns_of(shapes: Iterable[ColumnShape]) -> tuple[Mapping[str, Any], ...]:
    return tuple(decoder.column(shape.name, shape.type) for shape in shapes)


def renamed(names: Mapping[Path, str]) -> dict[str, Any]:
    """The part of a writer that says which of its fields' columns have another name."""
    return {"names": [[list(path), name] for path, name in sorted(names.items())]} if names else {}


def prefix_bytes(id_: int) -> bytes:
    """The first bytes of a message of this schema."""
    return b"\0" + (id_ & 0xFFFFFFFF).to_bytes(4, "big")


def id_of(message: bytes) -> int | None:
    """The id of the schema that a message names, if it does."""
    return int.from_bytes(message[1:5], "big") if len(message) >= 5 and message[0] == 0 else None


def decoding(
    part: MessagePart,
    merged: Merged,
    read: DecoderDescription,
    columns: Iterable[tuple[str, str]],
    required: Collection[str],
    absent: Iterable[int],
) -> Decoding:
    """Returns the decoding of a key or value. `columns` are SQL over the decoder's struct. `absent` are ids that the registry was asked
    for and does not have. A key may be missing, a value may not."""
    unfit_writers = {
        version.id: {"refused": f"the {part}'s {version} does not fit the columns: {reason}"} for version, reason in merged.unfit
    }
    may_be_missing = part == "key" or "absent" in read.extra_keys
    description = {
        "format": read.format,
        "part": part,
        "columns": [{**column, "required": True} if column["name"] in required else column for column in read.columns],
        "writers": {**unfit_writers, **read.writers},
        **({"absent": "null"} if may_be_missing else {}),
        **read.extra_keys,
    }
    codes = ["too_large", "undecodable", "unknown_schema", "wrong_schema"]
    codes = codes if may_be_missing else ["null_value", *codes]
    base_decoding = decoder.decoding(part, description, codes, "is not what its schema says")
    absent = sorted(set(absent))
    unknown_sql = f"{decoder.code_sql(part)} = 'unknown_schema'"
    if absent:
        unknown_sql += f" AND {_number(part)} NOT IN ({', '.join(map(str, absent))})"
    return Decoding(
        tuple(columns), base_decoding.faults, structs=base_decoding.structs, keep=read.keep, schema_id=schema_id(part),
        unknown=None if ALL in absent else f"CASE WHEN {unknown_sql} THEN {_number(part)} END",
    )  # fmt: skip


def schema_id(part: MessagePart) -> str:
    """Returns SQL of the schema's id that a message names, null where it names none."""
    return f"CASE WHEN startswith({part_sql(part)}, X'00') AND octet_length({part_sql(part)}) >= 5 THEN {_number(part)} END"


def _number(part: MessagePart) -> str:
    return f"CAST(conv(hex(substring({part_sql(part)}, 2, 4)), 16, 10) AS BIGINT)"
