"""`sluice setup`: get the jars, each checked against jars.lock, and a folder for Dagster."""

from __future__ import annotations

import time

import click


@click.command()
def command() -> None:
    """Get the jars that Spark and the services need; takes no time when they are here.

    Example: sluice setup
    """
    from framework import jars
    from framework.errors import SetupError
    from framework.home import dagster_home
    from framework.java import java

    java()
    dagster_home()
    for name, locked in jars.sets().items():
        try:
            jars.folder(name)
        except SetupError:
            click.echo(f"{name} jars: fetching what is missing of {len(locked)} ...")
            began = time.monotonic()
            jars.fetch(name)
            click.echo(f"{name} jars: {len(locked)} here and checked, {time.monotonic() - began:.0f} s")
        else:
            click.echo(f"{name} jars: ready")
