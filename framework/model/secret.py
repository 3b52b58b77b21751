"""A reference in a spec that stands for a secret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecretRef:
    """The name of a secret. Its value is read at each use and stored nowhere."""

    name: str
