"""SQL of the functions that mask values, which `Mask.java` computes. The SQL names a key, and never has its secret."""

from __future__ import annotations

import json
from collections.abc import Iterable

from framework.plan.secret import MaskKey
from framework.sql.quote import identifier
from framework.sql.settings import FUNCTIONS

SEALED = b"\0SLX"  # in front of bytes that `seal` encrypted
ENCRYPTED = "enc:"  # in front of a text that `encrypt` made


def call(action: str, keys: Iterable[MaskKey], argument: str, **options: object) -> str:
    """Returns SQL of a call of `hmac`, `encrypt`, `ip`, `seal`, `open` or `mention`. The first key masks; all of them open."""
    return f"{FUNCTIONS}.{identifier(f'mask:{description(action, keys, **options)}')}({argument})"


def description(action: str, keys: Iterable[MaskKey], **options: object) -> str:
    """Returns the description of a mask for `Mask.java`."""
    return json.dumps({"mask": action, "keys": [(key.id, key.secret.name) for key in keys], **options}, sort_keys=True)


def sealed_headers(keys: Iterable[MaskKey], action: str, headers: str) -> str:
    """Returns SQL of Kafka's headers with their values sealed, or opened."""
    return f"transform({headers}, h -> named_struct('key', h.key, 'value', {call(action, keys, 'h.value')}))"
