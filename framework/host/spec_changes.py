"""Specs that change while a process runs: they are planned again when a file below their folder is another one."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from framework.base.errors import SpecError
from framework.host.plans import make
from framework.plan import Plan

_AGAIN = 10.0  # seconds

Files: TypeAlias = Mapping[str, tuple[int, int]]  # of each path when it was changed, in nanoseconds, and its size


class SpecChanges:
    """The specs of a folder since a plan was made of them."""

    def __init__(self, folder: Path, environment: str) -> None:
        self._folder, self._environment = folder, environment
        self._files: Files = dict(_files(folder))
        self._asked_again = math.inf  # when specs are planned again that failed over another system
        self._problems = ""

    def plan(self) -> Plan | SpecError | None:
        """The plan of the specs if they have changed since the last look, or their problems; else None."""
        files = dict(_files(self._folder))
        if files == self._files and time.monotonic() < self._asked_again:
            return None
        self._asked_again = time.monotonic() + _AGAIN  # unless this ends in an answer
        self._files = files
        try:
            plan = make(self._folder, self._environment)
        except SpecError as error:
            if not any(problem.code.startswith("registry-") for problem in error.problems):
                self._asked_again = math.inf
            is_told, self._problems = self._problems == str(error), str(error)
            return None if is_told else error
        self._asked_again, self._problems = math.inf, ""
        return plan


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """All files below the folder but hidden ones: schemas and queries lie beside the specs."""
    visited_folders: set[str] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        if (real_path := os.path.realpath(root)) in visited_folders:  # a link to what holds it
            folders.clear()
            continue
        visited_folders.add(real_path)
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        for name in names:
            if not name.startswith("."):
                path = os.path.join(root, name)
                try:
                    status = os.stat(path)
                except OSError:  # it is gone already
                    continue
                yield path, (status.st_mtime_ns, status.st_size)
