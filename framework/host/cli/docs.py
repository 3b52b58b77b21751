"""`sluice docs`: the pages of the spec language."""

from __future__ import annotations

from pathlib import Path

import click

SECTION, ORDER = "write", 7


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("docs/language"))
def command(folder: Path) -> None:
    """Write the pages of the spec language, with steps of your own.

    FOLDER (default: docs/language) gets one page for each kind of document, each step and SQL expressions.
    Steps of this project, in pipelines/steps, have theirs too.

    Example: sluice docs
    """
    from framework.host.components import all_components
    from framework.operations.reference import pages

    with all_components():
        texts = pages()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    click.echo(f"wrote {len(texts)} pages; the first is {folder / 'index.md'}")
