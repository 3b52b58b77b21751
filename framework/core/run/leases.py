"""Leases: a process that runs a pipeline all the time tells the others of this machine so, by a lock on a file below `.sluice/streams/`.

*Guarantee* A pipeline has at most one lease. It ends with its process, however that ends; the file stays, and says nothing then.
*Limit* Only processes that use the same `.sluice` folder see it. No row depends on it: two that run one pipeline load nothing twice.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from framework.base import iso_times
from framework.base.clock import utc_now
from framework.base.home import home, private

FOLDER = "streams"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


def owner(pipeline: str) -> str | None:
    """The process that has the lease of a pipeline, in words; None if nobody has it. The pipeline is named by its `journal_name`."""
    try:
        file = os.open(home() / FOLDER / f"{pipeline}.lease", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.read(file, 200).decode(errors="replace") or "another process"
    finally:
        os.close(file)
    return None


class Leases:
    """The leases that this process has."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def keep(self, pipelines: Iterable[str]) -> Mapping[str, str]:
        """Takes the leases of these pipelines, and gives up all others. Returns the owners of those that other processes have."""
        wanted = set(pipelines)
        for name in self._files.keys() - wanted:
            os.close(self._files.pop(name))
        return {name: owner_words for name in sorted(wanted - self._files.keys()) if (owner_words := self._take(name))}

    def _take(self, name: str) -> str | None:
        """Takes one lease, or returns who has it. Where no lock can be had at all, nobody has it."""
        try:
            path = private(FOLDER) / f"{name}.lease"
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, _FLAGS, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return owner(name)  # nobody, if somebody only looked whether there is one: the lease is taken the next time
        self._files[name] = file
        with suppress(OSError):  # on a full disk, nobody reads who has it
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()} since {iso_times.text(utc_now().replace(microsecond=0))}".encode(), 0)
        return None
