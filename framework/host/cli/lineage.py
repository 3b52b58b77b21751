"""`sluice lineage`: where each column comes from, as text or as a page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import visible
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.plan import Pipeline, Plan

SECTION, ORDER = "see", 10


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page to click through."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
def command(names: tuple[str, ...], page: Path | None, as_json: bool, specs: Path, environment: str) -> None:
    """Show where each column comes from.

    For each column of a table the columns of topics and tables that it is computed from, through all steps, joins, groups
    and selects. Conditions, as those of `filter`, do not count.

    Without a NAME, all pipelines. The page of --html shows all of them, and what is made of each column. It is one file
    without links to other servers, so that it can be sent or kept.

    Example: sluice lineage --html lineage.html
    """
    from framework.operations.lineage import flow as flows, page as pages

    if page is not None and as_json:
        raise click.UsageError("--html writes a page, and --json a document: choose one")
    if page is not None and names:
        raise click.UsageError("--html shows all pipelines: leave the names out, and find them on the page")
    plan = _specs.plan(specs, environment)
    if page is None:
        pipelines = _specs.chosen(plan, names)
        if not (pipelines or as_json):
            click.echo("there are no pipelines")
        show(plan, pipelines, environment, as_json)
        return
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(pages.html(flows.build_flow(plan), environment), encoding="utf-8")
    click.echo(f"wrote {page}: open it in a browser")


def show(plan: Plan, pipelines: Iterable[Pipeline], environment: str, as_json: bool) -> None:
    from framework.operations.lineage import flow as flows, text

    flow = flows.build_flow(plan)
    if as_json:
        documents = [text.document(flow, pipeline) for pipeline in pipelines]
        click.echo(json.dumps({"environment": environment, "pipelines": documents}, indent=2))
        return
    for pipeline in pipelines:
        click.echo("\n".join((*map(visible, text.lines(flow, pipeline)), "")))
