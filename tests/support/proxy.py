"""A small proxy between Sluice and a catalog, which treats requests as networks and gateways do."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Answer = tuple[int, bytes, Mapping[str, str]]
_JSON = {"Content-Type": "application/json"}
_BETWEEN = ("host", "accept-encoding", "expect", "connection")
_OF_A_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-encoding", "content-length", "date", "server")
Fault = Callable[["Request"], bool]  # answers the request by itself, or leaves it to the catalog


@dataclass
class Request:
    """A request, and the ways to answer it."""

    handler: BaseHTTPRequestHandler
    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]
    behind: str  # the URL that it is for, without a path
    forward: Callable[[], Answer]

    def changes(self) -> list[dict[str, Any]]:
        """The updates that a commit of a table asks for."""
        if self.method != "POST" or "/tables/" not in self.path:
            return []
        return list(json.loads(self.body).get("updates") or ())

    def moves(self, ref: str) -> bool:
        return any(change.get("action") == "set-snapshot-ref" and change.get("ref-name") == ref for change in self.changes())

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] = _JSON) -> None:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        if self.method != "HEAD":
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
    errors: list[Exception] = field(default_factory=list)  # of faults themselves
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def strike(self, request: Request) -> bool:
        with self._lock:
            for fault in self.faults:
                try:
                    is_struck = fault(request)
                except OSError:
                    raise
                except Exception as error:
                    self.errors.append(error)
                    raise
                if is_struck:
                    self.faults.remove(fault)
                    self.struck += 1
                    return True
        return False


@contextmanager
def between(url: str, certified: tuple[Path, Path] | None = None) -> Iterator[Between]:
    """A proxy in front of this URL, by HTTPS if it has a certificate and its key."""
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

            def forward() -> Answer:
                connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
                headers = {key: value for key, value in self.headers.items() if key.lower() not in _BETWEEN}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
                answer_headers = {key: value for key, value in answer.getheaders() if key.lower() not in _OF_A_CONNECTION}
                if self.command == "HEAD":
                    answer_headers["Content-Length"] = answer.getheader("Content-Length") or "0"
                return answer.status, content, answer_headers

            catalog_url = f"{target.scheme}://{target.netloc}"
            request = Request(self, self.command, self.path, body, dict(self.headers), catalog_url, forward)
            if not proxy.strike(request):
                request.answer(*forward())

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certified:
        encrypted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        encrypted.load_cert_chain(*certified)
        server.socket = encrypted.wrap_socket(server.socket, server_side=True)
    proxy = Between(f"{'https' if certified else 'http'}://127.0.0.1:{server.server_address[1]}{target.path}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
    if proxy.errors:
        raise proxy.errors[0]
