"""Keys that are replaced by new ones from time to time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from framework.base.errors import Where


@dataclass(frozen=True, kw_only=True)
class Keys:
    """A login or a key of which there are several over time. `lock`: the `KeyType` of the type. `secrets`: the names of the secrets that
    have the parts of a key, in the order that the type wants. `opens`: what takes the key, such as a cluster, as the type wants it.
    `rotate_every`: seconds; None: when somebody says so. `retain`: how many former ones stay valid."""

    name: str
    where: Where = field(compare=False, repr=False)
    type: str
    lock: Any = field(compare=False, repr=False)
    options: Any
    secrets: tuple[str, ...]
    rotate_every: int | None
    retain: int
    opens: Any
