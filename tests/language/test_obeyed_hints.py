"""Every hint of every case is obeyed: the problem is gone, and the correction leads to no other problem."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest

from framework.base.errors import Problem
from tests import toys
from tests.support import cases, hint_edits as obeying
from tests.support.cases import Case
from tests.support.judged_hints import CASES, JUDGED, is_judged

MOST_WAYS = 200


def problems(case: Case, files: dict[str, str], folder: Path, plans: bool) -> Sequence[Problem]:
    shutil.rmtree(folder, ignore_errors=True)
    return cases.problems(files, case.settings, folder, plans)


def outcome(problem: Problem, before: Sequence[Problem], case: Case, files: dict[str, str], folder: Path, plans: bool) -> str:
    """Obeys a hint and returns the result in words; an empty text if the problem is gone and no other has come."""
    counts = Counter((old.code, old.message) for old in before)
    name = next((head for head in files if f"specs/{head.partition(' * ')[0]}" == problem.where.file), "")
    words = "no edit obeys it"
    for way in islice(obeying.obeyed(files[name], problem) if name and problem.where.line else (), MOST_WAYS):
        after = problems(case, {**files, name: way.text}, folder, plans)
        remaining = Counter((new.code, new.message) for new in after)
        if remaining[problem.code, problem.message] >= counts[problem.code, problem.message]:
            continue
        new_problems = [new for new in after if (new.code, new.message) not in counts and way.leads_to(new, problem.hint)]
        if not new_problems:
            return ""
        words = f"it leads to {new_problems[0].code}: {new_problems[0].message}"
    return words


def wrong_hints(case: Case, folder: Path, plans: bool) -> Iterator[str]:
    """The hints that lead nowhere, or to another problem, and were not judged."""
    parts = re.split(r"^>>> (.*)\n", case.spec_text, flags=re.MULTILINE)
    files = {**({"main.yaml": cases.MAIN} if plans else {}), **dict(zip(["a.yaml", *parts[1::2]], parts[::2], strict=True))}
    before = problems(case, files, folder, plans)
    for problem in {(problem.code, problem.message, problem.hint): problem for problem in before}.values():
        words = "" if is_judged(problem.hint) else outcome(problem, before, case, files, folder, plans)
        if words:
            yield f"{case.title}: {problem.code}: {problem.message}\n  hint: {problem.hint}\n  {words}"


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("registry_away")
def test_each_hint_of_each_case_can_be_obeyed_and_leads_to_no_other_problem(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plans = path.parent != cases.CASES
    with toys.installed() if path.is_relative_to(cases.TOYS) else nullcontext():
        wrong = [text for case in cases.read(path) for text in wrong_hints(case, tmp_path / "case", plans)]
    assert not wrong, "\n".join(wrong)


def test_each_judged_hint_is_one_of_a_case() -> None:
    hints = {
        match[1] for path in CASES for match in re.finditer(r"^  hint: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    unused = [begin for begins in JUDGED.values() for begin in begins if not any(hint.startswith(begin) for hint in hints)]
    assert not unused
