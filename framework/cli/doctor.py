"""`sluice doctor`: whether this machine is ready, and how to fix it."""

from __future__ import annotations

import sys

import click

from framework.amounts import counted

SECTION, ORDER = "try and tidy", 7


@click.command()
def command() -> None:
    """Check Python, Java, packages, jars, ports, disk and memory.

    Changes and downloads nothing.

    Example: sluice doctor
    """
    from framework.doctor import diagnose

    findings = diagnose()
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        word = click.style("ok     ", fg="green") if finding.ok else click.style("problem", fg="red", bold=True)
        click.echo(f"{word}  {finding.subject:<{width}}  {finding.state}")
        if not finding.ok:
            click.echo(f"{'':9}{'':{width}}  hint: {finding.hint}")
    problems = sum(not finding.ok for finding in findings)
    if problems:
        click.echo(counted(problems, "problem"))
        sys.exit(1)
