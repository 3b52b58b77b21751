"""Prints the JSON Schema of specs, for editors."""

from __future__ import annotations

import json

import click

SECTION, ORDER = "write", 6


@click.command()
def command() -> None:
    """Print the JSON Schema of specs, for editors.

    Editors complete and check specs by it.

    Each document of a spec begins with the line that names it:

    \b
    # yaml-language-server: $schema=schema.json

    It knows what an option is and takes; that columns and tables exist only `sluice check` knows.

    Example: sluice schema > specs/schema.json
    """
    from framework.spec.editor import document_schema

    click.echo(json.dumps(document_schema(), indent=2, ensure_ascii=False).encode())
