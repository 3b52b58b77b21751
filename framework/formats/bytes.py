"""Bytes: the message is the column `value`, as it is, or the key a column."""

from __future__ import annotations

from framework.model import Column, Decoding, Fault
from framework.types import BINARY

COLUMNS = (Column("value", BINARY),)


def decoding() -> Decoding:
    return Decoding(
        parse=None,
        columns=(("value", "_sluice_value"),),
        faults=(Fault("value", "null_value", "the message has no value", "_sluice_value IS NULL"),),
    )


def key(name: str) -> tuple[tuple[Column, ...], Decoding]:
    return (Column(name, BINARY, "The message's key"),), Decoding(None, ((name, "_sluice_key"),), ())
