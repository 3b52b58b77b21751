"""A registry of schemas that answers as a test says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from framework.messages.registry.client import Registry
from framework.plan import Cluster, Login, SecretStore, Security

Answers = Callable[[str], Any]  # from a path to bytes that are sent as they are, or to a value that is sent as JSON


@dataclass
class Server:
    """Answers each request by `answers`, and keeps the `requests` in their order."""

    answers: Answers
    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    def registry(self, login: Login | None = None, patience: float = 3.0) -> Registry:
        return Registry(
            Cluster(name="main", bootstrap="127.0.0.1:1", security=Security(), registry=self.url, registry_auth=login),
            SecretStore(),
            patience,
        )


@contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    server = Server(answers)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.port = listening.getsockname()[1]
        threading.Thread(target=_accept, args=(listening, server), daemon=True).start()
        yield server
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, server: Server) -> None:
    with suppress(OSError):
        while True:
            threading.Thread(target=_answer, args=(listening.accept()[0], server), daemon=True).start()


def _answer(connection: socket.socket, server: Server) -> None:
    with connection, suppress(OSError):
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        server.requests.append(request.decode("latin-1"))
        answer = server.answers(server.paths[-1])
        if isinstance(answer, (bytes, dict, list)) or answer is None:
            connection.sendall(answer if isinstance(answer, bytes) else whole(json.dumps(answer).encode()))
            return
        for part in answer:  # until the other side has had enough
            connection.sendall(part)


def whole(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def version(**fields: Any) -> dict[str, Any]:
    return {"id": 1, "version": 1, "subject": "s", "schema": '"long"', **fields}
