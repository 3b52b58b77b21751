"""A random key of this user, outside of all projects, for digests that lie in `.sluice`."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from framework.machine.java import jar_cache

_LENGTH = 32  # bytes


def digest(data: bytes) -> str:
    """The key's name and a digest of the data with it; only digests of one name can be compared. Empty if there can be no key."""
    key = _key()
    if key is None:
        return ""
    return f"{hashlib.sha256(key).hexdigest()[:8]}:{hmac.digest(key, data, 'sha256').hex()[:16]}"


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
        stream.write(secrets.token_bytes(_LENGTH))
    try:
        with suppress(FileExistsError):
            os.link(draft, place / "key")
    finally:
        draft.unlink()
