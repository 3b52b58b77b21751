"""`sluice check`: problems of the specs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.amounts import counted
from framework.base.errors import Problem
from framework.host.cli import _specs

if TYPE_CHECKING:
    from framework.plan import Plan

SECTION, ORDER = "write", 2
ALSO_CALLED = ("validate", "lint", "compile", "parse")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of the problems only.")
@click.option("--online", is_flag=True, help="Ask schema registries that need a login, too.")
@click.option("--no-own-steps", is_flag=True, help="Run no Python of the project, for changes that nobody has reviewed.")
@_specs.with_specs
def command(as_json: bool, online: bool, no_own_steps: bool, specs: Path, environment: str) -> None:
    """Find all problems in the specs, each with its place and a hint.

    Runs own steps, which are Python. Asks the schema registries of the specs for columns, but sends a login only with --online;
    without it, the cached schemas count.

    Exit status: 0 no problems, 1 problems, 2 wrong usage.

    Example: sluice check --specs specs
    """
    from framework.features.export import queries
    from framework.host.plans import draft
    from framework.language import extensions

    with extensions.project(specs.absolute().parent, loads=not no_own_steps) as project:
        plan, problems = draft(specs, environment, logins=online)
        problems = (*problems, *queries.problems(plan))
    for note in _unchecked(plan, sorted(project.left_out)):
        click.echo(f"note: {note}", err=True)
    if as_json:
        click.echo(json.dumps(_specs.hinted_in([_entry(problem) for problem in problems]), indent=2))
    else:
        for problem in problems:
            _specs.echo(str(problem))
        checked = f"{counted(len(plan.pipelines), 'pipeline')}, {counted(len(plan.topics), 'topic')}: no problems"
        click.echo(counted(len(problems), "problem") if problems else checked)
    sys.exit(1 if problems else 0)


def _unchecked(plan: Plan, left_out: Sequence[str]) -> Iterator[str]:
    """Lines about the parts that were not checked."""
    if left_out:
        yield f"not run, as --no-own-steps says: {', '.join(left_out)}; the steps after these were not checked"
    by_message = {
        schema.trouble.message: bool(schema.numbers) for topic in plan.topics for schema in topic.registered if schema.trouble
    }
    for message, is_cached in sorted(by_message.items()):
        yield f"{message}; {'its cached schemas count' if is_cached else '`columns` were not compared with it'}"


def _entry(problem: Problem) -> dict[str, str | int]:
    where = problem.where
    return {
        "file": where.file, "line": where.line, "column": where.column,
        "code": problem.code, "message": problem.message, "hint": problem.hint,
    }  # fmt: skip
