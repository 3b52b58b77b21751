"""The words of code and docs: vague names are not used, and paths in docs exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
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
