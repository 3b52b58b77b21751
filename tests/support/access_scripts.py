"""Scripts of `sluice access`, and their run in DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb

from framework.core.query import database as database_module
from framework.operations.access import script, targets
from framework.operations.access.about import AccessSubject, TopicSubject
from framework.operations.access.steps import ScriptStep
from framework.plan import Plan


def about(plan: Plan, target: str, name: str) -> AccessSubject | TopicSubject:
    if targets.targets()[target].OF == "topic":
        return TopicSubject(plan, next(topic for topic in plan.topics if topic.name == name))
    pipeline = plan.pipeline(name)
    assert pipeline is not None
    return AccessSubject(plan, pipeline)


def steps_of(plan: Plan, target: str, name: str) -> tuple[list[Any], list[ScriptStep]]:
    return script.script(targets.targets()[target], about(plan, target, name))


def run_in_duckdb(steps: list[ScriptStep], values: dict[str, str]) -> list[Any]:
    """The answers of the script's queries. Extensions are those of Sluice's own packages."""
    answers = []
    with duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}) as database:
        for extension in database_module._EXTENSIONS:
            database.execute(f"LOAD '{database_module._extension(extension)}'")
        for step in steps:
            if step.system.name != "In DuckDB" or step.run.startswith("INSTALL"):
                continue
            run = step.run
            for placeholder, value in values.items():
                run = run.replace(placeholder, value)
            assert "<" not in run, run
            answers.append((step.part, database.execute(run).fetchall()))
    return answers
