"""The pages of docs/language: made by the code, whole, with links that lead somewhere and examples that run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from inspect import getmodule
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from framework.base.types import BINARY
from framework.documents.pipeline.running import BATCH_ROWS
from framework.documents.pipeline.written import Batch
from framework.documents.pipeline.written_expectation import EXPECT_EXAMPLE
from framework.host.cli import main
from framework.host.plans import draft
from framework.language import extensions
from framework.language.kind import document_types
from framework.operations.reference import examples, pages
from framework.operations.reference.options import anchor
from framework.operations.reference.samples import COLUMNS, FUNCTIONS, OPERATORS, ROW, samples
from framework.plan import ColumnSql
from framework.sql import functions
from framework.sql.expressions import Checked, check

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "language"


@cache
def generated_pages() -> Mapping[str, str]:
    with extensions.project(ROOT):
        return pages()


@cache
def of_steps() -> Mapping[str, str]:
    """The example of each of Sluice's own steps."""
    with extensions.project(ROOT):
        steps = extensions.find(extensions.STEPS)
    return {name: step.resolve.__globals__["EXAMPLE"] for name, step in steps.items() if step.built_in}


def write(folder: Path) -> Path:
    """All examples as the specs of one project."""
    specs = folder / "specs"
    specs.mkdir()
    kinds: list[Any] = [getmodule(cls) for cls in document_types().values()]
    (specs / "main.yaml").write_text("---\n".join(kind.EXAMPLE for kind in kinds), encoding="utf-8")
    for name, example in {**of_steps(), "expect": EXPECT_EXAMPLE}.items():
        (specs / f"{name}.yaml").write_text(examples.spec(example, f"the_{name}"), encoding="utf-8")
    return specs


@pytest.mark.slow
def test_pages_on_disk_are_the_generated_ones() -> None:
    if os.environ.get("REWRITE") == "1":
        for old in PAGES.glob("*.md"):
            old.unlink()
        for name, text in generated_pages().items():
            (PAGES / name).write_text(text, encoding="utf-8")
    stored_pages = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    assert stored_pages == generated_pages(), "renew them: REWRITE=1 .venv/bin/python -m pytest tests/test_reference.py"


def test_every_kind_and_step_has_a_page_with_its_example() -> None:
    kinds: dict[str, Any] = {kind: getmodule(cls) for kind, cls in document_types().items()}
    for kind, module in kinds.items():
        assert module.EXAMPLE in generated_pages()[f"{kind}.md"]
        assert f"]({kind}.md)" in generated_pages()["index.md"]
    for name, example in of_steps().items():
        assert f"  - {name}:" in example
        assert re.search(
            rf"```yaml\nsteps:\n  - {name}:.*```\n\n(Rows of .*)?Rows before:.*Rows after:",
            generated_pages()[f"step-{name}.md"],
            re.DOTALL,
        )
        assert f"](step-{name}.md)" in generated_pages()["index.md"]


def test_links_lead_somewhere() -> None:
    targets = {
        name: {anchor(title) for title in re.findall(r"^#+ (.*)", text, re.MULTILINE)} for name, text in generated_pages().items()
    }
    links = [(name, link) for name, text in generated_pages().items() for link in re.findall(r"\]\(([^)]*)\)", text)]
    assert len(links) > 40
    for name, link in links:
        page, _, heading = link.partition("#")
        assert (page or name) in targets, f"{name} links to {link}"
        assert not heading or heading in targets[page or name], f"{name} links to {link}"


def test_every_example_is_a_spec_without_problems(tmp_path: Path) -> None:
    plan, problems = draft(write(tmp_path))
    assert [str(problem) for problem in problems] == []
    assert {pipeline.name for pipeline in plan.pipelines} == {
        "flagged_stock_trades",
        "the_expect",
        "customers",  # in which the example of `join` looks rows up
        *(f"the_{name}" for name in of_steps()),
    }
    assert all(len(pipeline.examples) == 1 for pipeline in plan.pipelines if pipeline.name != "customers")


def test_every_step_of_sluice_says_which_columns_its_sql_reads(tmp_path: Path) -> None:
    plan, _ = draft(write(tmp_path))
    steps = [step for pipeline in plan.pipelines for step in pipeline.steps if step.name in of_steps()]
    texts = [sql for step in steps for sql in (*dict(step.assign).values(), *(fault.when for fault in step.faults), step.keep)]
    texts += [step.each.list for step in steps if step.each]
    assert [sql for sql in texts if sql and not isinstance(sql, ColumnSql)] == []


def test_the_documented_default_of_batch_rows_is_the_real_one() -> None:
    assert f"default: {BATCH_ROWS}." in Batch.__dataclass_fields__["rows"].metadata["option"].doc


def test_every_function_is_on_the_page_with_an_example() -> None:
    expressions = [expression for lines in samples(FUNCTIONS).values() for expression, _ in lines]
    called = {word for expression in expressions for word in re.findall(r"\b(\w+)\(", expression)}
    assert [name for name in functions.names() if " " not in name and name not in called] == []
    assert "| `round(2.567, 1)` | `2.6` | `decimal(3,1)` |" in generated_pages()["expressions.md"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipelines" / "steps").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


OWN_STEP = '''"""Shouts."""
from sluice.steps import Resolved
Written = str
EXAMPLE = """
columns: {name: string}
steps:
  - shout: name
given:
  - {name: ab|c}
expect:
  - {name: AB|C}
"""
def resolve(step, rows):
    return Resolved(rows.columns, ((step.value, f"upper({step.value})"),))
'''


@pytest.mark.slow
def test_steps_of_a_project_have_pages(project: Path) -> None:
    (project / "pipelines" / "steps" / "shout.py").write_text(OWN_STEP)
    result = CliRunner().invoke(main, ["docs", "out"])
    assert result.output == f"wrote {len(document_types()) + len(of_steps()) + 5} pages; the first is out/index.md\n"
    assert "| [shout](step-shout.md) | Shouts. A step of this project. |" in (project / "out" / "index.md").read_text()
    assert (project / "out" / "own-steps.md").read_text() == generated_pages()["own-steps.md"]
    page = (project / "out" / "step-shout.md").read_text()
    assert page.startswith("# shout\n\nShouts.\n\nA step of this project: `shout.py`.\n\n```yaml\nsteps:\n  - shout: name\n```\n")
    assert "| name `string` |\n| --- |\n| ab\\|c |" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "shout.py:1:1: bad-step: this step failed: ZeroDivisionError: division by zero"),
        (OWN_STEP.replace("given:", "givn:"), "shout.py:1:1: bad-step: this step failed: KeyError: 'given'"),
        (OWN_STEP.replace("shout: name", "shuot: name"), "shout.py:1:1: bad-step: this step failed: "),
        (OWN_STEP.replace("steps:", "\tsteps:"), "shout.py:1:1: bad-step: this step failed: SpecError: EXAMPLE:3:1: yaml-syntax"),
    ],
)
def test_an_error_in_a_projects_step_is_reported(project: Path, text: str, message: str) -> None:
    (project / "pipelines" / "steps" / "shout.py").write_text(text)
    result = CliRunner().invoke(main, ["docs", "out"])
    assert result.exit_code == 1
    assert f"pipelines/steps/{message}" in result.output
    assert not (project / "out").exists()


@pytest.mark.spark
def test_expressions_give_what_the_page_says(spark: Any) -> None:
    row = spark.range(1).selectExpr(*(f"cast({value} as {type}) as {name}" for name, (type, value) in ROW.items()))
    for file in (OPERATORS, FUNCTIONS):
        expected = [line for lines in samples(file).values() for line in lines]
        (results,) = row.selectExpr(*(as_text(check(expression, COLUMNS)) for expression, _ in expected)).collect()
        if os.environ.get("REWRITE") == "1":
            values = dict(zip((expression for expression, _ in expected), results, strict=True))
            lines = file.read_text().splitlines()
            file.write_text(
                "".join(
                    f"{expression} => {values[expression]}\n"
                    if (expression := line.partition(" => ")[0]) in values
                    else f"{line}\n"
                    for line in lines
                )
            )
        else:
            assert [(expression, value) for (expression, _), value in zip(expected, results, strict=True)] == expected


def as_text(checked: Checked) -> str:
    sql = f"concat('X\\'', hex({checked.sql}), '\\'')" if checked.type == BINARY else f"cast({checked.sql} as string)"
    return f"coalesce(regexp_replace({sql}, r'\\s*\\n\\s*', ' '), 'null')"


@pytest.mark.spark
@pytest.mark.long
def test_examples_give_what_they_say(tmp_path: Path, sluice_home: Path) -> None:
    specs = write(tmp_path)
    command = [sys.executable, "-c", "from framework.host.cli import main; main()", "test", "--specs", str(specs)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    count = len(of_steps()) + 2
    assert f"{count} tests, {count} passed, 0 failed" in result.stdout, result.stdout + result.stderr
