"""Tells systemd that the stream is ready, and that it lives (`Type=notify`, `WatchdogSec=`). Without systemd nothing is told."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from framework.core.stream.health import Health

_BEAT = 1.0  # seconds


class Notifier:
    """Tells each state once, and that the process lives while it does."""

    def __init__(self, health: Callable[[], Health], stopped: Callable[[], bool]) -> None:
        self._health, self._stopped = health, stopped
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        self._is_ready = False
        self._next = 0.0

    def beat(self) -> None:
        """Tells what there is to tell; to be called again and again."""
        if not self._address:
            return
        if self._stopped():
            self._tell("STOPPING=1")
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _BEAT
            if not self._is_ready:  # it turns: what does not answer is waited for, and no reason to begin again
                self._is_ready = self._tell("READY=1")
            if self._health().lives:
                self._tell("WATCHDOG=1")

    def _tell(self, text: str) -> bool:
        """Sends a text, and returns whether it was sent. The stream does not wait where nobody reads what was sent before."""
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with suppress(OSError), socket.socket(socket.AF_UNIX, kind) as notifying:
            return notifying.sendto(text.encode(), address) > 0
        return False
