"""Steps of a project's own, and of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.host.cli import main
from framework.language import extensions
from framework.plan.lineage import lineage
from tests.support.own_steps import SHOUT, SPECS, planned

ROOT = Path(__file__).resolve().parents[2]
CHANGES = SPECS.replace("json", "debezium_json").replace("name: string, age: int", "id: string, name: string, note: string")
CHANGES = CHANGES.replace("a.users}", "a.users, write: upsert, keys: [id]}")
ONCE = """
from sluice.steps import Remember, Resolved
Written = str
def resolve(step, rows):
    return Resolved(rows.columns, memory=Remember(columns=(step.value,), admit=lambda new, earlier: new))
"""
OPTIONS = """
from dataclasses import dataclass
from sluice.steps import OptionGroup, option
@dataclass(frozen=True)
class Written(OptionGroup):
    column: str = option("The column.", example="name")
"""


@pytest.fixture
def tidy() -> str:
    return (ROOT / "pipelines" / "steps" / "tidy.py").read_text()


def test_the_shipped_example_is_a_step(tmp_path: Path, tidy: str) -> None:
    plan, problems = planned(tmp_path, "tidy: [name]", tidy=tidy)
    assert problems == []
    (step,) = plan.pipelines[0].steps
    assert step.name == "tidy"
    assert "trim(`name`)" in str((*step.attempts, *step.assign))


def test_a_step_whose_sql_is_a_plain_text_reads_every_column(tmp_path: Path, tidy: str) -> None:
    (pipeline,) = planned(tmp_path, "shout: x}, {tidy: [name]", shout=SHOUT, tidy=tidy)[0].pipelines
    assert lineage(pipeline)["name"] >= {"name", "age", "_kafka_offset"}
    (pipeline,) = planned(tmp_path, "tidy: [name]", tidy=tidy)[0].pipelines
    assert lineage(pipeline)["name"] == {"name"}


def test_a_plain_text_needs_every_value_that_debezium_did_not_send(tmp_path: Path, tidy: str) -> None:
    def needed(step: str) -> set[str]:
        plan, problems = planned(tmp_path, step, CHANGES, shout=SHOUT, tidy=tidy, once=ONCE)
        assert problems == []
        faults = plan.pipelines[0].topic.decoding.faults
        return {fault.message.split("`")[1] for fault in faults if fault.code == "value_not_sent"}

    assert needed("tidy: [name]") == {"name"}
    assert needed("shout: x") > {"id", "name", "note"}
    assert needed("drop: [note]") == set()
    assert needed("once: note") == {"note"}


def test_mistakes_in_an_own_steps_options_have_their_place(tmp_path: Path, tidy: str) -> None:
    assert planned(tmp_path, "tidy: [nam, age]", tidy=tidy)[1] == [
        "DIR/specs/a.yaml:16:17: unknown-column: there is no column `nam` | did you mean `name`?",
        "DIR/specs/a.yaml:16:22: not-text: `age` is int, not text | name columns of text only",
    ]
    assert planned(tmp_path, "tidy: {name: 1}", tidy=tidy)[1][0].startswith("DIR/specs/a.yaml:16:16: wrong-type")
    assert "did you mean `tidy`?" in planned(tmp_path, "tidi: [name]", tidy=tidy)[1][0]


def test_a_column_without_a_type_is_a_problem(tmp_path: Path) -> None:
    step = SHOUT.replace("rows.columns, ((", "(*rows.columns, rows.new_column('x', untyped, step.place())), ((")
    step = step.replace("    return", "    untyped = type(rows.columns[0].type)('void')\n    return")
    assert planned(tmp_path, "void: name", void=step)[1] == [
        "DIR/specs/a.yaml:16:16: no-type: the column `x` has no type | give it a type: `cast(null as string)`"
    ]


def test_an_own_step_has_its_own_options(tmp_path: Path) -> None:
    text = SHOUT.replace("Written = str", OPTIONS).replace('"""Shouts."""', '"""Shouts."""\nfrom __future__ import annotations')
    assert planned(tmp_path, "shout: {column: name}", shout=text)[1] == []
    assert planned(tmp_path, "shout: {colum: name}", shout=text)[1] == [
        "DIR/specs/a.yaml:16:18: unknown-key: `colum` is not an option of `shout` | did you mean `column`?"
    ]


def test_a_broken_file_is_one_problem(tmp_path: Path) -> None:
    problems = planned(tmp_path, "shout: name}, {shout: age", shout=SHOUT.replace("Written", "written"))[1]
    assert [problem.split(": ")[1] for problem in problems] == ["bad-step"]


@pytest.mark.parametrize(
    ("text", "place_and_text"),
    [
        ("def (", "own.py:1:1: bad-step: this step failed: SyntaxError: invalid syntax"),
        ("x = 1\n1 / 0", "own.py:2:1: bad-step: this step failed: ZeroDivisionError: division by zero"),
        ("Written = str", "own.py:1:1: bad-step: this file has no `resolve`"),
        ("Written = str\ndef resolve(step, rows):\n    return rows.nothing", "own.py:3:1: bad-step: this step failed: Attribute"),
        (
            "Written = str\ndef resolve(step, rows):\n    return 1",
            "own.py:1:1: bad-step: this step failed: TypeError: resolve must",
        ),
        (
            "from sluice.steps import Resolved\nWritten = str\n"
            "def resolve(step, rows):\n    return Resolved(rows.columns, says=({1},))",
            "own.py:1:1: bad-step: this step failed: TypeError: a plan cannot hold a builtins.set",
        ),
        ("import sys\nsys.exit(3)", "own.py:2:1: bad-step: this step failed: SystemExit: 3"),
    ],
)
def test_an_error_in_an_own_step_has_its_line(tmp_path: Path, text: str, place_and_text: str) -> None:
    problems = planned(tmp_path, "own: x", own=text)[1]
    assert any(f"DIR/pipelines/steps/{place_and_text}" in problem for problem in problems), problems


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert planned(tmp_path, "shout: x", shout="Written = str")[1] != []
    assert planned(tmp_path, "shout: x", shout=SHOUT)[1] == []


def test_an_own_step_cannot_take_the_name_of_a_built_in_step(tmp_path: Path) -> None:
    problems = planned(tmp_path, "filter: age > 1", filter=SHOUT)[1]
    assert problems == [
        "DIR/pipelines/steps/filter.py:1:1: duplicate-step: `filter` is one of Sluice's own steps | give the file another name"
    ]


def test_steps_of_one_project_are_not_those_of_another(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert planned(tmp_path / "one", "shout: x", shout=SHOUT)[1] == []
    assert "unknown" in planned(tmp_path / "two", "shout: x")[1][0]


def test_check_can_run_without_the_projects_code(tmp_path: Path) -> None:
    text = f"open({str(tmp_path / 'ran')!r}, 'w')\n{SHOUT}"
    planned(tmp_path, "shout: name}, {filter: nothing > 1", shout=text)
    assert (tmp_path / "ran").exists()
    (tmp_path / "ran").unlink()
    (tmp_path / "pipelines" / "steps" / "shout.py").write_text(f"{text}#")  # as a change would
    arguments = ["check", "--specs", str(tmp_path / "specs"), "--no-own-steps"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0
    assert "note: not run, as --no-own-steps says: shout; the steps after these were not checked" in done.stderr
    assert not (tmp_path / "ran").exists()
    specs = tmp_path / "specs" / "a.yaml"
    specs.write_text(specs.read_text().replace("{shout: name}", "{filter: nam = 1}, {shout: [name, {x: 1}]}"))
    before = CliRunner().invoke(main, arguments)
    assert "unknown-column: there is no column `nam`" in before.output
    assert "1 problem\n" in before.output
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def louder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a step that an installed package offers."""
    site = tmp_path / "site"
    (site / "louder-1.0.dist-info").mkdir(parents=True)
    (site / "louder-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: louder\nVersion: 1.0\n")
    (site / "louder-1.0.dist-info" / "entry_points.txt").write_text("[sluice.steps]\nlouder = louder\n")
    monkeypatch.syspath_prepend(str(site))
    extensions._load_files.cache_clear()
    yield site / "louder.py"
    sys.modules.pop("louder", None)
    extensions._load_files.cache_clear()


def test_an_installed_package_offers_a_step(tmp_path: Path, louder: Path) -> None:
    louder.write_text(SHOUT)
    plan, problems = planned(tmp_path, "louder: x")
    assert problems == []
    assert plan.pipelines[0].steps[0].assign == (("name", "upper(name)"),)


def test_an_installed_step_with_an_old_import_is_refused(tmp_path: Path, louder: Path) -> None:
    louder.write_text(SHOUT.replace("sluice.steps", "framework.plan.rows"))
    assert (
        "the installed step louder:2:1: moved-import: `Resolved` moved from `framework.plan.rows` to `sluice.steps`"
        " | write `from sluice.steps import Resolved`"
    ) in planned(tmp_path, "louder: x")[1]
    assert "louder" not in sys.modules


def test_the_page_shows_the_shipped_step(tidy: str) -> None:
    assert f"```python\n{tidy}```" in (ROOT / "docs" / "language" / "own-steps.md").read_text(encoding="utf-8")
