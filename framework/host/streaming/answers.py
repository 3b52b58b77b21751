"""Answers over HTTP, on this machine alone: `/healthz` says whether the stream's process turns, `/readyz` whether it can do all it should.

Each is 200 or 503, with JSON that says why.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from framework.base.errors import SetupError
from framework.core.stream.health import Health

_HOST = "127.0.0.1"


@contextmanager
def answering(port: int, health: Callable[[], Health]) -> Iterator[str]:
    """Answers while the block runs, and yields the address."""
    try:
        server = _Server((_HOST, port), health)
    except OSError as error:
        message = f"the stream cannot answer at {_HOST}:{port}: {error.strerror}"
        raise SetupError("port-busy", message, "take another one by `--port`, or 0 for none") from None
    thread = threading.Thread(target=server.serve_forever, name="answers", daemon=True)
    thread.start()
    try:
        yield f"http://{_HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], health: Callable[[], Health]) -> None:
        self.health = health
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0  # seconds for a client that says nothing

    def do_GET(self) -> None:
        health = self.server.health()
        match self.path.partition("?")[0]:
            case "/healthz":
                self._answer(200 if health.lives else 503, {"idle": round(health.idle, 1)})
            case "/readyz":
                self._answer(200 if health.is_ready else 503, asdict(health))
            case _:
                self._answer(404, {"paths": ["/healthz", "/readyz"]})

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Writes nothing: a probe each second is no event."""
