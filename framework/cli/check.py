"""Checks the specs and starts nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from framework.cli import _specs
from framework.errors import Problem


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of the problems and nothing else.")
@_specs.with_specs
def command(as_json: bool, specs: Path, environment: str) -> None:
    """Check the specs: print all problems at once, each with its place and what to do about it.

    Exit status: 0 no problems, 1 problems, 2 wrong usage.

    Example: sluice check --specs specs
    """
    from framework.plan.passes import draft

    plan, problems = draft(specs, environment)
    if as_json:
        click.echo(json.dumps([_entry(problem) for problem in problems], indent=2))
    else:
        for problem in problems:
            click.echo(str(problem))
        checked = f"{_counted(len(plan.pipelines), 'pipeline')}, {_counted(len(plan.topics), 'topic')}: no problems"
        click.echo(_counted(len(problems), "problem") if problems else checked)
    sys.exit(1 if problems else 0)


def _entry(problem: Problem) -> dict[str, str | int]:
    where = problem.where
    return {
        "file": where.file, "line": where.line, "column": where.column,
        "code": problem.code, "message": problem.message, "hint": problem.hint,
    }  # fmt: skip


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
