"""The plans of the shipped specs as text. With REWRITE=1 in the environment they are written anew: read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from framework.plan.model import Plan
from framework.plan.passes import make
from framework.plan.text import pipeline_lines, plan_text

ROOT = Path(__file__).resolve().parent.parent
PLANS = Path(__file__).parent / "plans"


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    for name in [name for name in os.environ if name.startswith("SLUICE_VAR_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(ROOT)  # places are shown as the user of this folder sees them
    return make(Path("specs"))


def test_plans_of_the_shipped_specs(plan: Plan) -> None:
    made = {f"{pipeline.name}.plan": "".join(f"{line}\n" for line in pipeline_lines(pipeline)) for pipeline in plan.pipelines}
    if os.environ.get("REWRITE") == "1":
        for old in PLANS.glob("*.plan"):
            old.unlink()
        for name, text in made.items():
            (PLANS / name).write_text(text, encoding="utf-8")
    assert made == {path.name: path.read_text(encoding="utf-8") for path in sorted(PLANS.glob("*.plan"))}


def test_what_is_printed_is_every_pipeline(plan: Plan) -> None:
    assert plan_text(plan) == "\n".join(path.read_text(encoding="utf-8") for path in sorted(PLANS.glob("*.plan")))
