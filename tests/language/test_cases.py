"""Cases: specs as text, and the problems that are printed. With REWRITE=1 in the environment the problems are written again.

A case begins with `=== title`, which may end in `| env=prod SLUICE_VAR_X=1`; then the YAML, a line `----` and the
problems, or `ok`. A line `>>> path` begins another file of the same case; the first is `a.yaml`. Behind `>>> path * 100`
stands what is in that file 100 times. In `spec` the documents are read; in `plan` the plan is made, and a cluster and a
catalog are there.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from tests import toys
from tests.support.cases import CASES, PLANS, TOYS, Case, planned_files, problems, read, written_files

ROOT = Path(__file__).parents[2]


def answer(case: Case, folder: Path, plans: bool) -> str:
    files = planned_files(case) if plans else written_files(case)
    return "".join(f"{problem}\n" for problem in problems(files, case.settings, folder, plans)) or "ok\n"


@pytest.mark.parametrize("path", [*sorted(CASES.glob("*.case")), *sorted(PLANS.glob("*.case"))], ids=lambda path: path.stem)
@pytest.mark.usefixtures("registry_away")
def test_each_case_prints_its_problems(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(path, tmp_path, monkeypatch, plans=path.parent == PLANS)


@pytest.mark.parametrize("path", sorted(TOYS.glob("*/*.case")), ids=lambda path: path.stem)
def test_each_case_of_a_toy_prints_its_problems(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with toys.installed():
        follow(path, tmp_path, monkeypatch, plans=True)


def follow(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plans: bool) -> None:
    monkeypatch.chdir(tmp_path)
    cases = read(path)
    titles = [case.title for case in cases]
    assert len(set(titles)) == len(titles), "two cases of one title"
    answers = [
        Case(case.head, case.spec_text, answer(case, tmp_path / str(number), plans) + ("\n" if case is not cases[-1] else ""))
        for number, case in enumerate(cases)
    ]
    if os.environ.get("REWRITE") == "1":
        path.write_text("".join(map(str, answers)), encoding="utf-8")
    else:
        assert [str(case) for case in answers] == [str(case) for case in cases]


# Codes that no text of a case can have, and the test that has them.
ELSEWHERE = {
    "not-in-schema": "messages/test_avro.py",
    "bad-step": "documents/test_own_steps.py",
    "moved-import": "documents/test_own_step_imports.py",
    "duplicate-step": "documents/test_own_steps.py",
    "no-folder": "language/test_spec.py",
    "no-subject": "messages/test_hostile_registry.py",
    "not-installed": "house/test_slim.py",
    "no-type": "documents/test_own_steps.py",
    "not-a-file": "language/test_spec.py",
    "not-utf8": "language/test_spec.py",
    "too-many-problems": "language/test_limits.py",
    "unreadable-file": "language/test_spec.py",
}
# Codes that the sources put together, and the one that is a single word.
JOINED = {
    "no-catalog", "no-cluster", "several-catalogs", "several-clusters", "tab", "unknown-catalog", "unknown-step", "unknown-table",
    "unknown-topic",
}  # fmt: skip


def codes() -> set[str]:
    """Every text that looks like a code in the modules that read specs and make plans."""
    parts = [
        ROOT / "framework" / name
        for name in ("base/errors.py", "base/types.py", "base/type_text.py", "language", "sql", "documents")
    ]
    files = [file for part in parts for file in (sorted(part.rglob("*.py")) if part.is_dir() else [part])]
    texts = [
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    ]
    literals = {text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", text)}
    return (literals | JOINED) - {"utf-8", "eu-central-1"}


@pytest.mark.slow
def test_every_refusal_has_a_case() -> None:
    problem_texts = "".join(
        path.read_text(encoding="utf-8") for path in (*CASES.glob("*.case"), *PLANS.glob("*.case"), *TOYS.glob("*/*.case"))
    )
    missing_codes = {code for code in codes() if not re.search(rf"^\S+: {code}: ", problem_texts, re.MULTILINE)}
    assert sorted(missing_codes) == sorted(ELSEWHERE)
    for code, file in ELSEWHERE.items():
        assert (
            f'"{code}"' in (ROOT / "tests" / file).read_text(encoding="utf-8")
            or f": {code}: " in (ROOT / "tests" / file).read_text()
        ), code
