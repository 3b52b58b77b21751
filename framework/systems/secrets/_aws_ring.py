"""Keys in AWS Secrets Manager: each is a version of its secrets with the label `sluice-key-NUMBER`. AWS' own labels say which one counts:
AWSPENDING the next key, AWSCURRENT the current one, AWSPREVIOUS the one before.

*Limit* A key with its parts in two secrets is moved in two requests. Parts in the fields of one secret change at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from framework.base.errors import SetupError
from framework.systems import keyring
from framework.systems.keyring import Ring, StoredKey

Ask = Callable[..., Any]
"""Asks Secrets Manager: the name of an action, then its arguments; None if there is no such secret, version or value."""
_LABEL, _BY_HAND = "sluice-key-", "-by-hand"
_NEXT, CURRENT, _PREVIOUS = "AWSPENDING", "AWSCURRENT", "AWSPREVIOUS"
RIGHTS = ("GetSecretValue", "PutSecretValue", "UpdateSecretVersionStage", "DescribeSecret")


@dataclass(frozen=True)
class _Version:
    """A version of one secret of AWS, with its labels."""

    id: str
    labels: frozenset[str]

    @property
    def numbers(self) -> frozenset[int]:
        matches = (re.fullmatch(rf"{_LABEL}([1-9]\d{{0,8}})", label) for label in self.labels)
        return frozenset(int(match[1]) for match in matches if match)


class AwsRing:
    """The keys of one ring. `prefix` is in front of the names of its secrets at AWS."""

    def __init__(self, ask: Ask, prefix: str, ring: Ring) -> None:
        self._ask = ask
        self._prefix = prefix
        self._ring = ring
        self._fields = self._by_secret()

    def keys(self) -> tuple[StoredKey, ...]:
        """The keys of which all secrets have a version. The current one is that whose values are current, whoever put them there."""
        versions = {secret: self._versions(secret) for secret in self._fields}
        numbers = frozenset.intersection(*(_numbers(of_secret) for of_secret in versions.values()))
        stored = [key for number in sorted(numbers) if (key := self._stored(number, versions))]
        by_hand = any(
            not version.numbers for of_secret in versions.values() for version in of_secret if CURRENT in version.labels
        )
        if any(key.state == "current" for key in stored) or not by_hand:
            return tuple(stored)
        current = self._stored(None, versions)
        alike = next((key for key in stored if current and key.values == current.values), None)
        if alike:  # another field of the secret was changed
            return tuple(replace(key, state="current") if key is alike else key for key in stored)
        return (*stored, current) if current else tuple(stored)

    def add(self, number: int, values: Mapping[str, str], by_hand: bool) -> None:
        """Adds the next key. A current key without a number gets the one before."""
        current = keyring.current(self.keys())
        for secret, fields in self._fields.items():
            if current and current.number is None:
                self._move(secret, f"{_LABEL}{number - 1}", self._labelled(secret, CURRENT))
            own_labels = _own(number, by_hand)
            self._put(secret, self._text(secret, fields, values), _NEXT, *own_labels)

    def use(self, number: int) -> None:
        """Makes a key the current one. Fields of others stay as they are now."""
        stored = self.keys()
        current = keyring.current(stored)
        key = next(key for key in stored if key.number == number)
        unnumbered = keyring.next_number(stored) - 1 if current and current.number is None else None
        for secret, fields in self._fields.items():
            former, chosen = self._labelled(secret, CURRENT), self._labelled(secret, f"{_LABEL}{number}")
            if unnumbered is not None:
                self._move(secret, f"{_LABEL}{unnumbered}", former)
            text = self._text(secret, fields, key.values)
            if chosen and self._text_of(secret, chosen) != text:
                self._put(secret, text, CURRENT, *_own(number, key.by_hand))
            else:
                self._move(secret, CURRENT, chosen)
            for version in (former, chosen):
                if version and _NEXT in version.labels:
                    self._move(secret, _NEXT, None)

    def remove(self, number: int) -> None:
        """Takes all labels off a key: AWS deletes such versions after a while. Our own goes first: without it, it is no key."""
        for secret in self._fields:
            version = self._labelled(secret, f"{_LABEL}{number}")
            own = f"{_LABEL}{number}"
            others = version.labels - {own, CURRENT} if version and len(version.numbers) == 1 else ()
            for label in (own, *sorted(others)):
                self._move(secret, label, None)

    def _by_secret(self) -> Mapping[str, Mapping[str, str | None]]:
        """The secrets of AWS, each with the names of the ring's secrets in it and their fields. A secret of the whole name has none."""
        secrets: dict[str, dict[str, str | None]] = {}
        for name in self._ring.secrets:
            outer, dot, field = name.rpartition(".")
            is_field = bool(dot) and self._ask("describe_secret", name) is None
            secrets.setdefault(outer if is_field else name, {})[name] = field if is_field else None
        return secrets

    def _versions(self, secret: str) -> list[_Version]:
        answer = self._ask("describe_secret", secret)
        if answer is None:
            raise self._missing(secret)
        stages = answer.get("VersionIdsToStages") or {}
        return [_Version(id_, frozenset(labels)) for id_, labels in stages.items() if labels]

    def _stored(self, number: int | None, versions: Mapping[str, list[_Version]]) -> StoredKey | None:
        """The key of a number, or the current one; None if a value is not there."""
        label = CURRENT if number is None else f"{_LABEL}{number}"
        values: dict[str, str] = {}
        labels: set[str] = set()
        created, is_current = 0.0, True
        for secret, fields in self._fields.items():
            version = next((version for version in versions[secret] if label in version.labels), None)
            answer = self._ask("get_secret_value", secret, VersionId=version.id) if version else None
            part = _parts(answer.get("SecretString", ""), fields) if answer else None
            if version is None or answer is None or part is None:
                return None
            values |= part
            labels |= version.labels
            is_current = is_current and CURRENT in version.labels
            created = max(created, answer["CreatedDate"].timestamp())
        state: keyring.State = "current" if is_current else "next" if _NEXT in labels else "former"
        return StoredKey(
            number=number, state=state, created=created, used=float(_PREVIOUS in labels), by_hand=f"{label}{_BY_HAND}" in labels,
            values={name: values[name] for name in self._ring.secrets},
        )  # fmt: skip

    def _text(self, secret: str, fields: Mapping[str, str | None], values: Mapping[str, str]) -> str:
        """The text of a new version: fields of others stay as they are."""
        if None in fields.values():
            return next(values[name] for name in fields)
        answer = self._ask("get_secret_value", secret, VersionStage=CURRENT)
        try:
            document = json.loads(answer["SecretString"]) if answer else {}
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise SetupError(
                "no-secret",
                f"the secret `{self._prefix}{secret}` is no JSON object, and cannot have fields",
                "store an object in it",
            )
        return json.dumps({**document, **{field: values[name] for name, field in fields.items()}})

    def _text_of(self, secret: str, version: _Version) -> str:
        answer = self._ask("get_secret_value", secret, VersionId=version.id)
        return str(answer.get("SecretString", "")) if answer else ""

    def _put(self, secret: str, text: str, *labels: str) -> None:
        if self._ask("put_secret_value", secret, SecretString=text, VersionStages=list(labels)) is None:
            raise self._missing(secret)

    def _labelled(self, secret: str, label: str) -> _Version | None:
        return next((version for version in self._versions(secret) if label in version.labels), None)

    def _move(self, secret: str, label: str, to: _Version | None) -> None:
        """Moves a label to a version, or takes it off."""
        holder = self._labelled(secret, label)
        if holder == to:
            return
        move = {"MoveToVersionId": to.id} if to else {}
        move |= {"RemoveFromVersionId": holder.id} if holder else {}
        self._ask("update_secret_version_stage", secret, VersionStage=label, **move)

    def _missing(self, secret: str) -> SetupError:
        name = f"{self._prefix}{secret}"
        return SetupError(
            "no-secret", f"Secrets Manager has no secret `{name}`", f"`aws secretsmanager create-secret --name {name}`"
        )


def _own(number: int, by_hand: bool) -> tuple[str, ...]:
    """Our own labels of a key."""
    label = f"{_LABEL}{number}"
    return (label, f"{label}{_BY_HAND}") if by_hand else (label,)


def _numbers(versions: Iterable[_Version]) -> frozenset[int]:
    return frozenset(number for version in versions for number in version.numbers)


def _parts(text: str, fields: Mapping[str, str | None]) -> dict[str, str] | None:
    """The parts of a key in the text of a secret; None if one is missing."""
    if None in fields.values():
        return dict.fromkeys(fields, text) if text else None
    try:
        document = json.loads(text)
    except ValueError:
        return None
    values = {name: document.get(field) if isinstance(document, dict) else None for name, field in fields.items()}
    if not all(isinstance(value, str | int) and not isinstance(value, bool) for value in values.values()):
        return None
    return {name: str(value) for name, value in values.items()}
