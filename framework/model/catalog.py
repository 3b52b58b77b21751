"""Catalogs, and those that list the tables of another one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

from framework.errors import Where
from framework.model.topic import SecretStore


@dataclass(frozen=True)
class Listing:
    """The part of a catalog's document about another catalog, which lists its tables too. Without `namespace` under their own names."""

    catalog: str
    namespace: str | None
    where: Where = field(compare=False, repr=False)


@dataclass(frozen=True)
class Catalog:
    name: str
    type: str  # a file of `framework.catalogs`
    options: Any = None  # as that file declares them
    _: KW_ONLY
    secrets: SecretStore = field(default_factory=SecretStore)  # those that the options name
    publish: tuple[Listing, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        """With the options that are set in a row: a digest of plans, which is kept, is made of it."""
        options = (
            {each.name: getattr(self.options, each.name) for each in fields(self.options) if each.repr} if self.options else {}
        )
        named = {"name": self.name, "type": self.type, **options}
        return f"Catalog({', '.join(f'{name}={value!r}' for name, value in named.items() if value is not None)})"
