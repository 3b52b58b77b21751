"""One cache per user, so that only the first folder on a machine downloads jars: `sluice/jars` in XDG's cache folder. Next to it are the
places that folders with the same program share, so that Spark's classes are cached once, too.

*Guarantee* A file is used only if its SHA-256 is its name; any other file is removed.
*Limit* If the folder cannot be written to, everything works without a cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path


def take(sha256: str, target: Path) -> bool:
    """Copy the cached file to a new place, if the cache has it with the right SHA-256."""
    cached = _folder() / sha256
    try:
        _copy(cached, target)
        if digest(target) == sha256:
            return True
        cached.unlink()
    except OSError:
        pass
    with suppress(OSError):
        target.unlink(missing_ok=True)  # also what a full disk cut off
    return False


def keep(sha256: str, file: Path) -> None:
    """Add a file whose SHA-256 was checked."""
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


def shared(program: str) -> Path:
    """The folder for what this program needs."""
    return _folder().parent / hashlib.sha256(program.encode()).hexdigest()[:16]


def writable(place: Path) -> bool:
    """Makes the folder. Returns whether it can be written to."""
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
    return os.access(place, os.W_OK)


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
    cache_home = os.environ.get("XDG_CACHE_HOME", "")  # the XDG specification ignores a relative path
    base = cache_home if os.path.isabs(cache_home) else os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "sluice", "jars")


def _copy(source: Path, target: Path) -> None:
    """Copies a file, by a hard link if the disk allows one, which takes no space: jars are replaced, never written into."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
