"""`sluice unpublish`: no longer list a table in another catalog."""

from __future__ import annotations

from pathlib import Path

import click

from framework.cli import _complete, _specs
from framework.errors import SluiceError

SECTION, ORDER = "try and tidy", 5
ALSO_CALLED = ("unlist", "unregister")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.argument("catalog", required=False, shell_complete=_complete.catalogs)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_specs
def command(name: str, catalog: str | None, yes: bool, specs: Path, environment: str) -> None:
    """No longer list a table in other catalogs.

    Removes the table of pipeline NAME from CATALOG, or from all that list it by `publish`. The table itself stays, with all its
    files. As long as the spec says `publish`, the next run lists it again: remove that first.

    Example: sluice unpublish flagged_stock_trades open_catalog
    """
    from framework.engine import unpublish

    with _specs.opened(specs, environment, name) as (context, pipeline):
        all_ = list(unpublish.of_pipeline(context.plan, pipeline))
        chosen = [each for each in all_ if catalog in (None, each.catalog.name)]
        if not chosen:
            where = f"in the catalog `{catalog}`" if catalog else "in no other catalog"
            message = f"{pipeline.table.identifier} is {'not listed ' if catalog else 'listed '}{where}"
            others = ", ".join(sorted({each.catalog.name for each in all_}))
            raise SluiceError(
                "not-listed", message, f"it is listed in {others}" if others else "`sluice status` shows where it is"
            )
        for each in chosen:
            click.echo(f"  {each.words}")
        if not yes:
            click.confirm("Remove it there? The table itself stays.", abort=True)
        for each in chosen:
            unpublish.end(each)
            tags = [tag for tag in each.follower.tags if tag in each.table.refs]
            lake = context.lake(pipeline)
            lake.untag(lake.load(pipeline.table.identifier), tags)
            click.echo(f"{name}: no longer listed in {each.catalog.name}")
            if each.follower in pipeline.published:
                click.echo(f"the next run lists it again, unless the spec no longer says `publish` of {each.catalog.name}")
