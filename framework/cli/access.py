"""`sluice access`: what to run in another system to use a table."""

from __future__ import annotations

from pathlib import Path

import click

from framework import hints
from framework.access.steps import PARTS
from framework.cli import _complete, _specs, _topics
from framework.targets import names

SECTION, ORDER = "see", 9
ALSO_CALLED = ("connect", "read-from", "grant")


@click.command()
@click.argument("target", type=click.Choice(names()))
@click.argument("name", shell_complete=_complete.pipelines)
@click.option("--part", type=click.Choice(PARTS), help="Print this part alone; default: all but cleanup.")
@click.option(
    "--describe",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What the other system printed of what was created there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_specs.with_specs
def command(
    target: str, name: str, part: str | None, describe: Path | None, as_json: bool, specs: Path, environment: str
) -> None:
    """Print what to run in another system to use a table.

    A script for TARGET that finds and reads the table of pipeline NAME, or that grants what Sluice needs for it: complete, in
    order, with a line that explains each step. For snowflake-streaming NAME is a topic. Names are those of the specs. In place of
    a secret there is its name. Nothing is run, and nothing is asked of the other system.

    --part cleanup removes what the script creates, the last first. Optional parts, and objects that other tables may use, are
    comments. --describe is for aws-trust: it takes a file with names that only the other system knows, and the script of
    `sluice access snowflake` says how to save it.

    Example: sluice access duckdb flagged_stock_trades
    """
    from framework.access import described, script
    from framework.access.about import About, AboutTopic, typed

    plan, flags = _specs.plan(specs, environment), hints.options(environment, specs)
    file = script.targets()[target]
    if describe and not hasattr(file, "DESCRIBED"):
        takes = ", ".join(each for each, module in script.targets().items() if hasattr(module, "DESCRIBED"))
        raise click.UsageError(f"{target} takes no --describe: it is for {takes}")
    if file.OF == "topic":
        about: About | AboutTopic = AboutTopic(plan, _topics.topic(plan, name))
    else:
        (pipeline,) = _specs.chosen(plan, [name])
        about = About(plan, pipeline, described.read(describe) if describe else {}, flags)
    warned, steps = script.script(file, about)
    parts = [each for each in PARTS if each == part or (not part and each != "cleanup")]
    if as_json:
        click.echo(script.as_json(target, name, warned, steps, parts))
        return
    title = f"{about.title}: {script.says(file)}"
    for line in script.as_text(title, warned, steps, parts):
        click.echo(line)
    if part is None and any(each.part == "cleanup" for each in steps):
        taking_back = f"{typed(target, name, flags)} --part cleanup"
        click.echo(f"\n{steps[-1].in_.comment} To take all of this back: {taking_back}")
