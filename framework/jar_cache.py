"""One cache of jars per user, so that only the first folder on a machine fetches them: `sluice/jars` in XDG's cache folder.

*Guarantee*: a file is taken only with the SHA-256 that it is called by; what has another one is removed.
*Limit*: without a folder that can be written to there is no cache, and everything works without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path


def take(sha256: str, target: Path) -> bool:
    """Puts the cached file at a place where nothing is yet, if there is one that is right."""
    cached = _folder() / sha256
    try:
        _copy(cached, target)
        if digest(target) == sha256:
            return True
        target.unlink()
        cached.unlink()
    except OSError:
        pass
    return False


def keep(sha256: str, file: Path) -> None:
    """Keeps a file whose SHA-256 was found right."""
    cached = _folder() / sha256
    with suppress(OSError):
        if not cached.exists():
            cached.parent.mkdir(parents=True, exist_ok=True)
            draft = cached.with_name(f"{sha256}.{os.getpid()}")
            try:
                _copy(file, draft)
                draft.replace(cached)
            finally:
                draft.unlink(missing_ok=True)


def digest(file: Path) -> str | None:
    """The file's SHA-256, None if there is none."""
    try:
        with open(file, "rb") as handle:
            sha256 = hashlib.sha256()
            while block := handle.read(1 << 20):
                sha256.update(block)
            return sha256.hexdigest()
    except FileNotFoundError:
        return None


def _folder() -> Path:
    named = os.environ.get("XDG_CACHE_HOME", "")  # one that is not absolute does not count, says its specification
    base = named if os.path.isabs(named) else os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "sluice", "jars")


def _copy(source: Path, target: Path) -> None:
    """As the same file where the disk can, which takes no room; jars are replaced and never written into."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
