"""Requests to Vault's engine KV, version 2: a secret is read, and written unless somebody else has changed it meanwhile."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from framework.base.errors import SecretsAway, SetupError
from framework.base.patience import CATALOG
from framework.systems.http import TRUST, Channel, Reply, Silent, Strange, Untrusted
from framework.systems.secrets._kept import Kept

_TOKEN, _TOKEN_FILE, _SECRET_ID = "VAULT_TOKEN", "~/.vault-token", "VAULT_SECRET_ID"


@dataclass(frozen=True)
class VaultSecret:
    """A secret of Vault: its fields, and its version, by which a change knows that nobody else has made one."""

    fields: Mapping[str, Any] = field(repr=False)
    version: int


class VaultClient:
    """The secrets of a mount. `options` are those of the document; tokens are in `kept`."""

    def __init__(self, options: Any, kept: Kept) -> None:
        self._options = options
        self._kept = kept
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
            hint = "correct `mount` of the document `secrets`: it is that of an engine KV of version 2"
            raise SetupError("no-secret", f"{self.where} answers as no engine KV of version 2 does", hint) from None

    def write(self, name: str, fields: Mapping[str, Any], version: int) -> bool:
        """Replaces the fields of a secret that still has this version. Whether it had."""
        reply = self._asked("POST", name, {"options": {"cas": version}, "data": fields})
        if reply.status == 400 and b"check-and-set" in reply.body:
            return False
        if reply.status >= 300:
            raise self._failed(name, reply, '"create", "read", "update"')
        return True

    def _asked(self, method: str, name: str, body: Any = None) -> Reply:
        """The answer about a secret. A token that is refused is replaced once, if there is an AppRole."""
        place = f"/v1/{quote(self._options.mount)}/data/{quote(name)}"
        reply = self._ask(method, place, body, self._token())
        if reply.status == 403 and self._options.role_id:
            self._kept.drop(_TOKEN)
            reply = self._ask(method, place, body, self._token())
        return reply

    def _ask(self, method: str, place: str, body: Any, token: str | None) -> Reply:
        headers = {"X-Vault-Request": "true", **({"X-Vault-Token": token} if token else {})}
        headers |= {"X-Vault-Namespace": self._options.namespace} if self._options.namespace else {}
        try:
            return self._channel.ask(method, place, body, CATALOG, headers=headers)
        except Silent as error:
            hint = "it is asked again; correct `address` of the document `secrets` if it is wrong"
            raise SecretsAway("secrets-unreachable", f"{self.where} {error}", hint, self.where) from None
        except (Untrusted, Strange) as error:
            hint = TRUST if isinstance(error, Untrusted) else "correct `address` of the document `secrets`"
            raise SetupError("secrets-refused", f"{self.where} is not trusted: {error}", hint) from None

    def _token(self) -> str:
        if self._options.role_id is not None:
            return self._kept.fresh(_TOKEN, self._logged_in)
        if token := os.environ.get(_TOKEN):
            return token
        with suppress(OSError, UnicodeDecodeError, RuntimeError):
            if token := Path(_TOKEN_FILE).expanduser().read_text(encoding="utf-8").strip():
                return token
        message = f"there is no login to {self.where}: {_TOKEN} is not set, and {_TOKEN_FILE} has no token"
        hint = f"`export {_TOKEN}=…`, log in by `vault login`, or write a `role_id` into the document `secrets`"
        raise SetupError("secrets-refused", message, hint)

    def _logged_in(self) -> str:
        """A new token for the AppRole."""
        secret_id = os.environ.get(_SECRET_ID)
        if not secret_id:
            raise SetupError("secrets-refused", f"the AppRole has no secret id for {self.where}", f"`export {_SECRET_ID}=…`")
        login = {"role_id": self._options.role_id, "secret_id": secret_id}
        reply = self._ask("POST", "/v1/auth/approle/login", login, None)
        if reply.status == 200:
            return str(json.loads(reply.body)["auth"]["client_token"])
        if reply.status >= 500 and b"invalid" not in reply.body:  # a wrong secret id is answered with 500, too
            raise self._failed("auth/approle/login", reply, "")
        hint = f"correct `role_id` of the document `secrets`, or {_SECRET_ID}"
        raise SetupError("secrets-refused", f"{self.where} does not take the AppRole", hint)

    def _failed(self, name: str, reply: Reply, rights: str) -> SetupError | SecretsAway:
        options = self._options
        if reply.status == 403:
            policy = f'path "{options.mount}/data/{options.prefix}*" {{ capabilities = [{rights}] }}'
            ended = "" if options.role_id else "log in again if the token has ended, or "
            return SetupError("secrets-refused", f"{self.where} refused `{name}`", f"{ended}allow it by a policy: {policy}")
        if reply.status >= 500 or reply.status in (412, 429):
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
