"""Find and load extensions, such as steps, one per file: Sluice's own, the project's in `pipelines/`, and those of installed packages.

An extension is loaded at its first use. `pipelines/steps/tidy.py` is the step `tidy`. A package offers a step by an entry point of
the group `sluice.steps`.
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
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from framework.base.components import Folder
from framework.base.errors import Problem, Where
from framework.language import components, moved_names
from framework.language.node import YamlNode


@dataclass(kw_only=True)
class Project:
    """The folder whose own steps are used. `installed`: whether installed packages are searched, which takes a tenth of a second.
    `loads`: whether the code of steps is run. `left_out` are steps that the specs use and whose code was not run."""

    root: Path
    installed: bool = False
    loads: bool = True
    left_out: set[str] = field(default_factory=set)
    cache: dict[str, Extensions] = field(default_factory=dict)  # filled once while one folder of specs is read


STEPS = "steps"
_EXPLAINED = "`sluice docs` writes docs/language/own-steps.md, which explains it"
_project: ContextVar[Project | None] = ContextVar("project", default=None)


@dataclass(frozen=True, kw_only=True)
class Extension:
    """One extension: the type of its options, its help, and the function that resolves it."""

    written: Any
    doc: str
    resolve: Callable[..., Any]
    file: str
    built_in: bool
    # The option that names the one column it adds; `*`: each of its keys names one; None: it may change other columns, too.
    adds: str | None = None
    hides: bool = False  # whether no value of the pipeline's messages may be in a reason or a preview
    loaded: bool = True


@dataclass(frozen=True, eq=False)
class Extensions:
    """All extensions of a noun, such as `steps`. The same object is returned while no file changes, so that callers can cache by it."""

    extensions: Mapping[str, Extension]
    problems: tuple[Problem, ...]
    broken: frozenset[str] = frozenset()  # names whose files have problems


@contextmanager
def project(root: Path, loads: bool = True) -> Iterator[Project]:
    """Use the own steps of the folder `root`, which holds the specs, inside the `with` block."""
    current_project = _project.get()
    current_project = current_project if current_project and current_project.root == root else Project(root=root, loads=loads)
    token = _project.set(current_project)
    try:
        yield current_project
    finally:
        _project.reset(token)


def need(noun: str, names: Iterable[str]) -> None:
    """Search installed packages, too, if any of the names is still missing."""
    current_project, names = _project.get(), set(names)
    if current_project and names - set(find(noun)):
        current_project.installed = True
        current_project.cache.clear()
    if current_project:
        current_project.left_out |= {name for name, extension in find(noun).items() if name in names and not extension.loaded}


def find(noun: str) -> Mapping[str, Extension]:
    return extensions_of(noun).extensions


def extensions_of(noun: str) -> Extensions:
    """The extensions of Sluice, and those that the project or installed packages add. Files named `_…` do not count."""
    current_project = _project.get() or Project(root=Path.cwd())
    if noun not in current_project.cache:
        current_project.cache[noun] = _load_folder(noun, current_project)
    return current_project.cache[noun]


def _load_folder(noun: str, current_project: Project) -> Extensions:
    folder = current_project.root / "pipelines" / noun
    files = sorted(path for path in folder.glob("*.py") if path.name[0] != "_") if folder.is_dir() else []
    own_folder = components.current().named(noun)
    return _load_files(
        noun,
        own_folder,
        tuple((path, path.stat().st_mtime_ns) for path in files),
        current_project.installed,
        current_project.loads,
    )


@cache
def _load_files(noun: str, own_folder: Folder, files: tuple[tuple[Path, int], ...], installed: bool, loads: bool) -> Extensions:
    """Load the extensions. The modification times in the cache key make a long-running server load changed files again."""
    extensions = dict(_own(own_folder))
    problems: list[Problem] = []
    points = entry_points(group=f"sluice.{noun}") if installed else ()
    candidates = {point.name: (point.load, partial(_installed_source, point.module)) for point in points}
    candidates |= {path.stem: (_loader(path), partial(_source, path)) for path, _ in files}
    places = {path.stem: path for path, _ in files}
    for name, (load, source) in sorted(candidates.items()):
        file = str(places.get(name, f"the installed step {name}"))
        if name in extensions:
            hint = "give the file another name"
            problems.append(
                Problem(Where(_path_text(file), 1, 1), "duplicate-step", f"`{name}` is one of Sluice's own steps", hint)
            )
            continue
        if not loads:
            extensions[name] = Extension(written=YamlNode, doc="", resolve=_nothing, file=file, built_in=False, loaded=False)
        elif import_problems := list(moved_names.problems(source(), _path_text(file))):
            problems += import_problems
        elif isinstance(outcome := _load(load, file), Extension):
            extensions[name] = outcome
        else:
            problems.append(outcome)
    return Extensions(extensions, tuple(problems), frozenset(candidates) - frozenset(extensions))


@cache
def _own(own_folder: Folder) -> Mapping[str, Extension]:
    return {name: _extension(module, True) for name, module in own_folder.load_all().items()}


def _extension(module: ModuleType, built_in: bool) -> Extension:
    return Extension(
        written=module.Written,
        doc=inspect.getdoc(module) or "",
        resolve=module.resolve,
        file=module.__file__ or "",
        built_in=built_in,
        adds=getattr(module, "ADDS", None),
        hides=getattr(module, "HIDES", False),
    )


def _nothing(*_: Any) -> Any:
    raise AssertionError("a step that was not loaded is not resolved")


def _loader(path: Path) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"sluice_project_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module  # a dataclass resolves its annotations there
        spec.loader.exec_module(module)
        return module

    return load


def _source(path: Path) -> bytes:
    """The source of a file; empty if it cannot be read: loading it says why."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _installed_source(module: str) -> bytes:
    """The source of an installed module; empty if there is none, or if its package fails: loading it says why."""
    try:
        spec = importlib.util.find_spec(module)
        return _source(Path(spec.origin)) if spec and spec.origin else b""
    except (Exception, SystemExit):  # a package above the module is a user's code
        return b""


def _load(load: Callable[[], ModuleType], file: str) -> Extension | Problem:
    try:
        module = load()
    except (Exception, SystemExit) as error:  # any error in a user's file is reported as a problem with its place
        return broken(error, file)
    missing_names = [name for name in ("Written", "resolve") if not hasattr(module, name)]
    if missing_names:
        hint = f"a step's file needs `Written`, the type of its options, and the function `resolve(step, rows)`; {_EXPLAINED}"
        return Problem(Where(_path_text(file), 1, 1), "bad-step", f"this file has no `{missing_names[0]}`", hint)
    return _extension(module, False)


def broken(error: BaseException, file: str) -> Problem:
    """A problem for an error in a user's file, at the line of the error."""
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno or 1
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = (lines or [1])[-1] or 1
    error_text = f"{type(error).__name__}: {error}".splitlines()[0]
    is_internal = isinstance(error, ModuleNotFoundError) and f"{error.name}.".startswith("framework.")
    hint = f"import what steps need from `{moved_names.PUBLIC}`" if is_internal else "correct the file"
    return Problem(Where(_path_text(file), line, 1), "bad-step", f"this step failed: {error_text}", f"{hint}; {_EXPLAINED}")


def _path_text(file: str) -> str:
    """The path relative to the current folder, if it is inside."""
    current_folder = Path.cwd()
    return Path(file).relative_to(current_folder).as_posix() if Path(file).is_relative_to(current_folder) else file
