"""`sluice reveal`: the plain values of an encrypted column."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from framework.host.cli import _complete, _specs

SECTION, ORDER = "see", 8
ALSO_CALLED = ("decrypt", "unmask")


@click.command()
@click.argument("name", shell_complete=_complete.pipelines)
@click.argument("column")
@click.argument("values", nargs=-1)
@_specs.with_specs
def command(name: str, column: str, values: tuple[str, ...], specs: Path, environment: str) -> None:
    """Decrypt values that the step `mask` encrypted.

    NAME is a pipeline or its table, COLUMN a column or a field such as customer.phone. Without VALUES, reads one value from each line of
    the standard input. Prints one line for each value. Needs the mask's key among the secrets. A value that this key did not
    encrypt for this column is an error, and the others are still printed.

    Example: sluice reveal orders phone enc:pii:GMZWpA
    """
    plan = _specs.plan(specs, environment)
    (pipeline,) = _specs.chosen(plan, [name])
    from framework.base.errors import SluiceError
    from framework.core.query.reveal import reveal

    inputs = list(values) or [line.rstrip("\n") for line in sys.stdin]
    failed = 0
    for value, plain in zip(inputs, reveal(plan, pipeline, column, inputs), strict=True):
        failed += plain is None
        click.echo(value if plain is None else plain)
    if failed:
        message = f"{failed} of {len(inputs)} values were not encrypted for `{column}` by a key of {pipeline.name}"
        raise SluiceError("not-revealed", message, "give the column that they are of; list older keys under `keys: {old: […]}`")
