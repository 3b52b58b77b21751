"""Text: the message is the column `value`, or the key a column."""

from __future__ import annotations

from framework.model import Column, Decoding, Fault
from framework.types import STRING

COLUMNS = (Column("value", STRING),)


def decoding() -> Decoding:
    return Decoding(
        parse=None,
        columns=(("value", "_sluice_text"),),
        faults=(
            Fault("value", "null_value", "the message has no value", "_sluice_value IS NULL"),
            Fault("value", "undecodable", "the value is not UTF-8 text", "NOT is_valid_utf8(_sluice_text)"),
        ),
    )


def key(name: str) -> tuple[tuple[Column, ...], Decoding]:
    text = "CAST(_sluice_key AS STRING)"
    fault = Fault("key", "undecodable_key", "the key is not UTF-8 text", f"NOT coalesce(is_valid_utf8({text}), true)")
    return (Column(name, STRING, "The message's key"),), Decoding(None, ((name, text),), (fault,))
