"""Toys: the smallest component of each kind, one file each. The behaviour suites run over them beside Sluice's own."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.language import extensions, shapes

HERE = Path(__file__).parent
PACKAGES = {
    "catalogs": "framework.systems.catalogs",
    "cli": "framework.host.cli",
    "followers": "framework.features.followers",
    "formats": "framework.messages.formats",
    "kinds": "framework.documents.kinds",
    "notices": "framework.features.notices",
    "steps": "framework.documents.steps",
    "targets": "framework.operations.access.targets",
    "writes": "framework.features.writes",
}


@contextmanager
def installed() -> Iterator[None]:
    """The toys of `tests/toys/steps` are steps meanwhile, those of `tests/toys/writes` write modes, and so on."""
    folders = [folder for folder in sorted(HERE.iterdir()) if folder.is_dir() and not folder.name.startswith("_")]
    packages = [(importlib.import_module(PACKAGES[folder.name]), str(folder)) for folder in folders]
    for package, folder in packages:
        package.__path__.append(folder)
    _forget()
    try:
        yield
    finally:
        for package, folder in packages:
            package.__path__.remove(folder)
        _forget()


def _forget() -> None:
    """What was made of the files that were there before."""
    importlib.invalidate_caches()
    extensions._own.cache_clear()
    extensions._load_files.cache_clear()
    shapes.record_shape.cache_clear()
