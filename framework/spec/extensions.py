"""Things with one file each, such as steps: found by their files' names, loaded when first asked for."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Extension:
    """What a file says of itself: the type of what stands behind its name, and its help."""

    written: Any
    doc: str


@cache
def find(package: str) -> Mapping[str, Extension]:
    """The extensions of a package. Files whose name starts with _ are no extensions."""
    folders = importlib.import_module(package).__path__
    names = sorted(module.name for module in pkgutil.iter_modules(folders) if not module.name.startswith("_"))
    modules = {name: importlib.import_module(f"{package}.{name}") for name in names}
    return {name: Extension(module.Written, inspect.getdoc(module) or "") for name, module in modules.items()}
