"""`sluice export`: the files of exports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base import amounts, iso_times
from framework.base.errors import SluiceError
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.features.export.write import ExportDone
    from framework.plan import Plan
    from framework.plan.export import Export

SECTION, ORDER = "run", 12


@click.command()
@click.argument("names", nargs=-1, shell_complete=_complete.exports)
@click.option(
    "--window", help="A certain window, such as 2026-W46, 2026-11, 2026-11-16 or 2026-11-16T05; default: the last complete one."
)
@_specs.with_specs
def command(names: tuple[str, ...], window: str | None, specs: Path, environment: str) -> None:
    """Write the files of the named exports, or of all exports.

    The file of a window has the same name each time, and appears whole or not at all. If it is there already, it is replaced, and the
    command says what changed. Starts no JVM.

    Example: sluice export weekly_trades --window 2026-W46
    """
    plan = _specs.plan(specs, environment)
    exports = _chosen(plan, names)
    if window and len(exports) != 1:
        raise click.UsageError("--window needs the name of one export")
    from datetime import datetime, timezone

    from framework.features.export import window as windows
    from framework.features.export.notify import notify
    from framework.features.export.write import write

    moment, failed = datetime.now(timezone.utc), False
    for export in exports:
        try:
            done = write(export, windows.chosen(export, window or "", moment), moment, plan.secrets)
            for line in lines(done):
                click.echo(line)
            for sent in notify(export, done, plan.secrets):
                click.echo(f"  {sent}")
        except SluiceError as error:
            if len(exports) == 1:
                raise
            _specs.echo(f"{export.name}: {error}", err=True)
            failed = True
    sys.exit(1 if failed else 0)


def _chosen(plan: Plan, names: tuple[str, ...]) -> list[Export]:
    exports = {document.name: document.value for document in plan.documents_of("export")}
    for name in names:
        if name not in exports:
            from framework.base.spelling import did_you_mean, the_names

            fallback = the_names("export", exports) if exports else "the specs have no exports: write a document `export: …`"
            raise SluiceError("unknown-export", f"there is no export `{name}`", did_you_mean(name, exports, fallback))
    if not exports:
        raise SluiceError("unknown-export", "the specs have no exports", "write a document `export: …`")
    return [exports[name] for name in names or exports]


def lines(done: ExportDone) -> list[str]:
    """The files that were written, and the fate of the former ones."""
    record, former_record, span = done.record, done.before, done.span
    window = f" {span.name} ({iso_times.text(span.start)} to {iso_times.text(span.end)}):" if span else ""
    says = [
        f"{done.export}:{window} {amounts.counted(record.rows, 'row')}, {amounts.size(record.bytes)}, {record.file},"
        f" from snapshot {record.snapshot} of {done.table}"
    ]
    if former_record is not None and former_record.sha256 == record.sha256:
        says.append(f"  the same content as on {iso_times.of_text(former_record.at)}")
    elif former_record is not None:
        change = record.rows - former_record.rows
        difference = (
            "the same number of rows"
            if not change
            else f"{amounts.counted(abs(change), 'row')} {'more' if change > 0 else 'fewer'}"
        )
        says.append(f"  replaces the file of {iso_times.of_text(former_record.at)}: {difference}")
    return says
