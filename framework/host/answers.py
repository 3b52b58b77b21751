"""Answers over HTTP to programs that watch: short pages that anybody on this machine may read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

from framework.base.errors import SetupError, SluiceError

_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """An answer: its status, its bytes, and what they are."""

    status: int
    body: bytes
    content_type: str


def as_json(status: int, document: object) -> Answer:
    return Answer(status, json.dumps(document).encode() + b"\n", "application/json")


Pages: TypeAlias = Mapping[str, Callable[[str], Answer]]
"""Pages by their paths. Each is asked with the header `Accept`."""


@contextmanager
def answering(port: int, pages: Pages) -> Iterator[str]:
    """Answers while the block runs, and yields the address."""
    try:
        server = _Server((_HOST, port), pages)
    except OSError as error:
        message = f"{', '.join(pages)} cannot be answered at {_HOST}:{port}: {error.strerror}"
        raise SetupError("port-busy", message, "take another one by `--port`") from None
    thread = threading.Thread(target=server.serve_forever, name="answers", daemon=True)
    thread.start()
    try:
        yield f"http://{_HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], pages: Pages) -> None:
        self.pages = pages
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0  # seconds for a client that says nothing

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        answer = self._asked(page) if page else self._unknown()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _asked(self, page: Callable[[str], Answer]) -> Answer:
        try:
            return page(self.headers.get("Accept", ""))
        except Exception as error:  # of a system that is asked for the page
            says = str(error) if isinstance(error, SluiceError) else type(error).__name__
            return as_json(500, {"error": says})

    def _unknown(self) -> Answer:
        return as_json(404, {"paths": list(self.server.pages)})

    def log_message(self, format: str, *args: object) -> None:
        """Writes nothing: a probe each second is no event."""
