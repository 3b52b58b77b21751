"""`sluice doctor`: whether this machine is ready, and how to fix it."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource

from framework.base.amounts import counted
from framework.host.cli import _addresses, _specs

SECTION, ORDER = "try and tidy", 8


@click.command()
@click.option(
    "--env",
    "environment",
    callback=_specs.keep_option,
    help="Check the systems of this environment, too, a folder of specs/environments.",
)
@_specs.SPECS
@click.pass_context
def command(ctx: click.Context, environment: str | None, specs: Path) -> None:
    """Check Python, Java, packages, jars, ports, disk and memory.

    Changes and downloads nothing. With --env or --specs it also checks what the specs name: whether Kafka, registry, catalogs, their
    files and the mail server can be reached, with the rights that a run needs. For that it writes a small file beside the tables,
    and deletes it.

    Example: sluice doctor --env prod
    """
    from framework.base.errors import SpecError
    from framework.base.home import environment_of
    from framework.operations.prepare.doctor import diagnose

    addresses: tuple[_addresses.NamedAddress, ...] = ()
    with suppress(SpecError):  # broken specs are no problem of this machine
        addresses = _addresses.named(specs, environment_of(environment))
    with _addresses.used(addresses):
        findings = diagnose()
    if environment is not None or ctx.get_parameter_source("specs") == ParameterSource.COMMANDLINE:
        from framework.operations.prepare.preflight import preflight

        findings += tuple(preflight(_specs.plan(specs, environment_of(environment))))
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        word = click.style("ok     ", fg="green") if finding.ok else click.style("problem", fg="red", bold=True)
        click.echo(f"{word}  {finding.subject:<{width}}  {finding.state}")
        if not finding.ok:
            click.echo(f"{'':9}{'':{width}}  hint: {_specs.hinted(finding.hint)}")
    problems = sum(not finding.ok for finding in findings)
    if problems:
        click.echo(counted(problems, "problem"))
        sys.exit(1)
