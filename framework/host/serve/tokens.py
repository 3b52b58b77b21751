"""The login of readers by OAuth2's client credentials. A token is a random text, kept until it ends."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from urllib.parse import parse_qs

LASTS = 3600  # seconds of a token
_MAX_TOKENS = 10_000  # tokens at a time
FRESH = 15.0  # seconds for which a look at the clients counts


@dataclass(frozen=True)
class _Token:
    """The moment at which a token ends, and the id and the secret of its client."""

    end: float
    client: tuple[str, str] = field(repr=False)


@dataclass
class Tokens:
    """The tokens that were issued. `clients`: the ids and secrets of those who may have one, by a look that is at most so many seconds
    old. A token ends with its client."""

    clients: Callable[[float], Set[tuple[str, str]]]
    _issued: dict[str, _Token] = field(default_factory=dict, repr=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def issue(self, body: bytes, authorization: str, age: float = FRESH) -> str | None:
        """A new token for a request that has the login, in its form or its header, by a look at the clients of this age."""
        form = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        client, secret = _basic(authorization) or (form.get("client_id", ""), form.get("client_secret", ""))
        if not _has(self.clients(age), client, secret) or form.get("grant_type") != "client_credentials":
            return None
        token, current_time = secrets.token_urlsafe(32), time.monotonic()
        with self._turn:
            self._issued = {text: issued for text, issued in self._issued.items() if issued.end > current_time}
            while len(self._issued) >= _MAX_TOKENS:
                self._issued.pop(next(iter(self._issued)))
            self._issued[token] = _Token(current_time + LASTS, (client, secret))
        return token

    def knows(self, headers: Mapping[str, str]) -> bool:
        kind, _, text = headers.get("authorization", "").partition(" ")
        token = self._issued.get(text.strip()) if kind.lower() == "bearer" else None
        return token is not None and token.end > time.monotonic() and token.client in self.clients(FRESH)


def _basic(header: str) -> tuple[str, str] | None:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        client, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return client, secret


def _has(clients: Set[tuple[str, str]], client: str, secret: str) -> bool:
    """Whether a client is among these. All are compared, so that the time says nothing of any."""
    matches = [(_same(client, known_client), _same(secret, known_secret)) for known_client, known_secret in clients]
    return any(all(checks) for checks in matches)


def _same(text: str, expected_text: str) -> bool:
    return hmac.compare_digest(text.encode(), expected_text.encode())
