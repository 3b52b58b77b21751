"""Projects with steps of their own."""

from __future__ import annotations

from pathlib import Path

from framework.host.plans import draft
from framework.plan import Plan

SPECS = """
cluster: main
bootstrap: 127.0.0.1:1
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: lake
---
topic: users
value: json
columns: {name: string, age: int}
---
pipeline: users
from: {topic: users}
steps: [{STEP}]
into: {table: a.users}
"""
SHOUT = '''"""Shouts."""
from sluice.steps import Resolved
Written = str
def resolve(step, rows):
    return Resolved(rows.columns, (("name", "upper(name)"),))
'''


def planned(folder: Path, step: str, specs: str = SPECS, **files: str) -> tuple[Plan, list[str]]:
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "specs" / "a.yaml").write_text(specs.replace("STEP", step))
    (folder / "pipelines" / "steps").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / "pipelines" / "steps" / f"{name}.py").write_text(text)
    plan, problems = draft(folder / "specs")
    return plan, [str(problem).replace(str(folder), "DIR").replace("\n  hint:", " |") for problem in problems]
