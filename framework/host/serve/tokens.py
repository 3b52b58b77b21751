"""The login of readers by OAuth2's client credentials. A token is a random text, kept until it ends."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

LASTS = 3600  # seconds of a token
_MAX_TOKENS = 10_000  # tokens at a time


@dataclass
class Tokens:
    """The tokens that were issued. `clients`: the secrets of those clients that may have one now, by their ids."""

    clients: Callable[[], Mapping[str, str]]
    _ends: dict[str, float] = field(default_factory=dict, repr=False)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def issue(self, body: bytes, authorization: str) -> str | None:
        """A new token for a request that has the login, in its form or its header."""
        form = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
        client, secret = _basic(authorization) or (form.get("client_id", ""), form.get("client_secret", ""))
        # All are compared, so that the time says nothing of either.
        logins = [
            (_same(client, known_client), _same(secret, known_secret)) for known_client, known_secret in self.clients().items()
        ]
        if not any(all(checks) for checks in logins) or form.get("grant_type") != "client_credentials":
            return None
        token, current_time = secrets.token_urlsafe(32), time.monotonic()
        with self._turn:
            self._ends = {old_token: end for old_token, end in self._ends.items() if end > current_time}
            while len(self._ends) >= _MAX_TOKENS:
                self._ends.pop(next(iter(self._ends)))
            self._ends[token] = current_time + LASTS
        return token

    def knows(self, headers: Mapping[str, str]) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._ends.get(token.strip(), 0.0) > time.monotonic()


def _basic(header: str) -> tuple[str, str] | None:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        client, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return client, secret


def _same(text: str, expected_text: str) -> bool:
    return hmac.compare_digest(text.encode(), expected_text.encode())
