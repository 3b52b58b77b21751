"""The words of code and docs: vague names are not used, and paths in docs exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_FUNCTION_WORDS = (
    "each at to of it its there here now so other others both own one ones many much few again before after first last next by in "
    "what who is has that those these then when where with from on off up down out more less most least"
)
_BANNED = (
    "said found made seen known look shown anew beside sound notes newest obvious ahead apart told asked given taken kept wanted gone held "
    "meant left"
)
FUNCTION_WORDS, BANNED = frozenset(_FUNCTION_WORDS.split()), frozenset(_BANNED.split())
OPENERS = (
    *(
        "those ",
        "of ",
        "the same",
        "as ",
        "with ",
        "its ",
        "it ",
        "they ",
        "what ",
        "who ",
        "whose ",
        "whether it ",
        "one that ",
        "for what ",
    ),
    *("such ", "to what ", "in what "),
)
PUBLIC = ("look",)  # an argument of `sluice.plan`
MOST_PERCENT = 2
VAGUE = frozenset(("said", "found", "made", "seen", "known", "shown", "anew", "beside", "sound", "notes", "newest", "look"))
# A stored name, and an argument of the public API that is called as the option of `sluice plan`.
KEPT_NAMES = {("framework/core/rules/protocol.py", "newest"), ("sluice/__init__.py", "look"), ("sluice/dagster.py", "look")}


def names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["framework", "sluice", "pipelines"])
def test_a_name_says_of_what(folder: str) -> None:
    vague = {
        (str(path.relative_to(ROOT)), name)
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in (path.stem, *names(ast.parse(path.read_text(encoding="utf-8"))))
        if name.lower().strip("_") in VAGUE
    }
    assert vague - KEPT_NAMES == set()


def bindings(tree: ast.AST) -> Iterator[str]:
    """The names of variables and parameters that are bound."""
    for node in ast.walk(tree):
        name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) and is_stored(node) else "_"
        if name not in ("self", "cls", "_", *PUBLIC):
            yield name


def is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def worst(sources: dict[str, str]) -> list[str]:
    """The ten words that are most often whole names of variables although they name nothing, if they are too many together."""
    names_at = [(name.strip("_").lower(), path) for path, source in sources.items() for name in bindings(ast.parse(source))]
    words = [(word, path) for word, path in names_at if word in FUNCTION_WORDS | BANNED]
    if len(words) * 100 <= MOST_PERCENT * len(names_at):
        return []
    paths = Counter(path for _, path in words)
    counts = Counter(word for word, _ in words).most_common(10)
    share = f"{len(words)} of {len(names_at)} names of variables are function words or banned: {100 * len(words) / len(names_at):.1f} %"
    return [share, *(f"{word}: {count}" for word, count in counts), *(f"{path}: {count}" for path, count in paths.most_common(5))]


def elliptical(sources: dict[str, str]) -> list[str]:
    """The docstrings that begin as if something stood before them."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [
        f"{path}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for path, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) and text.lower().startswith(OPENERS)
    ]


def sources_of(folder: str) -> dict[str, str]:
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}


@pytest.mark.slow  # and `make check` has it
@pytest.mark.parametrize("folder", ["framework", "sluice", "pipelines", "tests", "bench", "infra"])
def test_variables_are_nouns_and_docstrings_are_sentences(folder: str) -> None:
    sources = sources_of(folder)
    assert worst(sources) == []
    assert elliptical(sources) == []


def test_function_words_and_elliptical_docstrings_are_named() -> None:
    source = 'def f(at, of):\n    """Those of the table."""\n    each = snapshot = 1\n'
    share, *counts, path = worst({"a.py": source})
    assert share == "3 of 4 names of variables are function words or banned: 75.0 %"
    assert (sorted(counts), path) == (["at: 1", "each: 1", "of: 1"], "a.py: 3")
    assert elliptical({"a.py": source}) == ["a.py:1: Those of the table."]
    assert worst({"a.py": "snapshot = index = 1"}) == []


def test_each_folder_is_in_the_table_of_contributing() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Where a line lives")[2].partition("\n## ")[0]
    table_folders = set(re.findall(r"(\w+)/", table))
    folders = {path.parent.relative_to(ROOT / "framework").parts[:2] for path in (ROOT / "framework").glob("*/*/*.py")}
    assert {folder for _, folder in folders} - table_folders == set()


@pytest.mark.parametrize("page", ["docs", "README.md", "CONTRIBUTING.md"])
def test_paths_in_the_docs_are_there(page: str) -> None:
    pages = sorted((ROOT / page).rglob("*.md")) or [ROOT / page]
    paths = {
        path
        for file in pages
        for path in re.findall(r"`((?:framework|tests|bench|deploy)/[\w/.-]+)`", file.read_text(encoding="utf-8"))
    }
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
