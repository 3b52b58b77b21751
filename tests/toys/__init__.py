"""Toys: the smallest component of each kind, one file each. The behaviour suites test them together with Sluice's own."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.components import _listed
from framework.documents.write_mode import write_mode
from framework.host.cli import COMMANDS
from framework.host.components import COMPONENTS
from framework.host.watchers import WATCHERS
from framework.language import extensions, shapes
from framework.operations.access.targets import TARGETS
from framework.operations.metrics import METRICS

FOLDER = Path(__file__).parent


@contextmanager
def installed() -> Iterator[None]:
    """Installs the toys for a while: those of `tests/toys/steps` as steps, those of `tests/toys/writes` as write modes, and so
    on."""
    folders = [folder for folder in sorted(FOLDER.iterdir()) if folder.is_dir() and not folder.name.startswith("_")]
    packages = [(importlib.import_module(_package(folder.name)), str(folder)) for folder in folders]
    for package, folder in packages:
        package.__path__.append(folder)
    _forget()
    try:
        yield
    finally:
        for package, folder in packages:
            package.__path__.remove(folder)
        _forget()


def _package(noun: str) -> str:
    """The name of the package that holds the components of this noun."""
    other_folders = {"cli": COMMANDS, "metrics": METRICS, "targets": TARGETS, "watchers": WATCHERS}
    folder = other_folders[noun] if noun in other_folders else COMPONENTS.named(noun)
    return folder.packages[0]


def _forget() -> None:
    """Empties the caches of everything that was loaded from the folders' earlier files."""
    importlib.invalidate_caches()
    extensions._own.cache_clear()
    extensions._load_files.cache_clear()
    shapes.record_shape.cache_clear()
    write_mode.cache_clear()
    _listed.cache_clear()
