"""Toys: the smallest component of each kind, one file each. The behaviour suites run over them beside Sluice's own."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.components import _listed
from framework.documents.write_mode import write_mode
from framework.host.cli import COMMANDS
from framework.host.components import COMPONENTS
from framework.language import extensions, shapes
from framework.operations.access.targets import TARGETS

HERE = Path(__file__).parent


@contextmanager
def installed() -> Iterator[None]:
    """The toys of `tests/toys/steps` are steps meanwhile, those of `tests/toys/writes` write modes, and so on."""
    folders = [folder for folder in sorted(HERE.iterdir()) if folder.is_dir() and not folder.name.startswith("_")]
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
    """The package in which the components of this noun are."""
    others = {"cli": COMMANDS, "targets": TARGETS}
    folder = others[noun] if noun in others else COMPONENTS.named(noun)
    return folder.packages[0]


def _forget() -> None:
    """What was made of the files that were there before."""
    importlib.invalidate_caches()
    extensions._own.cache_clear()
    extensions._load_files.cache_clear()
    shapes.record_shape.cache_clear()
    write_mode.cache_clear()
    _listed.cache_clear()
