"""Components: things that a spec or a command line names, with one Python file each. The file's name is the component's name.

A folder of components lists its files, so adding a file adds a component. A test adds its own by extending the `__path__` of a package.
Files and folders whose name starts with `_` are not components.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType


@dataclass(frozen=True)
class Folder:
    """The components in some packages. `framework.documents.kinds` stands for each file of that package, and
    `framework.features.*.document` for the file `document` of each package in `framework.features`, which gives the name."""

    packages: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        """The components' names in alphabetical order. The files are listed, not imported."""
        return tuple(self._modules())

    def load(self, name: str) -> ModuleType:
        """The component's module. Raises a ModuleNotFoundError if there is none."""
        return importlib.import_module(self._modules().get(name, f"{self.packages[0]}.{name}"))

    def load_all(self) -> Mapping[str, ModuleType]:
        return {name: importlib.import_module(module) for name, module in self._modules().items()}

    def _modules(self) -> Mapping[str, str]:
        """The components' modules by their names, in alphabetical order."""
        return dict(sorted(pair for package in self.packages for pair in _modules(package)))


def components_in(*packages: str) -> Folder:
    return Folder(packages)


def _modules(package: str) -> Iterator[tuple[str, str]]:
    """The components of a package, each with its module."""
    outer, star, inner = package.partition(".*.")
    names = _listed(tuple(importlib.import_module(outer).__path__))
    if not star:
        yield from ((name, f"{outer}.{name}") for name in names)
        return
    for name in names:
        if inner in _listed(tuple(getattr(importlib.import_module(f"{outer}.{name}"), "__path__", ()))):
            yield name, f"{outer}.{name}.{inner}"


@cache  # a folder is listed for each document of a kind
def _listed(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_")))
