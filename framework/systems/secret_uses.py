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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.base.home import home, private, put, read
from framework.machine import processes, user_key

_FOLDER = "keys"
_recording = threading.Event()  # whether this process notes what it uses
_recording.set()
_noted: dict[tuple[int, str], str] = {}  # the digest of each secret that this process uses, by the process


@dataclass(frozen=True)
class Use:
    """A process that uses a value of a secret, and the moment since which it does."""

    process: str
    secret: str
    digest: str
    since: float


def note_nothing() -> None:
    """This process notes nothing from now on: it uses secrets to replace them, and ends."""
    _recording.clear()


def note(values: Mapping[str, str]) -> None:
    """Notes which values of secrets this process uses from now on."""
    if not _recording.is_set():
        return
    pid, digests = os.getpid(), {name: of_value(name, text) for name, text in values.items()}
    if all(_noted.get((pid, name)) == digest for name, digest in digests.items()):
        return
    with suppress(OSError):
        path = private(_FOLDER) / f"{pid}.json"
        uses: dict[str, Any] = {}
        if any(noted_pid == pid for noted_pid, _ in _noted):
            with suppress(OSError, ValueError, KeyError):
                uses = json.loads(read(path))["uses"]
        uses |= {name: [digest, time.time()] for name, digest in digests.items() if _noted.get((pid, name)) != digest}
        put(path, json.dumps({"began": processes.began(pid), "command": _command(), "uses": uses}))
        _noted.update({(pid, name): digest for name, digest in digests.items()})


def of_value(name: str, text: str) -> str:
    return user_key.digest(json.dumps([name, text]).encode())


def uses() -> Iterator[Use]:
    """The uses of all processes that live. Files of others are deleted."""
    for path in sorted((home() / _FOLDER).glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            document = json.loads(read(path))
            if not path.stem.isdecimal() or processes.began(int(path.stem)) != document["began"]:
                path.unlink()
                continue
            for name, (digest, since) in document["uses"].items():
                yield Use(f"{document['command']} (process {path.stem})", name, digest, float(since))


def _command() -> str:
    """The command of this process, without what could be a secret in its arguments."""
    program = Path(sys.argv[0]).name if sys.argv and not sys.argv[0].startswith("-") else "python"
    return " ".join([program, *(word for word in sys.argv[1:2] if word.isidentifier())])
