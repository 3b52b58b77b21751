"""Secrets in HashiCorp Vault, or in OpenBao: its engine KV, version 2.

`${secret:kafka.password}` is the field `password` of the secret `PREFIXkafka`, `${secret:pii}` the field `value` of `PREFIXpii`. Keys of a
document `keys` are further fields of the same secret, such as `password@2`, and the secret is changed as a whole, unless somebody else has
changed it meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framework.base.errors import Problem, SecretsAway, SetupError
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration, Url
from framework.systems.keyring import Ring, StoredKey
from framework.systems.secrets import KeyStore, _file_ring, _kept
from framework.systems.secrets._kept import Kept
from framework.systems.secrets._vault_client import VaultClient, VaultSecret

_TRIES = 5  # of a change that somebody else comes before
_VALUE = "value"  # the field of a secret without fields


@dataclass(frozen=True)
class Options(OptionGroup):
    """HashiCorp Vault, or OpenBao: its engine KV of version 2, with a token or an AppRole."""

    address: Url = option("The address.", example="https://vault.example.com:8200", aka=["url", "uri", "addr", "endpoint"])
    mount: str = option("Where the engine KV is mounted.", default="secret", example="kv")
    prefix: str = option(
        "What the paths there begin with: `${secret:kafka.key}` is the field `key` of `PREFIXkafka`; default: nothing.",
        default="",
        example="sluice/prod/",
    )
    namespace: str | None = option("The namespace, in editions that have some.", default=None, example="admin/data")
    role_id: str | None = option(
        "An AppRole to log in with; its secret id is in the environment variable VAULT_SECRET_ID.",
        default=None, example="5f3c1a9e-0b7d-4e2a-9c55-2f0f6a7d8e11",
    )  # fmt: skip
    refresh: Duration = _kept.refresh()

    def servers(self) -> Iterable[str | None]:
        return (self.address,)

    def problems(self) -> Iterable[Problem]:
        yield from _kept.sent_openly(self, "address")
        for key in ("mount", "prefix"):
            text = getattr(self, key)
            if any(part in ("", ".", "..") for part in text.removesuffix("/" if key == "prefix" else "").split("/")) and text:
                message = f"`{key}` is `{text}`, which is no path in Vault"
                yield Problem(self.place(key), "bad-path", message, "write names with a `/` between them, as `team/kv`")


class Vault(KeyStore):
    does = "asks HashiCorp Vault or OpenBao"

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._kept = Kept(options.refresh)
        self._client = VaultClient(options)

    def value(self, name: str) -> str:
        return self.values([name])[name]

    def values(self, names: Iterable[str]) -> Mapping[str, str]:
        """The values; those of one secret are of one moment."""
        names = list(names)
        secrets = {path: self._kept_secret(path) for path in {_place(name)[0] for name in names}}
        return {name: self._text(name, secrets[_place(name)[0]]) for name in names}

    def forget(self) -> None:
        self._kept.forget()

    def ring(self, name: str, is_rotated: bool) -> tuple[StoredKey, ...]:
        path = _place(name)[0]
        secret = self._kept_secret(path)
        lines = list(_lines(path, secret)) if secret else []
        return _file_ring.whole(lines, Ring(name=name, secrets=(name,)), f"`{self._full(path)}` of Vault")

    def keys(self, ring: Ring) -> tuple[StoredKey, ...]:
        path = _only_path(ring)
        secret = self._client.read(self._full(path))
        return _file_ring.keys(list(_lines(path, secret)), ring) if secret else ()

    def add_key(self, ring: Ring, number: int, values: Mapping[str, str], by_hand: bool = False) -> None:
        def change(lines: list[str]) -> list[str]:
            if any(_pair(line)[0] == f"{ring.name}@{number}" for line in lines):
                message = f"another machine has just added the key {number} of {ring.name}"
                raise SetupError("keys-busy", message, "`sluice keys list` shows it")
            return _file_ring.added(lines, ring, number, values, by_hand)

        self._change(_only_path(ring), change)

    def use_key(self, ring: Ring, number: int) -> None:
        self._change(_only_path(ring), lambda lines: _file_ring.used(lines, ring, number))

    def remove_key(self, ring: Ring, number: int) -> None:
        self._change(_only_path(ring), lambda lines: _file_ring.removed(lines, ring, number))

    def _change(self, path: str, change: Callable[[list[str]], list[str]]) -> None:
        """Changes the fields of a secret at once, and again if somebody else has changed it meanwhile. Fields of others stay."""
        for _ in range(_TRIES):
            secret = self._client.read(self._full(path)) or VaultSecret({}, 0)
            lines = list(_lines(path, secret))
            former, new = dict(map(_pair, lines)), dict(map(_pair, change(lines)))
            removed = {_field(path, name) for name in former.keys() - new.keys()}
            fields = {name: value for name, value in secret.fields.items() if name not in removed}
            fields |= {_field(path, name): text for name, text in new.items() if former.get(name) != text}
            if fields == secret.fields or self._client.write(self._full(path), fields, secret.version):
                self._kept.drop(path)
                return
        message = f"others change the secret `{self._full(path)}` of Vault all the time"
        raise SecretsAway("secrets-unreachable", message, "try again", self._client.where)

    def _kept_secret(self, path: str) -> VaultSecret | None:
        return self._kept.fresh(path, lambda: self._client.read(self._full(path)))

    def _text(self, name: str, secret: VaultSecret | None) -> str:
        path, field_name = _place(name)
        value = secret.fields.get(field_name) if secret else None
        if (text := _as_text(field_name, value)) is not None:
            return text
        self._kept.drop(path)  # it may be there the next time
        message = f"{self._client.where} has no field `{field_name}` of `{self._full(path)}`"
        command = f"vault kv {'patch' if secret and secret.fields else 'put'} -mount={self.options.mount} {self._full(path)} {field_name}=…"
        raise SetupError("no-secret", message, f"`{command}`")

    def _full(self, path: str) -> str:
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise SetupError("no-secret", f"`{path}` is no path in Vault", "correct the name of the secret")
        return f"{self.options.prefix}{path}"


def _only_path(ring: Ring) -> str:
    """The secret that has all parts of a key."""
    paths = sorted({_place(name)[0] for name in ring.secrets})
    if len(paths) > 1:
        base = paths[0].rpartition("_")[0] or "kafka"
        message = f"a key has its parts in the secrets {' and '.join(paths)} of Vault, which cannot change at once"
        hint = f"make them fields of one secret: `${{secret:{base}.key}}` and `${{secret:{base}.secret}}`"
        raise SetupError("keys-in-two-secrets", message, hint)
    return paths[0]


def _place(name: str) -> tuple[str, str]:
    """The path and the field of a secret."""
    folder, slash, last = name.rpartition("/")
    path, dot, field_name = last.rpartition(".")
    return (f"{folder}{slash}{path}", field_name) if dot else (name, _VALUE)


def _lines(path: str, secret: VaultSecret) -> Iterator[str]:
    """The fields of a secret that are texts or numbers, as lines of a file would have them. The field `value` has two names."""
    for field_name, value in secret.fields.items():
        text = _as_text(field_name, value)
        if text is not None and "=" not in field_name:
            yield f"{path}.{field_name}={text}"
            if field_name.partition("@")[0] == _VALUE:
                yield f"{path}{field_name.removeprefix(_VALUE)}={text}"


def _as_text(field_name: str, value: Any) -> str | None:
    """A field's text; None if it is neither text nor number. A key's own field may have been made JSON, as Vault's UI does."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value).strip()
    return json.dumps(value) if "@" in field_name else None


def _field(path: str, name: str) -> str:
    """The field of a name as lines have it."""
    rest = name.removeprefix(path)
    return rest[1:] if rest.startswith(".") else f"{_VALUE}{rest}"


def _pair(line: str) -> tuple[str, str]:
    name, _, text = line.partition("=")
    return name, text


STORE = Vault
