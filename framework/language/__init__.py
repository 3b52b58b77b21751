"""Read the YAML files of a folder into documents. Every value keeps its place, and all problems are collected."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from framework.base.errors import MOST_PROBLEMS, Problem, Where
from framework.base.spelling import did_you_mean
from framework.language import extensions, files
from framework.language.bind import FAILED, bind
from framework.language.failure import not_in_this_version
from framework.language.kind import Kind, document_kinds, later_kinds
from framework.language.node import YamlNode
from framework.language.options import Document
from framework.language.reader import read_text
from framework.language.references import References, variables_of
from framework.language.syntax import short

ENVIRONMENTS = "environments"
LOCAL = "local"
# Problems after which every document that others could name is still read.
_KEEPING = ("duplicate-key", "unquoted-comma", "unknown-variable", "bad-key", "merge-key", "not-in-this-version")
_Kind = TypeVar("_Kind", bound=Document)


@dataclass(frozen=True, kw_only=True)
class FoundDocument:
    """One document. Its value is None if it has problems, except for kinds that are still checked in part."""

    kind: str
    name: str
    where: Where
    value: Document | None
    node: YamlNode = field(compare=False, repr=False)


@dataclass(frozen=True)
class Documents:
    """All documents of the spec files, and all problems in them."""

    documents: tuple[FoundDocument, ...]
    problems: tuple[Problem, ...]
    _: KW_ONLY
    places: tuple[Where, ...] = ()  # where each document begins, also one of no known kind
    environment: str = LOCAL
    lost: bool = False  # part of the files could not be read and may hold a document that seems to be missing

    def of(self, kind: type[_Kind]) -> tuple[_Kind, ...]:
        return self._values.get(kind, ())

    @cached_property
    def _values(self) -> dict[type, tuple[Any, ...]]:
        """The documents by kind, cached because every pipeline asks for them."""
        by_kind: dict[type, list[Document]] = {}
        for document in self.documents:
            if document.value is not None:
                by_kind.setdefault(type(document.value), []).append(document.value)
        return {kind: tuple(values) for kind, values in by_kind.items()}

    @cached_property
    def names(self) -> frozenset[tuple[str, str]]:
        """The kind and name of each document, also of those with problems."""
        return frozenset((document.kind, document.name) for document in self.documents)


def load(folder: Path, environment: str = LOCAL, environ: Mapping[str, str] | None = None) -> Documents:
    """The specs of a folder, such as `specs`. A user's mistake is a problem in the result and never raises."""
    with without_collection(), extensions.project(folder.absolute().parent):
        return _load(folder, environment, environ)


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause Python's garbage collector, which runs more often the more objects there are. Nodes have no cycles to collect."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load(folder: Path, environment: str, environ: Mapping[str, str] | None) -> Documents:
    problems: list[Problem] = []
    if not os.path.isdir(folder):
        reason = "is not a folder" if os.path.exists(folder) else "does not exist"
        hint = "`sluice init` creates a project with a first spec; `--specs` names another folder that holds the *.yaml files"
        problem = Problem(Where(files.path_text(folder), 0, 0), "no-folder", f"the folder of the specs {reason}", hint)
        return Documents((), (problem,))
    root = Path(os.path.abspath(folder)).parent
    roots = (os.path.realpath(root), os.path.realpath(folder))  # the folder itself may be a link
    base = _read(files.find(folder, problems, roots, skip=ENVIRONMENTS), problems)
    if not base and not problems:
        problems.append(Problem(
            Where(files.path_text(folder), 0, 0), "no-specs", "there are no specs in this folder",
            "`sluice init` writes a first one that runs",
        ))  # fmt: skip
    environment_nodes = _read_environment(folder, environment, roots, problems)
    variables = {
        name.text: node for node in [*base, *environment_nodes] for key, name in node.entries[:1] if key.text == "variables"
    }
    values = variables_of(variables.values(), problems)
    references = References(environ=os.environ if environ is None else environ, written=values, problems=problems)
    kinds = document_kinds()
    nodes_by_name = _named(base, kinds, references, problems)
    nodes_by_name.update(_replacements(_named(environment_nodes, kinds, references, problems), kinds, problems))
    lost = any(problem.code not in _KEEPING for problem in problems)
    extensions.need(extensions.STEPS, _steps(nodes_by_name.values()))
    problems += extensions.extensions_of(extensions.STEPS).problems
    documents = tuple(
        _document(kind, kinds[kind].document, name, node, references, root) for (kind, name), node in nodes_by_name.items()
    )
    places = tuple(node.where for node in (*base, *environment_nodes))
    return Documents(documents, tuple(sorted(set(problems))), places=places, environment=environment, lost=lost)


def _steps(nodes: Iterable[YamlNode]) -> Iterator[str]:
    """The names of the steps that are used."""
    for node in nodes:
        steps = node.get("steps")
        yield from (key.text for step in (steps.items if steps else ()) for key, _ in step.entries)


def _read(paths: list[Path], problems: list[Problem]) -> list[YamlNode]:
    nodes: list[YamlNode] = []
    for path in paths:
        text = files.read(path, problems)
        if text is not None:
            nodes += read_text(text, files.path_text(path), problems)
    return nodes


def _named(
    nodes: list[YamlNode], kinds: Mapping[str, Kind], references: References, problems: list[Problem]
) -> dict[tuple[str, str], YamlNode]:
    """Documents by kind and name."""
    nodes_by_name: dict[tuple[str, str], YamlNode] = {}
    for node in nodes:
        kind = _kind(node, kinds, problems)
        if kind is None:
            continue
        name = references.expand(node.entries[0][1])
        key = (kind, name.text or str(name.where))  # the place identifies a document without a name
        if key in nodes_by_name:
            first_place = nodes_by_name[key].place(kind)
            problems.append(Problem(
                name.where, "duplicate-name", f"there is already a {kind} `{short(name.text)}` at {first_place}",
                "rename or remove one of the two",
            ))  # fmt: skip
        else:
            nodes_by_name[key] = node
    return nodes_by_name


def _kind(node: YamlNode, kinds: Mapping[str, Kind], problems: list[Problem]) -> str | None:
    """A document's first key, if this version has that kind."""
    if node.kind != "map" or not node.entries:
        problems.append(Problem(
            node.where, "not-a-document", "a document is a map whose first key is its kind",
            "begin with a line such as `topic: trades`",
        ))  # fmt: skip
        return None
    key = node.entries[0][0]
    if key.text in kinds:
        return key.text
    if key.text in later_kinds():
        problems.append(not_in_this_version(key, f"`{key.text}`", "remove the document for now"))
        return None
    all_kinds = (*kinds, *later_kinds())
    kind_keys = [entry_key.text for entry_key, _ in node.entries if entry_key.text in all_kinds]
    if len(problems) > MOST_PROBLEMS:
        return None
    hint = did_you_mean(key.text, all_kinds, f"kinds are: {', '.join(f'`{kind}`' for kind in kinds)}")
    hint = f"put `{kind_keys[0]}: …` on the document's first line" if kind_keys else hint
    problems.append(
        Problem(key.where, "unknown-kind", f"a document's first key is its kind, and `{short(key.text)}` is not a kind", hint)
    )
    return None


def _read_environment(folder: Path, environment: str, roots: tuple[str, ...], problems: list[Problem]) -> list[YamlNode]:
    place = folder / ENVIRONMENTS
    try:
        entries = sorted((entry for entry in os.scandir(place) if entry.name[0] != "."), key=lambda entry: entry.name)
    except OSError:
        entries = []
    environment_names = [entry.name for entry in entries if entry.is_dir()]
    for entry in entries:
        if entry.name.endswith((".yaml", ".yml")) and entry.is_file():
            where, name = Where(files.path_text(Path(entry.path)), 1, 1), Path(entry.name)
            hint = f"move it to {files.path_text(place / name.stem / name.name)}: each folder in there is an environment"
            problems.append(Problem(where, "no-environment", "this file belongs to no environment, so it is not read", hint))
    if environment in environment_names:
        return _read(files.find(place / environment, problems, roots), problems)
    if environment != LOCAL:
        environments = ", ".join([LOCAL, *(name for name in environment_names if name != LOCAL)])
        problems.append(Problem(
            Where(files.path_text(place), 1, 1), "unknown-environment", f"there is no environment `{environment}`",
            f"environments are: {environments}; a new one is a folder {files.path_text(place)}/NAME",
        ))  # fmt: skip
    return []


def _replacements(
    nodes_by_name: dict[tuple[str, str], YamlNode], kinds: Mapping[str, Kind], problems: list[Problem]
) -> dict[tuple[str, str], YamlNode]:
    """The documents that replace those of the same kind and name."""
    for (kind, _), node in nodes_by_name.items():
        if kinds[kind].same_everywhere:
            problems.append(Problem(
                node.where, "not-per-environment", f"`{kind}` is the same in every environment",
                f"move it out of {ENVIRONMENTS}; use `${{var:NAME}}` for values that differ",
            ))  # fmt: skip
    return {key: node for key, node in nodes_by_name.items() if not kinds[key[0]].same_everywhere}


def _document(kind: str, cls: type[Document], name: str, written: YamlNode, references: References, root: Path) -> FoundDocument:
    problems = references.problems
    if len(problems) > MOST_PROBLEMS:
        return FoundDocument(kind=kind, name=name, where=written.place(kind), value=None, node=written)
    node = references.expand(written)
    value = bind(cls, node, root, problems)
    return FoundDocument(kind=kind, name=name, where=node.place(kind), value=None if value is FAILED else value, node=node)
