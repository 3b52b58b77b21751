"""Cases: specs as text with the problems that are printed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framework.base.errors import Problem
from framework.host.plans import draft, load
from tests.support.repository import ROOT
from tests.support.spec_parts import LAKE

CASES = ROOT / "tests" / "cases" / "spec"
PLANS = ROOT / "tests" / "cases" / "plan"
TOYS = ROOT / "tests" / "toys"
MAIN = f"""\
cluster: main
bootstrap: kafka:9092
registry: http://127.0.0.1:1
---
{LAKE}"""


@dataclass(frozen=True)
class Case:
    head: str
    spec_text: str
    expected: str

    @property
    def title(self) -> str:
        return self.head.partition("|")[0].strip()

    @property
    def settings(self) -> dict[str, str]:
        return dict(re.findall(r"(\S+?)=(\S+)", self.head.partition("|")[2]))

    def __str__(self) -> str:
        return f"=== {self.head}\n{self.spec_text}----\n{self.expected}"


def read(path: Path) -> list[Case]:
    blocks = re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert blocks[0] == "", f"{path.name} does not begin with ==="
    cases = []
    for block in blocks[1:]:
        head, _, content = block.partition("\n")
        spec_text, separator, expected = content.partition("----\n")
        assert separator, f"{path.name}: {head} has no ----"
        cases.append(Case(head, spec_text, expected))
    return cases


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write these files of specs into the folder, and change to it."""
    for head, text in files.items():
        name, _, times = head.partition(" * ")
        path = folder / "specs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text or name != "a.yaml":
            path.write_text(text * int(times or 1), encoding="utf-8", newline="")
    os.chdir(folder)


def problems(files: Mapping[str, str], settings: Mapping[str, str], folder: Path, plans: bool) -> Sequence[Problem]:
    """The problems of these files of specs, which are written into the folder."""
    write(files, folder)
    environment = settings.get("env", "local")
    if plans:
        return draft(Path("specs"), environment)[1]
    return load(Path("specs"), environment, environ=settings).problems


def written_files(case: Case) -> dict[str, str]:
    parts = re.split(r"^>>> (.*)\n", case.spec_text, flags=re.MULTILINE)
    return dict(zip(["a.yaml", *parts[1::2]], parts[::2], strict=True))


def planned_files(case: Case) -> dict[str, str]:
    """The files of a case of which a plan is made."""
    return {"main.yaml": MAIN, **written_files(case)}
