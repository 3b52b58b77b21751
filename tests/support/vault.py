"""A Vault of this machine, which Go builds: three minutes the first time, and seconds later, by what Go keeps."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from framework.machine.services.ports import free_port
from tests.support.waiting import until

_SOURCE = Path(__file__).parent / "vault_server"


@dataclass(frozen=True)
class Server:
    """A server with the engine KV of version 2 at `secret`, its only unseal key, and the token of its administrator."""

    url: str
    unseal_key: str
    root_token: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Does something as an administrator."""
        answer = requests.request(method, f"{self.url}/v1/{path}", json=body, headers=self._login, timeout=20)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def is_ready(self) -> bool:
        """Whether the engine takes secrets: it is prepared behind the answer to its request."""
        reply = requests.post(f"{self.url}/v1/secret/data/ready", json={"data": {}}, headers=self._login, timeout=20)
        return reply.status_code < 300

    def put(self, path: str, **fields: Any) -> None:
        self.ask("POST", f"secret/data/{path}", {"data": fields})

    def fields(self, path: str) -> dict[str, Any]:
        fields: dict[str, Any] = self.ask("GET", f"secret/data/{path}")["data"]["data"]
        return fields

    def token(self, policy: str) -> str:
        """A token that may do what the policy allows."""
        self.ask("PUT", "sys/policies/acl/of-a-test", {"policy": policy})
        return str(self.ask("POST", "auth/token/create", {"policies": ["of-a-test"]})["auth"]["client_token"])

    @property
    def _login(self) -> dict[str, str]:
        return {"X-Vault-Token": self.root_token}


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A new server. Its program is built in `folder`."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go to build Vault")
    program, address = folder / "vault_server", f"127.0.0.1:{free_port()}"
    command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), "."]
    built = subprocess.run(command, cwd=_SOURCE, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, address], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert len(line) == 2, (folder / "log").read_text()
        server = Server(f"http://{address}", *line)
        server.ask("POST", "sys/mounts/secret", {"type": "kv", "options": {"version": "2"}})
        until(lambda: server.is_ready(), "Vault does not start", 60)
        yield server
    finally:
        process.terminate()
        process.wait(30)
