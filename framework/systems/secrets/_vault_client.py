"""Requests to Vault's engine KV, version 2: a secret is read, and written unless somebody else has changed it meanwhile."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

from framework.base.errors import SecretsAway, SetupError
from framework.base.patience import CATALOG
from framework.systems.http import TRUST, Channel, Reply, Silent, Strange, Untrusted

_TOKEN, _TOKEN_FILE, _SECRET_ID = "VAULT_TOKEN", "~/.vault-token", "VAULT_SECRET_ID"
_SHARE = 0.8  # of a token's life, after which it is replaced
_LATER = (412, 429)  # a standby that is behind, and too many requests


@dataclass(frozen=True)
class VaultSecret:
    """A secret of Vault: its fields, and its version, by which a change knows that nobody else has made one."""

    fields: Mapping[str, Any] = field(repr=False)
    version: int


class VaultClient:
    """The secrets of a mount. `options` are those of the document."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._turn = Lock()
        self._role_token = "", 0.0  # that of the AppRole, and the moment at which it is replaced
        self._channel = Channel(options.address.rstrip("/"), None, "application/json")

    @property
    def where(self) -> str:
        return f"Vault at {self._options.address}"

    def read(self, name: str) -> VaultSecret | None:
        """A secret as it is now; None if there never was one."""
        reply = self._asked("GET", name)
        if reply.status == 404:
            return _deleted(reply)
        if reply.status != 200:
            raise self._failed(name, reply, '"read"')
        try:
            data = json.loads(reply.body)["data"]
            return VaultSecret(dict(data["data"]), int(data["metadata"]["version"]))
        except (ValueError, KeyError, TypeError):
            raise self._strange() from None

    def write(self, name: str, fields: Mapping[str, Any], version: int) -> bool:
        """Replaces the fields of a secret that still has this version. Whether it had."""
        reply = self._asked("POST", name, {"options": {"cas": version}, "data": fields})
        if reply.status == 400 and b"check-and-set" in reply.body:
            return False
        if reply.status >= 300:
            raise self._failed(name, reply, '"create", "read", "update"')
        if b'"version"' not in reply.body:
            raise self._strange()
        return True

    def _strange(self) -> SetupError:
        hint = "correct `mount` of the document `secrets`: it is that of an engine KV of version 2"
        return SetupError("no-secret", f"{self.where} answers as no engine KV of version 2 does", hint)

    def _asked(self, method: str, name: str, body: Any = None) -> Reply:
        """The answer about a secret. A token that is refused is replaced once, if there is an AppRole."""
        place = f"/v1/{quote(self._options.mount)}/data/{quote(name)}"
        reply = self._ask(method, place, body, self._token())
        if reply.status == 403 and self._options.role_id:
            self._role_token = "", 0.0
            reply = self._ask(method, place, body, self._token())
        return reply

    def _ask(self, method: str, place: str, body: Any, token: str | None) -> Reply:
        if token and not token.isascii():
            raise SetupError("secrets-refused", f"the token for {self.where} has characters that no token has", "log in again")
        headers = {"X-Vault-Request": "true", **({"X-Vault-Token": token} if token else {})}
        headers |= {"X-Vault-Namespace": self._options.namespace} if self._options.namespace else {}
        try:
            return self._channel.ask(method, place, body, CATALOG, headers=headers)
        except Silent as error:
            hint = "it is asked again; correct `address` of the document `secrets` if it is wrong"
            raise SecretsAway("secrets-unreachable", f"{self.where} {error}", hint, self.where) from None
        except Untrusted as error:
            raise SetupError("secrets-refused", f"{self.where} is not trusted: {error}", TRUST) from None
        except Strange as error:
            hint = "correct `address` of the document `secrets`, or the token"
            raise SetupError("secrets-refused", f"{self.where} {error}", hint) from None

    def _token(self) -> str:
        if self._options.role_id is not None:
            return self._of_role()
        if token := os.environ.get(_TOKEN, "").strip():
            return token
        with suppress(OSError, UnicodeDecodeError, RuntimeError):
            if token := Path(_TOKEN_FILE).expanduser().read_text(encoding="utf-8").strip():
                return token
        message = f"there is no login to {self.where}: {_TOKEN} is not set, and {_TOKEN_FILE} has no token"
        hint = f"`export {_TOKEN}=…`, log in by `vault login`, or write a `role_id` into the document `secrets`"
        raise SetupError("secrets-refused", message, hint)

    def _of_role(self) -> str:
        """The AppRole's token. It is replaced before it ends, and after a refusal."""
        with self._turn:
            token, until = self._role_token
            if time.monotonic() >= until:
                token, seconds = self._logged_in()
                self._role_token = token, time.monotonic() + (seconds * _SHARE if seconds else float("inf"))
        return token

    def _logged_in(self) -> tuple[str, float]:
        """A new token for the AppRole, and how many seconds it lives; 0 if it does not end."""
        secret_id = os.environ.get(_SECRET_ID, "").strip()
        if not secret_id:
            raise SetupError("secrets-refused", f"the AppRole has no secret id for {self.where}", f"`export {_SECRET_ID}=…`")
        login = {"role_id": self._options.role_id, "secret_id": secret_id}
        reply = self._ask("POST", "/v1/auth/approle/login", login, None)
        with suppress(ValueError, KeyError, TypeError):
            auth = json.loads(reply.body)["auth"]
            if reply.status == 200 and auth["client_token"]:
                return str(auth["client_token"]), float(auth["lease_duration"])
        # A wrong secret id is answered with 500, too.
        if reply.status in _LATER or (reply.status >= 500 and not re.search(rb"invalid (role|secret)", reply.body)):
            raise self._failed("auth/approle/login", reply, "")
        hint = f"correct `role_id` of the document `secrets`, or {_SECRET_ID}"
        raise SetupError("secrets-refused", f"{self.where} does not take the AppRole: it answers with {reply.status}", hint)

    def _failed(self, name: str, reply: Reply, rights: str) -> SetupError | SecretsAway:
        options = self._options
        if reply.status == 403:
            policy = f'path "{options.mount}/data/{options.prefix}*" {{ capabilities = [{rights}] }}'
            ended = "" if options.role_id else "log in again if the token has ended, or "
            return SetupError("secrets-refused", f"{self.where} refused `{name}`", f"{ended}allow it by a policy: {policy}")
        if reply.status >= 500 or reply.status in _LATER:
            says = "is sealed, or fails" if reply.status == 503 else f"fails with the status {reply.status}"
            return SecretsAway("secrets-unreachable", f"{self.where} {says}", "it is asked again", self.where)
        hint = "correct `mount`, `prefix` and `namespace` of the document `secrets`"
        return SetupError("secrets-refused", f"{self.where} answers to `{name}` with the status {reply.status}", hint)


def _deleted(reply: Reply) -> VaultSecret | None:
    """A secret whose newest version was deleted: it has no fields, and a version all the same. None if there never was one."""
    try:
        return VaultSecret({}, int(json.loads(reply.body)["data"]["metadata"]["version"]))
    except (ValueError, KeyError, TypeError):
        return None
