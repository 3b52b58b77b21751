"""Messages that begin with the id of their schema: a byte 0, four bytes of the id, then what the schema describes.

Guarantee: a message whose id or bytes are not right is a bad row, and says which schema it claims. One whose id the registry does
not have is no bad row before the registry has been asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from framework.model import Column, Decoding, Fault, Native, Of, raw
from framework.schemas.versions import Merged, Shape
from framework.sql.quote import literal

ALL = 0
"""Among ids that the registry does not have: it is not asked for any, since messages name too many."""


@dataclass(frozen=True)
class Read:
    """How one format reads what stands behind the id: SQL of each column, and SQL that is true where the bytes are not what their
    schema says, both over `raw(of)` and the columns of `apart` and `natively`. Of messages with other ids it is not asked."""

    columns: tuple[tuple[str, str], ...]
    wrong: str
    apart: tuple[tuple[str, str], ...] = ()
    natively: tuple[Native, ...] = ()
    why: str | None = None  # SQL of what is wrong with one message, over `raw(of)` alone
    meant: Mapping[str, str] = field(default_factory=dict)
    shapes: tuple[Shape, ...] | None = None  # where the columns are not the fields of the schemas
    own: tuple[Column, ...] = ()  # columns that are there whatever the spec gives
    keep: str | None = None  # as of a decoding; a message without a value is left out then
    faults: tuple[Fault, ...] = ()
    required: str = ""  # SQL that is true of messages that have to have the required columns

    def lacks(self, sql: str) -> str:
        """SQL that is true where a message lacks a column that has to be there."""
        return f"{self.required} AND {sql} IS NULL" if self.required else f"{sql} IS NULL"


def decoded(of: Of) -> str:
    """A name for the column that a format makes `apart` or `natively`."""
    return "_sluice_decoded" if of == "value" else "_sluice_decoded_key"


def prefix_bytes(id_: int) -> bytes:
    """What a message of this schema begins with."""
    return b"\0" + (id_ & 0xFFFFFFFF).to_bytes(4, "big")


def id_of(message: bytes) -> int | None:
    """The id of the schema that a message names, if it does."""
    return int.from_bytes(message[1:5], "big") if len(message) >= 5 and message[0] == 0 else None


def id_literal(id_: int) -> str:
    """SQL of the five bytes that a message of this schema begins with."""
    return f"X'{prefix_bytes(id_).hex().upper()}'"


def prefix(of: Of) -> str:
    return f"substring({raw(of)}, 1, 5)"


def schema_id(of: Of) -> str:
    """SQL of the id that a message names, null where it names none."""
    return f"CASE WHEN startswith({raw(of)}, X'00') AND octet_length({raw(of)}) >= 5 THEN {_number(of)} END"


def decoding(of: Of, merged: Merged, read: Read, absent: Iterable[int], required: Sequence[tuple[str, str]] = ()) -> Decoding:
    """`absent` are ids that the registry was asked for and does not have. A key may be missing, a value may not. Of the columns that
    are required SQL says where a message lacks them."""
    fits = [id_literal(fit.version.id) for fit in merged.fits]
    unfit = {
        id_literal(version.id): f"the {of}'s {version} does not fit the columns: {reason}" for version, reason in merged.unfit
    }
    absent = frozenset(absent)
    framed = f"(octet_length({raw(of)}) >= 5 AND startswith({raw(of)}, X'00'))"
    known, refused = _among(of, fits), _among(of, unfit)
    found = [
        ("undecodable", f"the {of} does not begin with the id of a schema", f"NOT {framed}", ""),
        ("unknown_schema", "", f"NOT ({known} OR {refused})", f"concat('the registry has no schema ', {_number(of)})"),
        ("wrong_schema", "", refused, _chosen(of, unfit)),
        ("undecodable", "", f"{known} AND ({read.wrong})", read.why or _not_as_said(of)),
    ]
    suffix = "" if of == "value" else "_key"
    faults = [
        Fault(of, code + suffix, message or f"the {of} is not what its schema says", f"{raw(of)} IS NOT NULL AND ({when})", why)
        for code, message, when, why in found
        if when != "false"
    ]
    if of == "value" and not read.keep:
        faults.insert(0, Fault("value", "null_value", "the message has no value", f"{raw(of)} IS NULL"))
    for column, lacks in required:
        faults.append(
            Fault(of, "missing_field", f"`{column}` is required and missing or null", f"{raw(of)} IS NOT NULL AND {lacks}")
        )
    faults += read.faults
    elsewhere = f"{framed} AND NOT ({known} OR {refused} OR {_among(of, map(id_literal, sorted(absent)))})"
    return Decoding(
        parse=None, columns=read.columns, faults=tuple(faults), apart=read.apart, natively=read.natively, schema_id=schema_id(of),
        meant=read.meant, keep=read.keep,
        unknown=None if ALL in absent else f"CASE WHEN {elsewhere} THEN {_number(of)} END",
    )  # fmt: skip


def _among(of: Of, literals: Iterable[str]) -> str:
    listed = ", ".join(literals)
    return f"{prefix(of)} IN ({listed})" if listed else "false"


def _chosen(of: Of, texts: Mapping[str, str]) -> str:
    return f"CASE {prefix(of)} " + " ".join(f"WHEN {id_} THEN {literal(text)}" for id_, text in texts.items()) + " END"


def _not_as_said(of: Of) -> str:
    return f"concat('the {of} is not what schema ', {_number(of)}, ' says: it is cut off, more follows, or it was written by another')"


def _number(of: Of) -> str:
    return f"CAST(conv(hex(substring({raw(of)}, 2, 4)), 16, 10) AS BIGINT)"
