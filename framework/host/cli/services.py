"""`sluice services`: start, stop and show the servers of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from framework.host.cli import _addresses, _needed, _specs
from framework.machine import services

SECTION, ORDER = "try and tidy", 3

_NAMES = click.argument("names", nargs=-1, type=click.Choice(sorted(services.services())), metavar="[NAME]...")


@click.group()
def command() -> None:
    """Start, stop and show a Kafka, a schema registry and others.

    They are real servers on this machine, for demos and tests: kafka; registry, a schema registry; mail, a mail server that keeps mails
    and shows them on a page; s3, an object store; catalog, a catalog of Iceberg's REST; aws, a stand-in for Glue and S3;
    prometheus, which reads the metrics of `sluice stream` and `sluice metrics`.

    Example: sluice services up kafka
    """


@command.command()
@_NAMES
@_specs.with_specs
def up(names: tuple[str, ...], specs: Path, environment: str) -> None:
    """Start services and wait until they answer.

    Without a NAME, these are Kafka and the ones whose addresses the specs name, such as a cluster's `registry` or the server of `mail`.

    A service starts at the port that the specs name for it on this machine, such as that of `bootstrap`. SLUICE_KAFKA_PORT and the
    like choose another one.

    Example: sluice services up kafka
    """
    from framework.host.prometheus.files import provide

    provide(names)
    addresses = _addresses.named(specs, environment)
    with _addresses.used(addresses):
        states = services.up(names or _needed.services_of(specs, environment), click.echo)
    for state in states:
        page = f", page {state.page}" if state.page else ""
        done = "started" if state.changed else "already running"
        click.echo(f"{state.name}: {done}, {state.address}, process {state.pid}{page}")
        for remark in _addresses.remarks(addresses, state):
            _specs.echo(remark)


@command.command()
@_NAMES
def down(names: tuple[str, ...]) -> None:
    """Stop services, by default all; their data stays.

    Without a NAME, the Spark that waits for commands ends as well.

    Example: sluice services down
    """
    for state in services.down(names):
        click.echo(f"{state.name}: {f'stopped, process {state.pid}' if state.changed else 'was not running'}")
    if not names:
        from framework.core.spark import scratch, warm_jvm

        if warm_spark := warm_jvm.end(also_busy=False):
            pid, ended = warm_spark
            click.echo(f"warm Spark: {'stopped' if ended else 'works for a command, and stays'}, process {pid}")
        scratch.sweep(also_young=True)


@command.command()
@_NAMES
def status(names: tuple[str, ...]) -> None:
    """Show services: name, state, process, address, memory.

    Example: sluice services status
    """
    for state in services.status(names):
        parts = [f"{state.name}: {state.state}"]
        if state.pid is not None:
            parts += [f"process {state.pid}", f"{state.address}"]
        if state.memory is not None:
            parts.append(f"{state.memory / 2**20:.0f} MiB")
        if state.page:
            parts.append(f"page {state.page}")
        click.echo(", ".join(parts))
