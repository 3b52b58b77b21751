"""What a spec says in place of a secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecretRef:
    """The name of a secret. Its value is looked up at the moment of use and kept nowhere."""

    name: str
