"""Things with one file each, such as steps: Sluice's own, the project's in `pipelines/`, and those of installed packages.

All are found by their names and loaded when first asked for. `pipelines/steps/tidy.py` is the step `tidy`; a package offers one by
an entry point of the group `sluice.steps`.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from framework import components
from framework.errors import Problem, Where
from framework.spec.node import Node


@dataclass(kw_only=True)
class Project:
    """The folder whose own steps count, and whether installed packages are asked, which takes a tenth of a second. `loads`: whether
    their code is run at all; `left_out` are those that are used and were not run."""

    root: Path
    installed: bool = False
    loads: bool = True
    left_out: set[str] = field(default_factory=set)
    known: dict[str, Found] = field(default_factory=dict)  # looked for once while one folder of specs is read


STEPS = "framework.steps"
_project: ContextVar[Project | None] = ContextVar("project", default=None)


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a file says of itself: the type of what stands behind its name, its help, and what it does."""

    written: Any
    doc: str
    resolve: Callable[..., Any]
    file: str
    built_in: bool
    # The option that names a column which it adds beside all others, `*` for all its keys; None: it may do more.
    adds: str | None = None
    loaded: bool = True


@dataclass(frozen=True, eq=False)
class Found:
    """All of a kind. The same object as long as nothing changed, so that what is made of it can be kept."""

    extensions: Mapping[str, Extension]
    problems: tuple[Problem, ...]
    broken: frozenset[str] = frozenset()  # names whose files have problems


@contextmanager
def project(root: Path, loads: bool = True) -> Iterator[Project]:
    """The folder whose own steps count meanwhile: the one that the specs are in."""
    now = _project.get()
    now = now if now and now.root == root else Project(root=root, loads=loads)
    token = _project.set(now)
    try:
        yield now
    finally:
        _project.reset(token)


def need(package: str, names: Iterable[str]) -> None:
    """Asks installed packages as well where names are not known otherwise."""
    now, names = _project.get(), set(names)
    if now and names - set(find(package)):
        now.installed = True
        now.known.clear()
    if now:
        now.left_out |= {name for name, each in find(package).items() if name in names and not each.loaded}


def find(package: str) -> Mapping[str, Extension]:
    return found(package).extensions


def found(package: str) -> Found:
    """The extensions of a kind, named by Sluice's package of them. Files whose name starts with _ are none."""
    now = _project.get() or Project(root=Path.cwd())
    if package not in now.known:
        now.known[package] = _look(package, now)
    return now.known[package]


def _look(package: str, now: Project) -> Found:
    folder = now.root / "pipelines" / package.rpartition(".")[2]
    files = sorted(path for path in folder.glob("*.py") if path.name[0] != "_") if folder.is_dir() else []
    return _found(package, tuple((path, path.stat().st_mtime_ns) for path in files), now.installed, now.loads)


@cache
def _found(package: str, files: tuple[tuple[Path, int], ...], installed: bool, loads: bool) -> Found:
    """Again where a file has changed, as a server that stays needs it."""
    extensions = dict(_own(package))
    problems: list[Problem] = []
    points = entry_points(group=f"sluice.{package.rpartition('.')[2]}") if installed else ()
    offered = {point.name: point.load for point in points}
    offered |= {path.stem: _loader(path) for path, _ in files}
    places = {path.stem: path for path, _ in files}
    for name, load in sorted(offered.items()):
        file = str(places.get(name, f"the installed step {name}"))
        if name in extensions:
            hint = "give the file another name"
            problems.append(Problem(Where(_shown(file), 1, 1), "duplicate-step", f"`{name}` is one of Sluice's own steps", hint))
            continue
        made = (
            _made(load, file)
            if loads
            else Extension(written=Node, doc="", resolve=_nothing, file=file, built_in=False, loaded=False)
        )
        if isinstance(made, Extension):
            extensions[name] = made
        else:
            problems.append(made)
    return Found(extensions, tuple(problems), frozenset(offered) - frozenset(extensions))


@cache
def _own(package: str) -> Mapping[str, Extension]:
    return {name: _extension(module, True) for name, module in components.load_all(package).items()}


def _extension(module: ModuleType, built_in: bool) -> Extension:
    return Extension(
        written=module.Written,
        doc=inspect.getdoc(module) or "",
        resolve=module.resolve,
        file=module.__file__ or "",
        built_in=built_in,
        adds=getattr(module, "ADDS", None),
    )


def _nothing(*_: Any) -> Any:
    raise AssertionError("a step that was not loaded is not resolved")


def _loader(path: Path) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"sluice_project_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module  # a dataclass looks there for what its annotations mean
        spec.loader.exec_module(module)
        return module

    return load


def _made(load: Callable[[], ModuleType], file: str) -> Extension | Problem:
    try:
        module = load()
    except (
        Exception,
        SystemExit,
    ) as error:  # somebody's own file: whatever is wrong with it is a problem of theirs, with its place
        return broken(error, file)
    missing = [name for name in ("Written", "resolve") if not hasattr(module, name)]
    if missing:
        hint = "a step's file has `Written`, the type of its options, and `resolve(step, rows)`, what it does: docs/language/own-steps.md"
        return Problem(Where(_shown(file), 1, 1), "bad-step", f"this file has no `{missing[0]}`", hint)
    return _extension(module, False)


def broken(error: BaseException, file: str) -> Problem:
    """An error in somebody's own file, at the line where it happened."""
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno or 1
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = (lines or [1])[-1] or 1
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    return Problem(
        Where(_shown(file), line, 1), "bad-step", f"this step failed: {said}", "correct the file; see docs/language/own-steps.md"
    )


def _shown(file: str) -> str:
    """As a person in this folder would name it."""
    here = Path.cwd()
    return Path(file).relative_to(here).as_posix() if Path(file).is_relative_to(here) else file
