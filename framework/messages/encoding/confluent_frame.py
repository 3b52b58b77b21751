"""Messages that begin with the id of their schema: a byte 0, four bytes of the id, then what the schema describes.

Guarantee: a message whose id or bytes are not right is a bad row, and says which schema it claims. One whose id the registry does
not have is no bad row before the registry has been asked for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.messages.encoding import decoder
from framework.messages.schemas.versions import Merged, Path, Shape
from framework.plan import Column, Decoding, Of, raw

ALL = 0
"""Among ids that the registry does not have: it is not asked for any, since messages name too many."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """A decoder's description of the bytes behind the id: the columns, and for each schema's id how its messages are read."""

    format: str  # as a description calls it
    columns: tuple[Mapping[str, Any], ...]
    writers: Mapping[int, Mapping[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict)  # of the description
    shapes: tuple[Shape, ...] | None = None  # where the columns are not the fields of the schemas
    own: tuple[Column, ...] = ()  # columns that the decoder adds
    keep: str | None = None  # as of a decoding


def columns_of(shapes: Iterable[Shape]) -> tuple[Mapping[str, Any], ...]:
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
    of: Of, merged: Merged, read: Read, columns: Iterable[tuple[str, str]], required: Collection[str], absent: Iterable[int]
) -> Decoding:
    """`columns` are SQL over the decoder's struct. `absent` are ids that the registry was asked for and does not have. A key may be
    missing, a value may not."""
    unfit = {
        version.id: {"refused": f"the {of}'s {version} does not fit the columns: {reason}"} for version, reason in merged.unfit
    }
    may_be_missing = of == "key" or "absent" in read.more
    description = {
        "format": read.format,
        "part": of,
        "columns": [{**each, "required": True} if each["name"] in required else each for each in read.columns],
        "writers": {**unfit, **read.writers},
        **({"absent": "null"} if may_be_missing else {}),
        **read.more,
    }
    codes = ["too_large", "undecodable", "unknown_schema", "wrong_schema"]
    codes = codes if may_be_missing else ["null_value", *codes]
    decoded = decoder.decoding(of, description, codes, "is not what its schema says")
    absent = sorted(set(absent))
    unknown = f"{decoder.code_sql(of)} = 'unknown_schema'"
    if absent:
        unknown += f" AND {_number(of)} NOT IN ({', '.join(map(str, absent))})"
    return Decoding(
        tuple(columns), decoded.faults, structs=decoded.structs, keep=read.keep, schema_id=schema_id(of),
        unknown=None if ALL in absent else f"CASE WHEN {unknown} THEN {_number(of)} END",
    )  # fmt: skip


def schema_id(of: Of) -> str:
    """SQL of the id that a message names, null where it names none."""
    return f"CASE WHEN startswith({raw(of)}, X'00') AND octet_length({raw(of)}) >= 5 THEN {_number(of)} END"


def _number(of: Of) -> str:
    return f"CAST(conv(hex(substring({raw(of)}, 2, 4)), 16, 10) AS BIGINT)"
