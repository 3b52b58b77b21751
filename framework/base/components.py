"""Components: things that a spec or a command line names, with one Python file each. The file's name is the component's name.

A package of components lists its files, so adding a file adds a component. A test adds its own by extending `__path__`.
Files and folders whose name starts with `_` are not components.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType


def names(package: str) -> tuple[str, ...]:
    """The components' names in alphabetical order. The files are listed, not imported."""
    return _listed(tuple(importlib.import_module(package).__path__))


@cache  # asked for each document of a kind
def _listed(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_")))


def load(package: str, name: str) -> ModuleType:
    return importlib.import_module(f"{package}.{name}")


def load_all(package: str) -> Mapping[str, ModuleType]:
    return {name: load(package, name) for name in names(package)}
