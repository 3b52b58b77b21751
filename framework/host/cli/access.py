"""`sluice access`: what to run in another system to use a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base import hints
from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean
from framework.host.cli import _complete, _specs, _topics
from framework.operations.access.steps import PARTS
from framework.operations.access.targets import names

if TYPE_CHECKING:
    from framework.plan import Pipeline, Plan

SECTION, ORDER = "see", 9
ALSO_CALLED = ("connect", "read-from", "grant")


@click.command()
@click.argument("target", type=click.Choice(names()))
@click.argument("name", required=False, shell_complete=_complete.pipelines)
@click.option("--part", type=click.Choice(PARTS), help="Print this part alone; default: all but cleanup.")
@click.option(
    "--describe",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What the other system printed of what was created there.",
)
@click.option("--catalog", shell_complete=_complete.catalogs, help="Grant ALL tables of this catalog, in place of NAME's alone.")
@click.option("--bad-rows", is_flag=True, help="Print also what readers of the table's bad rows need: whole messages.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_specs.with_specs
def command(
    target: str,
    name: str | None,
    part: str | None,
    describe: Path | None,
    catalog: str | None,
    bad_rows: bool,
    as_json: bool,
    specs: Path,
    environment: str,
) -> None:
    """Print what to run in another system to use a table.

    A script for TARGET that finds and reads the table of pipeline NAME, or that grants what Sluice needs for it: complete, in
    order, with a line that explains each step. For snowflake-streaming NAME is a topic. Names are those of the specs. In place of
    a secret there is its name. Nothing is run, and nothing is asked of the other system.

    --part cleanup removes what the script creates, the last first. Optional parts, and objects that other tables may use, are
    comments. --describe is for aws-trust: it takes a file with names that only the other system knows, and the script of
    `sluice access snowflake` says how to save it.

    What is granted is for one table, without its bad rows. --catalog and --bad-rows are for aws-policy.

    Example: sluice access duckdb flagged_stock_trades
    """
    from framework.operations.access import described, script, targets
    from framework.operations.access.about import AccessSubject, TopicSubject, access_command

    plan, flags = _specs.plan(specs, environment), hints.options(environment, specs)
    file = targets.targets()[target]
    _refuse_untaken(target, {"--describe": describe, "--catalog": catalog, "--bad-rows": bad_rows})
    if (name is None) == (catalog is None):
        raise click.UsageError("write the NAME of a pipeline, or --catalog with that of a catalog: one of them")
    if file.OF == "topic":
        about: AccessSubject | TopicSubject = TopicSubject(plan, _topics.topic(plan, str(name)))
    elif catalog is not None:
        about = AccessSubject(plan, _keeper(plan, catalog), flags=flags, whole_catalog=True, bad_rows=bad_rows)
    else:
        (pipeline,) = _specs.chosen(plan, [str(name)])
        descriptions = described.read(describe) if describe else {}
        about = AccessSubject(plan, pipeline, described=descriptions, flags=flags, bad_rows=bad_rows)
    warnings, steps = script.script(file, about)
    parts = [choice for choice in PARTS if choice == part or (not part and choice != "cleanup")]
    if as_json:
        click.echo(script.as_json(target, name or str(catalog), warnings, steps, parts))
        return
    title = f"{about.title}: {script.says(file)}"
    for line in script.as_text(title, warnings, steps, parts):
        click.echo(line)
    if part is None and any(step.part == "cleanup" for step in steps):
        command_line = about.command(target) if isinstance(about, AccessSubject) else access_command(target, str(name), flags)
        taking_back = f"{command_line} --part cleanup"
        click.echo(f"\n{steps[-1].system.comment} To take all of this back: {taking_back}")


def _refuse_untaken(target: str, options: Mapping[str, object]) -> None:
    """Raises where an option was given that the target does not take."""
    from framework.operations.access import targets

    target_files = targets.targets()
    for option in (option for option, value in options.items() if value):
        takers = [name for name, file in target_files.items() if option in getattr(file, "TAKES", ())]
        if target not in takers:
            raise click.UsageError(f"{target} takes no {option}: it is for {', '.join(takers)}")


def _keeper(plan: Plan, catalog: str) -> Pipeline:
    """Return the first pipeline whose table is in the catalog."""
    keepers = {pipeline.table.catalog.name: pipeline for pipeline in reversed(plan.pipelines)}
    if catalog not in keepers:
        fallback = f"tables are in {', '.join(map('`{}`'.format, keepers)) or 'none'}"
        raise SluiceError(
            "unknown-catalog", f"no pipeline writes to a catalog `{catalog}`", did_you_mean(catalog, keepers, fallback)
        )
    return keepers[catalog]
