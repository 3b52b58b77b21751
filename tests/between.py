"""A small proxy between Sluice and a catalog, which does to requests what networks and gateways do."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Fault = Callable[["Request"], bool]  # answers the request by itself, or leaves it to the catalog


@dataclass
class Request:
    """A request, and what can become of it."""

    handler: BaseHTTPRequestHandler
    method: str
    path: str
    body: bytes
    forward: Callable[[], tuple[int, bytes]]

    def changes(self) -> list[dict[str, Any]]:
        """What a commit of a table asks for."""
        if self.method != "POST" or "/tables/" not in self.path:
            return []
        return list(json.loads(self.body).get("updates") or ())

    def moves(self, ref: str) -> bool:
        return any(each.get("action") == "set-snapshot-ref" and each.get("ref-name") == ref for each in self.changes())

    def answer(self, status: int, body: bytes) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", "application/json")
        self.handler.send_header("Content-Length", str(len(body)))
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def refuse(self, status: int, type_: str = "Whatever") -> None:
        self.answer(status, json.dumps({"error": {"message": "by the proxy", "type": type_, "code": status}}).encode())

    def hang_up(self) -> None:
        self.handler.close_connection = True
        self.handler.connection.close()


@dataclass
class Between:
    """The proxy. Each fault is asked for each request until it has struck."""

    url: str
    faults: list[Fault] = field(default_factory=list)
    struck: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def strike(self, request: Request) -> bool:
        with self._lock:
            for fault in self.faults:
                if fault(request):
                    self.faults.remove(fault)
                    self.struck += 1
                    return True
        return False


@contextmanager
def between(url: str) -> Iterator[Between]:
    """A proxy in front of this URL."""
    target = urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (OSError, ValueError):  # the connection was closed by a fault
                self.close_connection = True

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def forward() -> tuple[int, bytes]:
                connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
                headers = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "accept-encoding")}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                return answer.status, content

            request = Request(self, self.command, self.path, body, forward)
            if not proxy.strike(request):
                status, content = forward()
                if self.command == "HEAD" or status == 204:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    request.answer(status, content)

        do_GET = do_POST = do_DELETE = do_HEAD = _pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = Between(f"http://127.0.0.1:{server.server_address[1]}{target.path}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
