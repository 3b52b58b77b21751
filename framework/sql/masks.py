"""SQL of the functions that mask values, which `Mask.java` computes. A key is named in it, and its secret is nowhere in SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable

from framework.plan.secret import MaskKey
from framework.sql.quote import identifier
from framework.sql.settings import FUNCTIONS

SEALED = b"\0SLX"  # in front of bytes that `seal` encrypted
ENCRYPTED = "enc:"  # in front of a text that `encrypt` made


def call(does: str, keys: Iterable[MaskKey], argument: str, **more: object) -> str:
    """SQL of a call of `hmac`, `encrypt`, `ip`, `seal`, `open` or `mention`. The first key masks; all of them open."""
    return f"{FUNCTIONS}.{identifier(f'mask:{description(does, keys, **more)}')}({argument})"


def description(does: str, keys: Iterable[MaskKey], **more: object) -> str:
    """The description of a mask for `Mask.java`."""
    return json.dumps({"mask": does, "keys": [(key.id, key.secret.name) for key in keys], **more}, sort_keys=True)


def sealed_headers(keys: Iterable[MaskKey], does: str, headers: str) -> str:
    """SQL of Kafka's headers with their values sealed, or opened."""
    return f"transform({headers}, h -> named_struct('key', h.key, 'value', {call(does, keys, 'h.value')}))"
