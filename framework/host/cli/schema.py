"""`sluice schema`: the JSON Schema of specs, for editors."""

from __future__ import annotations

import json

import click

SECTION, ORDER = "write", 6


@click.command()
def command() -> None:
    """Print the JSON Schema of specs, for editors.

    Editors complete and check specs with it.

    Begin each document of a spec with the line that names it:

    \b
    # yaml-language-server: $schema=schema.json

    The schema has the options and their values; only `sluice check` knows whether columns and tables exist.

    Example: sluice schema > specs/schema.json
    """
    from framework.host.components import all_components
    from framework.language.editor import document_schema

    with all_components():
        schema = document_schema()
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False).encode())
