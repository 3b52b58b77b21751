"""Imports of own steps: from `sluice.steps`, and from the places where its names were before."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.language import moved_names
from sluice import steps
from tests.support.heavy_imports import HEAVY
from tests.support.own_steps import SHOUT, planned
from tests.support.repository import ROOT


def old_imports() -> Iterator[tuple[str, str]]:
    """Statements that import names from their old places, and code that uses these names."""
    for module, names in moved_names.MOVED.items():
        old_names = [name.partition("=")[0] for name in names.split()]
        yield f"from {module} import {', '.join(old_names)}", f"USED = [{', '.join(old_names)}]"
        yield f"import {module}", f"USED = [{', '.join(f'{module}.{name}' for name in old_names)}]"
        package, _, short_name = module.rpartition(".")
        yield f"from {package} import {short_name}", f"USED = [{', '.join(f'{short_name}.{name}' for name in old_names)}]"
        yield f"from {module} import *", f"USED = [{', '.join(old_names)}]"
        yield f"from {module} import {old_names[0]} as Other", "USED = [Other]"
    yield "from framework.model.topic import Column", "USED = [Column]"
    yield "from framework.plan import rows as rows_of_plan", "def f(rows: rows_of_plan.Rows): pass"


def obeyed(text: str, problem: str) -> str:
    """The text of a step after its hint was obeyed: with another import, and then with each new name that the hint gives."""
    replaced, line = re.search(r"\| write `(.*?)`", problem), int(problem.split(":")[1])
    assert replaced
    lines = text.splitlines()
    lines[line - 1] = replaced[1]
    text = "\n".join(lines)
    for new, old in re.findall(r"`([^`]+)` instead of `([^`]+)`", problem):
        text = re.sub(rf"(?<![\w.]){re.escape(old)}\b", new, text)
    return text


@pytest.mark.parametrize(("statement", "use"), list(old_imports()), ids=lambda text: text[:40])
def test_a_step_with_an_old_import_is_refused_and_its_hint_works(tmp_path: Path, statement: str, use: str) -> None:
    text = f"{SHOUT}\n{statement}\n{use}\nopen({str(tmp_path / 'ran')!r}, 'w')\n"
    (problem,) = planned(tmp_path, "shout: x", shout=text)[1]
    assert problem.startswith("DIR/pipelines/steps/shout.py:7:1: moved-import: `")
    assert not (tmp_path / "ran").exists()
    assert planned(tmp_path, "shout: x", shout=obeyed(text, problem))[1] == []
    assert (tmp_path / "ran").exists()


def test_each_old_import_of_a_step_has_a_problem_with_the_names_of_now(tmp_path: Path) -> None:
    text = """
from framework.plan.rows import Resolved, Rows
from framework import types
import framework.spec.options as o
from framework.model import Each, Column as C
def resolve(step: o.WrittenStep, rows: Rows):
    from framework.model import Memory
    return Resolved(rows.columns, (("name", types.STRING),))
"""
    write = "| write `from sluice.steps import"
    assert [problem.removeprefix("DIR/pipelines/steps/own.py:") for problem in planned(tmp_path, "own: x", own=text)[1]] == [
        f"2:1: moved-import: `Resolved` and `Rows` moved from `framework.plan.rows` to `sluice.steps` {write} Resolved, Rows`",
        f"3:1: moved-import: `types.STRING` moved from `framework.types` to `sluice.steps` {write} STRING`,"
        " and `STRING` instead of `types.STRING`",
        f"4:1: moved-import: `o.WrittenStep` moved from `framework.spec.options` to `sluice.steps` {write} StepDocument`,"
        " and `StepDocument` instead of `o.WrittenStep`",
        f"5:1: moved-import: `Column` moved from `framework.model` to `sluice.steps` {write} Column as C`",
        f"7:5: moved-import: `Memory` moved from `framework.model` to `sluice.steps` {write} Remember`,"
        " and `Remember` instead of `Memory`",
    ]


def test_a_name_that_did_not_move_is_not_refused(tmp_path: Path) -> None:
    unmoved = "from framework.plan import Explode\nimport framework.base.types\nfrom framework.sql.quote import substituted\n"
    assert planned(tmp_path, "shout: x", shout=f"{SHOUT}\n{unmoved}")[1] == []


def test_a_module_that_is_gone_has_a_hint_of_where_public_names_are(tmp_path: Path) -> None:
    (problem,) = planned(tmp_path, "shout: x", shout=f"{SHOUT}\nfrom framework.model import Each\n")[1]
    assert "bad-step: this step failed: ModuleNotFoundError: No module named 'framework.model'" in problem
    assert "| import what steps need from `sluice.steps`; `sluice docs` writes" in problem


def test_every_public_name_has_its_old_place() -> None:
    moved = {new for module in moved_names.MOVED for new in moved_names.names_of(module).values()}
    assert moved == set(steps.__all__) == {name for name in vars(steps) if name[0] != "_"}


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "unneeded"), [
    ("import sluice", ("sluice.steps", "framework.model", "framework.plan", "framework.spec", "framework.sql", *HEAVY)),
    ("import sluice.steps", HEAVY),
])  # fmt: skip
def test_an_import_loads_only_what_it_needs(statement: str, unneeded: tuple[str, ...]) -> None:
    ask = f"import sys; {statement}; print(*sorted(set({unneeded!r}) & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", ask], check=True, cwd=ROOT, capture_output=True, text=True).stdout == "\n"


def test_the_page_lists_every_public_name() -> None:
    page = (ROOT / "docs" / "language" / "own-steps.md").read_text(encoding="utf-8")
    table = page.partition("| name |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    assert sorted(listed) == sorted(steps.__all__)


def test_the_pages_example_of_options_is_a_step(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "language" / "own-steps.md").read_text(encoding="utf-8")
    (example,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "OptionGroup" in text]
    step = example + SHOUT.partition("Written = str")[2]
    step = step.replace("import ColumnName", "import Resolved, ColumnName").replace(
        '"upper(name)"', 'f"left(name, {step.value.to})"'
    )
    plan, problems = planned(tmp_path, "shorten: {column: name, to: 3}", shorten=step)
    assert problems == []
    assert plan.pipelines[0].steps[0].assign == (("name", "left(name, 3)"),)
    assert "did you mean `column`?" in planned(tmp_path, "shorten: {colum: name}", shorten=step)[1][0]
