"""Cases: specs as text, and the problems that are printed. With REWRITE=1 in the environment they are written anew.

A case begins with `=== title`, which may end in `| env=prod SLUICE_VAR_X=1`; then the YAML, a line `----` and the
problems, or `ok`. A line `>>> path` begins another file of the same case; the first is `a.yaml`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from framework.spec import load

CASES = Path(__file__).parent / "cases" / "spec"


@dataclass(frozen=True)
class Case:
    head: str
    given: str
    expected: str

    @property
    def title(self) -> str:
        return self.head.partition("|")[0].strip()

    @property
    def settings(self) -> dict[str, str]:
        return dict(re.findall(r"(\S+?)=(\S+)", self.head.partition("|")[2]))

    def __str__(self) -> str:
        return f"=== {self.head}\n{self.given}----\n{self.expected}"


def read(path: Path) -> list[Case]:
    blocks = re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert blocks[0] == "", f"{path.name} does not begin with ==="
    cases = []
    for block in blocks[1:]:
        head, _, rest = block.partition("\n")
        given, found, expected = rest.partition("----\n")
        assert found, f"{path.name}: {head} has no ----"
        cases.append(Case(head, given, expected))
    return cases


def answer(case: Case, folder: Path) -> str:
    parts = re.split(r"^>>> (.*)\n", case.given, flags=re.MULTILINE)
    for name, text in zip(["a.yaml", *parts[1::2]], parts[::2], strict=True):
        path = folder / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text or name != "a.yaml":
            path.write_text(text, encoding="utf-8", newline="")
    os.chdir(folder)
    written = load(Path("specs"), case.settings.get("env", "local"), environ=case.settings)
    return "".join(f"{problem}\n" for problem in written.problems) or "ok\n"


@pytest.mark.parametrize("path", sorted(CASES.glob("*.case")), ids=lambda path: path.stem)
def test_cases(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cases = read(path)
    titles = [case.title for case in cases]
    assert len(set(titles)) == len(titles), "two cases of one title"
    answers = [
        Case(case.head, case.given, answer(case, tmp_path / str(number)) + ("\n" if case is not cases[-1] else ""))
        for number, case in enumerate(cases)
    ]
    if os.environ.get("REWRITE") == "1":
        path.write_text("".join(map(str, answers)), encoding="utf-8")
    else:
        assert [str(case) for case in answers] == [str(case) for case in cases]
