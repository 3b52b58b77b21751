"""The values of rotated secrets that the processes of this machine use, as digests with the user's key, below `.sluice/keys/`.

*Limit* A process of another machine, or of another user, is not seen.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from framework.base.home import home, private, put, read
from framework.machine import processes, user_key

_FOLDER = "keys"
_KEPT = 3600.0  # seconds for which the notes of a process that is not here are kept
_recording = threading.Event()  # whether this process notes what it uses
_recording.set()


@dataclass(frozen=True)
class Use:
    """A process that uses a value of a secret."""

    process: str
    secret: str
    digest: str


@contextmanager
def unnoted() -> Iterator[None]:
    """Inside the block this process notes nothing: it uses secrets to replace them, and ends."""
    was_recording = _recording.is_set()
    _recording.clear()
    try:
        yield
    finally:
        if was_recording:
            _recording.set()


def note(values: Mapping[str, str]) -> None:
    """Notes which values of secrets this process uses from now on."""
    if not _recording.is_set():
        return
    digests = {name: of_value(name, text) for name, text in values.items()}
    with _turn:
        _own.begin_again_after_fork()
        if any(_own.digests.get(name) != digest for name, digest in digests.items()):
            _own.replace(digests)
            _own.save()


def noted() -> tuple[str, ...]:
    """The names of the secrets of which this process has noted a value."""
    with _turn:
        _own.begin_again_after_fork()
        return tuple(_own.digests)


@contextmanager
def at_work() -> Iterator[None]:
    """Values that this block has begun with count as used until it ends, also where they are replaced meanwhile."""
    with _turn:
        _own.begin_again_after_fork()
        work = object()
        _own.works[work] = time.monotonic()
    try:
        yield
    finally:
        with _turn:
            _own.works.pop(work, None)
            if _own.forget_former():
                _own.save()


@dataclass
class _Own:
    """The uses of this process: the digest of each secret's value, and those that work under way may still use, with the moment since
    which they are former."""

    pid: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    former: dict[tuple[str, str], float] = field(default_factory=dict)
    works: dict[object, float] = field(default_factory=dict)

    def begin_again_after_fork(self) -> None:
        if self.pid != os.getpid():
            self.pid, self.digests, self.former, self.works = os.getpid(), {}, {}, {}

    def replace(self, digests: Mapping[str, str]) -> None:
        for name, digest in digests.items():
            earlier_digest = self.digests.get(name)
            if earlier_digest not in (None, digest):
                self.former[name, str(earlier_digest)] = time.monotonic()
            self.former.pop((name, digest), None)
            self.digests[name] = digest
        self.forget_former()

    def forget_former(self) -> bool:
        """Forgets former values that no work can use any more. Returns whether there were some."""
        oldest = min(self.works.values(), default=time.monotonic())
        still_used = {use: since for use, since in self.former.items() if since > oldest}
        is_less, self.former = len(still_used) < len(self.former), still_used
        return is_less

    def save(self) -> None:
        uses = [*self.digests.items(), *self.former]
        with suppress(OSError):
            put(
                private(_FOLDER) / f"{self.pid}.json",
                json.dumps({"began": processes.began(self.pid), "command": _command(), "uses": uses}),
            )


_turn = threading.Lock()
_own = _Own()


def of_value(name: str, text: str) -> str:
    return user_key.digest(json.dumps([name, text]).encode())


def comparable(digest: str, other: str) -> bool:
    """Whether two digests were made with one key of a user."""
    return bool(digest) and digest.partition(":")[0] == other.partition(":")[0]


def uses() -> Iterator[Use]:
    """The uses of all processes that live. Notes of those that ended long ago are deleted."""
    for path in sorted((home() / _FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            document = json.loads(read(path))
            if not path.stem.isdecimal() or processes.began(int(path.stem)) != document["began"]:
                if time.time() - path.stat().st_mtime > _KEPT:  # it may be a process of another container
                    path.unlink()
                continue
            for name, digest in document["uses"]:
                yield Use(f"{document['command']} (process {path.stem})", str(name), str(digest))


def _command() -> str:
    """The command of this process, without what could be a secret in its arguments."""
    program = Path(sys.argv[0]).name if sys.argv and not sys.argv[0].startswith("-") else "python"
    return " ".join([program, *(word for word in sys.argv[1:2] if word.isidentifier())])
