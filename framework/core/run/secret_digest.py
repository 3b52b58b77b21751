"""A digest of the secrets that a pipeline uses, from which a later process tells whether one of them has changed.

The digest lies in `.sluice`, so it must not give away a short password to those who can read that folder, or a copy of it. A hash
would: all likely passwords can be tried, with a salt that lies next to it, too. So it is an HMAC, whose random key lies outside
of the project, in the user's cache folder, readable by its owner alone. A time of change would do for a file, but variables of
the environment have none.

*Limit* Digests with different keys cannot be compared: if the key was lost, or the folder is not writable, a change goes
unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets as random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

from framework.base.errors import SluiceError
from framework.machine.java import jar_cache
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems import secrets

_LENGTH = 32  # bytes of the key


def digest(data: object, store: SecretStore) -> str:
    """The key's name and the digest of the secrets in `data`. Empty if it has no secret, or there can be no key."""
    names = sorted({secret.name for secret in used_secrets(data)})
    key = _key() if names else None
    if key is None:
        return ""
    states = [(name, *_state(name, store)) for name in names]
    key_name = hashlib.sha256(key).hexdigest()[:8]
    return f"{key_name}:{hmac.digest(key, json.dumps(states).encode(), 'sha256').hex()[:16]}"


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


def _key() -> bytes | None:
    """The user's key, which is created at its first use. None if it cannot be created or read."""
    place = jar_cache.shared("key of digests")
    with suppress(OSError):
        if not (place / "key").exists():
            _make_key(place)
        key = (place / "key").read_bytes()
        return key if len(key) == _LENGTH else None
    return None


def _make_key(place: Path) -> None:
    """Creates the user's key. If two processes do so at once, the first one's key stays."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = place / f"draft.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
        stream.write(random.token_bytes(_LENGTH))
    try:
        with suppress(FileExistsError):
            os.link(draft, place / "key")
    finally:
        draft.unlink()
