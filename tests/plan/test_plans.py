"""Plans as text, for the shipped specs and for some that use more of the language (`tests/plans/more`). REWRITE=1 in the
environment rewrites the stored plans: read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.host.cli import main
from framework.host.plans import make
from framework.plan.text import pipeline_lines

ROOT = Path(__file__).resolve().parents[2]
PLANS = Path("tests") / "plans"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SLUICE_VAR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_VAR_REGISTRY", "http://127.0.0.1:1")  # so that a registry on this machine changes nothing
    monkeypatch.chdir(ROOT)  # places are shown as the user of this folder sees them


@pytest.mark.parametrize(("specs", "folder"), [(Path("specs"), PLANS), (PLANS / "more", PLANS / "more")], ids=["shipped", "more"])
def test_each_plan_has_its_golden_text(specs: Path, folder: Path) -> None:
    pipelines = make(specs).pipelines
    texts = {f"{pipeline.name}.plan": "".join(f"{line}\n" for line in pipeline_lines(pipeline)) for pipeline in pipelines}
    if os.environ.get("REWRITE") == "1":
        for old in folder.glob("*.plan"):
            old.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert texts == {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.plan"))}


def test_sluice_plan_prints_every_pipeline() -> None:
    printed = CliRunner().invoke(main, ["plan", "--no-look"]).output
    pipelines = "".join(path.read_text(encoding="utf-8") + "\n" for path in sorted(PLANS.glob("*.plan")))
    assert printed.startswith(pipelines)
    golden = PLANS / "documents.txt"
    if os.environ.get("REWRITE") == "1":
        golden.write_text(printed.removeprefix(pipelines), encoding="utf-8")
    assert printed.removeprefix(pipelines) == golden.read_text(encoding="utf-8")
