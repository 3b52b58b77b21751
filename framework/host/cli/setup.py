"""`sluice setup`: download the jars, each checked against jars.lock, cache Spark's classes, and create a folder for Dagster."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

import click

from framework.host.cli import _slim

SECTION, ORDER = "try and tidy", 9
ALSO_CALLED = ("install",)


@click.command()
@click.argument("more", nargs=-1, metavar="[aws] [registry]")
def command(more: tuple[str, ...]) -> None:
    """Download the jars and cache Spark's classes for a faster start.

    The first command that needs Spark does the same, and all folders of a user share what it gets. Takes no time if nothing is
    missing. With `aws` it also downloads what Spark needs for tables whose files are in an object store, 69 MB, and with `registry` the
    local schema registry, 158 MB.

    Example: sluice setup
    """
    get(more, retry=True)


def is_done(names: Iterable[str] = ()) -> bool:
    """Whether Spark can start with these jars, as fast as it does here."""
    from framework.host import class_archive
    from framework.machine.java import jars
    from framework.machine.jvm import build

    if not all(jars.are_here(name) for name in ("spark", *names)) or not build.jar().exists():
        return False
    return class_archive.was_tried()


def folders() -> None:
    """Creates the folders that the docs name in a project: Dagster's, and that of the jars, which may be a link to shared ones."""
    from framework.base.home import dagster_home
    from framework.machine.java import jars

    with suppress(OSError):  # this folder cannot be written
        dagster_home()
        jars.link()


def get(names: tuple[str, ...], retry: bool = False) -> None:
    from framework.machine.java import jars
    from framework.machine.java.java import started

    _slim.needs("pyspark")
    started()
    folders()
    jar_sets = jars.sets(later=True)
    for name in names:
        if name not in jars.OPTIONAL_SETS:
            raise click.UsageError(f"there are no jars named `{name}` to set up: write {' or '.join(jars.OPTIONAL_SETS)}")
    for name, locked_jars in ((name, jar_sets[name]) for name in (*jars.sets(), *names)):
        if jars.are_here(name):
            click.echo(f"{name} jars: ready")
            continue
        click.echo(f"{name} jars: downloading the missing ones of {len(locked_jars)} ...")
        began = time.monotonic()
        _fetch(name)
        click.echo(f"{name} jars: {len(locked_jars)} here and checked, {time.monotonic() - began:.0f} s")
    _build_decoders()
    _keep_classes(retry)


def _fetch(name: str) -> None:
    from framework.host.cli._progress import bar
    from framework.machine.java import jars

    with bar(f"{name} jars", "MB", None) as progress:
        jars.fetch(name, arrived=lambda *count: progress.update(*(byte_count // 1_000_000 for byte_count in count)))


def _build_decoders() -> None:
    from framework.machine.jvm import build

    if build.jar().exists():
        click.echo("decoders: ready")
        return
    began = time.monotonic()
    build.build()
    click.echo(f"decoders: compiled, {time.monotonic() - began:.0f} s")


_SLOW = "Spark takes twice as long to start"


def _keep_classes(retry: bool) -> None:
    """Caches Spark's classes; with `retry`, also if that failed before."""
    from framework.host import class_archive

    cache_state = class_archive.is_kept()
    if cache_state is not None and not (retry and cache_state is False):
        click.echo(f"spark classes: {'ready' if cache_state else f'they could not be cached here; {_SLOW}'}")
        return
    click.echo("spark classes: caching them, so that Spark starts faster, about a minute ...")
    began = time.monotonic()
    try:
        log = class_archive.create()
        why = f"see {log}" if log else ""
    except OSError as error:
        why = str(error)
    if why:
        click.echo(f"spark classes: they cannot be cached ({why}); everything works without, but {_SLOW}", err=True)
    else:
        click.echo(f"spark classes: cached, {time.monotonic() - began:.0f} s")
