"""Catalogs, and those that list the tables of another one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from framework.base.errors import Where
from framework.plan.topic import SecretStore


@dataclass(frozen=True)
class Listing:
    """The part of a catalog's document about another catalog, which lists its tables too. Without `namespace`, they are
    listed under their own names."""

    catalog: str
    namespace: str | None
    where: Where = field(compare=False, repr=False)


@dataclass(frozen=True)
class Catalog:
    name: str
    type: str  # a file of `framework.systems.catalogs`
    options: Any = None  # as that file declares them
    _: KW_ONLY
    secrets: SecretStore = field(default_factory=SecretStore)  # those that the options name
    publish: tuple[Listing, ...] = field(default=(), repr=False)
