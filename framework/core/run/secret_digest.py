"""A digest of the secrets that a pipeline uses, from which a later process tells whether one of them has changed.

The digest lies in `.sluice`, so it must not give away a short password to those who can read that folder, or a copy of it. A hash
would: all likely passwords can be tried, with a salt that lies next to it, too. So it is an HMAC, whose random key lies outside
of the project, in the user's cache folder, readable by its owner alone. A time of change would do for a file, but variables of
the environment have none.

*Limit* Digests with different keys cannot be compared: if the key was lost, or the folder is not writable, a change goes
unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from framework.base.errors import SluiceError
from framework.machine import user_key
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems import secrets


def digest(data: object, store: SecretStore) -> str:
    """The key's name and the digest of the secrets in `data`. Empty if it has no secret, or there can be no key."""
    names = sorted({secret.name for secret in used_secrets(data)})
    return user_key.digest(json.dumps([(name, *_state(name, store)) for name in names]).encode()) if names else ""


def is_another(recorded: str, current: str) -> bool:
    """Whether a secret has changed between two digests; False if these have different keys."""
    return recorded.partition(":")[0] == current.partition(":")[0] and recorded != current


def used_secrets(value: object) -> Iterator[SecretRef]:
    """The secrets in plain data, such as a pipeline with its topics, clusters, steps, catalogs and followers."""
    if isinstance(value, SecretRef):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from used_secrets(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from used_secrets(tuple(value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from used_secrets(item)


def _state(name: str, store: SecretStore) -> tuple[str, str]:
    """The secret's value, or the code of the error that reading it raises: a file that others can read is not a missing one."""
    try:
        return "value", secrets.reveal(SecretRef(name), store)
    except SluiceError as error:
        return "error", error.code
