"""A proxy before moto that records logins."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests


class Requests:
    """A proxy before moto that records the login of each request."""

    def __init__(self, url: str) -> None:
        self.logins: set[str] = set()  # ids of keys that S3 was asked with
        self.assumed: list[str] = []  # bodies of requests to assume a role
        self.encrypted: set[str] = set()
        requested = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {
                    key: value for key, value in self.headers.items() if key.lower() not in ("host", "content-length", "expect")
                }
                if b"Action=AssumeRole" in body:
                    requested.assumed.append(body.decode())
                elif key := re.search(r"Credential=(\w+)/", self.headers.get("Authorization", "")):
                    requested.logins.add(key[1])
                if self.headers.get("x-amz-server-side-encryption-aws-kms-key-id"):
                    requested.encrypted.add(self.headers["x-amz-server-side-encryption-aws-kms-key-id"])
                answer = requests.request(self.command, url + self.path, data=body, headers=headers, stream=True)
                content = answer.raw.read()
                self.send_response(answer.status_code)
                for key_, value in answer.headers.items():
                    if key_.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                        self.send_header(key_, value)
                length = (
                    answer.headers["Content-Length"]
                    if self.command == "HEAD" and "Content-Length" in answer.headers
                    else len(content)
                )
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
