"""Prints the JSON Schema of specs, for editors."""

from __future__ import annotations

import json

import click


@click.command()
def command() -> None:
    """Print the JSON Schema of specs, by which editors complete and check them.

    A spec names it in its first line: # yaml-language-server: $schema=… and a path or an address.
    It knows what an option is and takes; that columns and tables exist only `sluice check` knows.

    Example: sluice schema > docs/language/schema.json
    """
    from framework.spec.editor import document_schema

    click.echo(json.dumps(document_schema(), indent=2, ensure_ascii=False).encode())
