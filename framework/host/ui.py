"""Dagster's web server for a folder of specs, with the daemon that starts runs. They are processes of one group, which end together.

*Limit* The web server has no login, so it listens on this machine alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import dagster_home, home
from framework.base.patience import DAGSTER_STARTING
from framework.machine.processes import end_group
from framework.machine.services import http, process

DEFINITIONS = Path(__file__).resolve().parents[2] / "pipelines" / "definitions.py"


@dataclass(frozen=True)
class Server:
    address: str
    log: Path
    child: subprocess.Popen[bytes]

    def ended(self) -> SetupError | None:
        """The error for a Dagster that ended."""
        status = self.child.poll()
        return None if status is None else process.failed(f"Dagster ended by itself, with exit status {status}", self.log)


@contextmanager
def served(specs: Path, environment: str, port: int, read_only: bool, stopped: Callable[[], bool]) -> Iterator[Server]:
    """A running Dagster, which answers unless it was stopped before; all its processes are ended afterwards. A read-only one has no
    daemon, and can run at the same time as another."""
    log = home() / f"ui-{port}.log"
    module = ["dagster_webserver", "--read-only"] if read_only else ["dagster", "dev"]
    command = [sys.executable, "-m", *module, "-w", str(_workspace()), "-h", "127.0.0.1", "-p", str(port)]
    environ = {"DAGSTER_HOME": str(dagster_home()), "SLUICE_SPECS": str(specs), "SLUICE_ENV": environment}
    with _alone(port, read_only) as lock_files:
        with open(log, "wb") as log_file:
            child = subprocess.Popen(
                process.launched(command, signal.SIGTERM), env={**os.environ, **environ}, stdin=subprocess.DEVNULL, stdout=log_file,
                stderr=log_file, start_new_session=True, pass_fds=lock_files,
            )  # fmt: skip
        server = Server(f"http://127.0.0.1:{port}", log, child)
        try:
            _wait(server, port, stopped)
            yield server
        finally:
            end_group(child)


def _workspace() -> Path:
    """The file with the code location and its name for Dagster. It names a path: own steps hide the package of the same name."""
    target = {"relative_path": str(DEFINITIONS), "working_directory": str(Path.cwd()), "location_name": "sluice"}
    path = Path(dagster_home(), "workspace.yaml")
    path.write_text(json.dumps({"load_from": [{"python_file": target}]}), encoding="utf-8")
    return path


def running() -> str | None:
    """The address of the Dagster that was started here with a daemon and still runs."""
    with suppress(OSError), open(os.open(_lock(), os.O_RDONLY | os.O_NONBLOCK)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read().strip()
    return None


def _lock() -> Path:
    return home() / "ui.lock"


@contextmanager
def _alone(port: int, read_only: bool) -> Iterator[tuple[int, ...]]:
    """A lock, because two daemons of one home would both start runs. Yields the lock's file: a child that inherits it holds the lock
    as long as it lives, even if this process is killed."""
    if read_only:
        yield ()
        return
    with open(_lock(), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "stop that one, or use --read-only with another --port"
            raise SetupError("ui-running", f"Dagster already runs here, at {running() or 'another port'}", hint) from None
        file.truncate(0)
        file.write(f"http://127.0.0.1:{port}")
        file.flush()
        yield (file.fileno(),)
        file.truncate(0)


def _wait(server: Server, port: int, stopped: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DAGSTER_STARTING
    while not stopped():
        if ended := server.ended():
            raise ended
        if http.status(port, "GET", "/server_info") == 200:
            return
        if time.monotonic() > deadline:
            raise process.failed(f"Dagster did not answer within {DAGSTER_STARTING:.0f} seconds", server.log)
        time.sleep(0.2)
