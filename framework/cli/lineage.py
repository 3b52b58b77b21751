"""`sluice lineage`: where each column comes from, as text or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from framework.cli import _complete, _specs

SECTION, ORDER = "see", 10


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a page to click through."
)
@_specs.with_specs
def command(names: tuple[str, ...], page: Path | None, specs: Path, environment: str) -> None:
    """Show where each column comes from.

    For each column of a table the columns of topics and tables that it is computed from, through all steps, joins, groups
    and selects. Conditions, as those of `filter`, do not count.

    Without a NAME, all pipelines. The page of --html shows all of them, and what is made of each column. It is one file
    without links to other servers, so that it can be sent or kept.

    Example: sluice lineage --html lineage.html
    """
    from framework.lineage import flow as flows
    from framework.lineage import page as pages
    from framework.lineage import text

    if page is not None and names:
        raise click.UsageError("--html shows all pipelines: leave the names out, and find them on the page")
    plan = _specs.plan(specs, environment)
    flow = flows.of(plan)
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(pages.html(flow, environment), encoding="utf-8")
        click.echo(f"wrote {page}: open it in a browser")
        return
    for pipeline in _specs.chosen(plan, names):
        click.echo("\n".join((*text.lines(flow, pipeline), "")))
