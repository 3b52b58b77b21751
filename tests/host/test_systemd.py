"""The words that a stream sends to systemd."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framework.host.streaming import systemd
from framework.host.streaming.systemd import Notifier


def test_a_stream_does_not_wait_for_a_systemd_that_does_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setattr(systemd, "_BEAT", 0.0)  # a beat each second would take a minute
    notifier = Notifier(lambda: cast(Any, SimpleNamespace(lives=True)), lambda: False)
    notifier.beat()  # nobody is there
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(str(tmp_path / "notify"))
        reader.settimeout(5)
        for _ in range(100):
            notifier.beat()
        assert [reader.recv(100), reader.recv(100)] == [b"READY=1", b"WATCHDOG=1"]
