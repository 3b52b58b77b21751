"""`sluice clean`: delete the tables, the services and the state of this project."""

from __future__ import annotations

from pathlib import Path

import click

from framework.host.cli import _specs

SECTION, ORDER = "try and tidy", 6


@click.command()
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option("--jars", is_flag=True, help="Delete the jars too, or only the link to those that all folders share.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_specs.with_specs
def command(dry_run: bool, jars: bool, yes: bool, specs: Path, environment: str) -> None:
    """Delete tables, services and Sluice's state; files of exports stay.

    Deleted are the tables of these specs with their files and their names in other catalogs; the services on this machine with
    their data, Kafka's messages included; and in `.sluice` the history of runs, pauses, records of exports, logs and caches.

    Not deleted are the files of exports, in folders and buckets; specs; secrets, and keys that a script of `sluice access` wrote;
    topics and schemas in another Kafka or registry; and files that Sluice did not create. What of it is on this machine is
    listed, the files of exports with their folders. Jars stay without --jars.

    Refused while a run or `sluice ui` is under way.

    Example: sluice clean --dry-run
    """
    from framework.base.amounts import size
    from framework.host.clean import plan_cleanup

    cleanup = plan_cleanup(_specs.plan_without_registries(specs, environment), jars)
    for going in cleanup.going:
        click.echo(f"  {going.words}{f', {size(going.bytes)}' if going.bytes else ''}")
    for staying in cleanup.staying:
        click.echo(f"  stays: {staying}")
    if not cleanup.going:
        click.echo("nothing to delete")
        return
    total = size(sum(going.bytes for going in cleanup.going))
    if dry_run:
        click.echo(f"{total} would be deleted")
        return
    if not yes:
        click.confirm(f"Delete this, {total}?", abort=True)
    for going in cleanup.going:
        going.go()
    click.echo(f"{total} deleted")
