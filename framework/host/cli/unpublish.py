"""`sluice unpublish`: no longer list a table in another catalog."""

from __future__ import annotations

from pathlib import Path

import click

from framework.base.errors import SluiceError
from framework.host.cli import _complete, _specs

SECTION, ORDER = "try and tidy", 5
ALSO_CALLED = ("unlist", "unregister")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.argument("catalog", required=False, shell_complete=_complete.catalogs)
@click.option("--forget", is_flag=True, help="Do not ask the other catalog, which is gone: only end what is kept for it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_spark
def command(name: str, catalog: str | None, forget: bool, yes: bool, specs: Path, environment: str) -> None:
    """No longer list a table in other catalogs.

    Removes the table of pipeline NAME from CATALOG, or from all that list it by `publish`. The table itself stays, with all its
    files. As long as the spec says `publish`, the next run lists it again: remove that first.

    Example: sluice unpublish flagged_stock_trades open_catalog
    """
    from framework.operations.drop import unpublish

    with _specs.opened(specs, environment, name) as (context, pipeline):
        chosen = list(unpublish.of_pipeline(context.plan, pipeline, catalog, ask=not forget))
        if not chosen:
            state = f"not listed in the catalog `{catalog}`" if catalog else "listed in no other catalog"
            raise SluiceError("not-listed", f"{pipeline.table.identifier} is {state}", "`sluice status` shows where it is listed")
        for publication in chosen:
            click.echo(f"  {publication.words}")
        if not yes:
            click.confirm("End this? The table itself stays.", abort=True)
        for publication in chosen:
            unpublish.end(context.plan, pipeline, publication)
            unpublish.forget_tags(context, pipeline, publication)
            click.echo(f"{name}: no longer listed in {publication.catalog}")
            if publication.follower in pipeline.published:
                click.echo(f"the next run lists it again, unless the spec no longer says `publish` of {publication.catalog}")
