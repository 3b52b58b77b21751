"""The components that specs can name. `framework.host.components` lists them; here they are only used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from framework.base.components import Folder


@dataclass(frozen=True, kw_only=True)
class Components:
    """The folders of components, by noun, such as `steps`."""

    catalogs: Folder
    conditions: Folder
    followers: Folder
    formats: Folder
    key_types: Folder
    kinds: Folder
    notices: Folder
    secrets: Folder
    steps: Folder
    writes: Folder

    def named(self, noun: str) -> Folder:
        components: Folder = getattr(self, noun)
        return components


_components: ContextVar[Components] = ContextVar("components")


@contextmanager
def using(components: Components) -> Iterator[None]:
    """Read and plan specs with these components inside the `with` block, or inside the function that this decorates."""
    token = _components.set(components)
    try:
        yield
    finally:
        _components.reset(token)


def current() -> Components:
    """The components that specs can name now. Raises a LookupError outside of `using`."""
    return _components.get()
