"""Values that a server of secrets gave: kept for a while, looked up earlier after a failure, and used on while it does not answer.

*Guarantee* A value that the server refuses or no longer has is not used once its time is over. A look-up of one keeps nobody waiting who
needs another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar

from framework.base.errors import Problem, SecretsAway, SetupError
from framework.base.hosts import is_open
from framework.base.patience import SECRETS_AGAIN
from framework.language.options import OptionGroup, option

Looked = TypeVar("Looked")


def refresh() -> Any:
    return option(
        "How long a value is used before it is looked up again; one that may have failed is looked up at once.", default=300,
        example="5m", aka=["ttl", "cache"],
    )  # fmt: skip


def sent_openly(options: OptionGroup, name: str) -> Iterable[Problem]:
    """The problem of a server's address, the option of this name, to which logins would go without encryption."""
    address = getattr(options, name)
    if is_open(address):
        message = f"secrets would be sent from {address} without encryption"
        yield Problem(options.place(name), "unencrypted-login", message, "write `https://…`")


@dataclass(frozen=True)
class _Value(Generic[Looked]):
    """A value that was looked up, and the moment until which it is used."""

    value: Looked = field(repr=False)
    until: float


class Kept:
    """The values of one store, by names. Each is used for `refresh` seconds."""

    def __init__(self, refresh: float) -> None:
        self._refresh = refresh
        self._values: dict[str, _Value[Any]] = {}
        self._turns: dict[str, Lock] = {}
        self._away_until = 0.0

    def fresh(self, name: str, look_up: Callable[[], Looked]) -> Looked:
        """Returns the answer of `look_up`, or the one that it gave not long ago under this name."""
        kept: _Value[Looked] | None = self._values.get(name)
        if kept is None or not self._is_fresh(kept):
            with self._turns.setdefault(name, Lock()):
                kept = self._values.get(name)
                if kept is None or not self._is_fresh(kept):
                    kept = self._looked_up(name, kept, look_up)
        return kept.value

    def forget(self) -> None:
        """Makes the next use of each value look it up; it is still used while the server does not answer."""
        for name, kept in list(self._values.items()):
            self._values[name] = _Value(kept.value, 0.0)

    def drop(self, name: str) -> None:
        self._values.pop(name, None)

    def _is_fresh(self, kept: _Value[Any]) -> bool:
        return max(kept.until, self._away_until) > time.monotonic()

    def _looked_up(self, name: str, kept: _Value[Looked] | None, look_up: Callable[[], Looked]) -> _Value[Looked]:
        try:
            looked_up = _Value(look_up(), time.monotonic() + self._refresh)
        except SecretsAway:
            if kept is None:
                raise
            self._away_until = time.monotonic() + SECRETS_AGAIN
            return kept
        except SetupError:
            self._values.pop(name, None)
            raise
        self._values[name] = looked_up
        return looked_up
