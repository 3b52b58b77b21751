"""A whole number of 8 bytes, the first being the highest, as Java's clients write it. Only keys are written so."""

from __future__ import annotations

from framework.model import Column, Decoding, Fault
from framework.types import BIGINT


def key(name: str) -> tuple[tuple[Column, ...], Decoding]:
    return (Column(name, BIGINT, "The message's key"),), Decoding(
        parse=None,
        columns=((name, "CAST(conv(hex(_sluice_key), 16, -10) AS BIGINT)"),),
        faults=(Fault("key", "undecodable_key", "the key is not a number of 8 bytes", "octet_length(_sluice_key) <> 8"),),
    )
