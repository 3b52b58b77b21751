"""`sluice stream` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from framework.machine.services.ports import free_port
from tests.support.project import Project
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SLUICE = [sys.executable, "-c", "from framework.host.cli import main; main()"]


class Streaming:
    """A stream in a process of its own, and the lines that it has written."""

    def __init__(self, project: Project, *arguments: str, **environment: str) -> None:
        self.port = free_port()
        specs = str(Path(project.pipeline.where.file).parent)
        command = [*SLUICE, "stream", *arguments, "--log", "json", "--port", str(self.port), "--specs", specs]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **environment},
        )  # fmt: skip
        self.events: list[dict[str, Any]] = []
        self.errors: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def rows(self) -> int:
        return sum(event["rows"] for event in self.events if event["event"] == "BatchDone")

    def told(self, event: str) -> list[dict[str, Any]]:
        return [told for told in self.events if told["event"] == event]

    def wait_for(self, count: int) -> None:
        def are_there() -> bool:
            assert self.process.poll() is None, "".join(self.errors)
            return self.rows() >= count

        until(are_there, f"{count} rows do not land: {self.events} {self.errors}", 300)

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def lives(self) -> bool:
        try:
            return self.ask("/healthz")[0] == 200
        except OSError:  # it does not listen yet
            return False

    def end(self) -> float:
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, "".join(self.errors)
        return time.monotonic() - began

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)


@contextmanager
def streaming(project: Project, *arguments: str, **environment: str) -> Iterator[Streaming]:
    stream = Streaming(project, *arguments, **environment)
    try:
        yield stream
    finally:
        if stream.process.poll() is None:
            stream.kill()
