"""Text: the message is the column `value`."""

from __future__ import annotations

from framework.plan.model import Column, Decoding, Fault
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
