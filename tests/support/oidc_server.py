"""A provider of tokens: OIDC's client credentials, as JWT that are signed by a key of its own. It can refuse clients, and be away."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256


@dataclass
class Provider:
    """The clients with their secrets, how long a token lives, and the tokens that were asked for."""

    url: str
    clients: dict[str, str]
    lifetime: float = 3600
    is_away: bool = False
    scopes: list[str] = field(default_factory=list)
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def token(self, client: str, scope: str) -> str:
        now = time.time()
        claims = {"iss": self.url, "sub": client, "iat": int(now), "exp": int(now + self.lifetime), "scope": scope}
        unsigned = f"{_part({'alg': 'RS256', 'kid': 'one'})}.{_part(claims)}"
        return f"{unsigned}.{_text(self.key.sign(unsigned.encode(), padding.PKCS1v15(), SHA256()))}"

    def keys(self) -> dict[str, Any]:
        numbers = self.key.public_key().public_numbers()
        values = {
            name: _text(value.to_bytes(-(-value.bit_length() // 8), "big"))
            for name, value in (("n", numbers.n), ("e", numbers.e))
        }
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", **values}]}


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _part(document: Any) -> str:
    return _text(json.dumps(document).encode())


@contextmanager
def oidc_server(**clients: str) -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, provider.keys())

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            login = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode().partition(":")
            if provider.is_away:
                self._answer(503, {"error": "temporarily_unavailable"})
            elif form.get("grant_type") != ["client_credentials"] or provider.clients.get(login[0]) != login[2]:
                self._answer(401, {"error": "invalid_client"})
            else:
                (scope,) = form.get("scope", [""])
                provider.scopes.append(scope)
                answer = {
                    "access_token": provider.token(login[0], scope),
                    "token_type": "Bearer",
                    "expires_in": int(provider.lifetime),
                }
                self._answer(200, answer)

        def _answer(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}", dict(clients))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
