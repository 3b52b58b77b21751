"""`sluice query`: SQL over the tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.amounts import counted
from framework.base.errors import SluiceError, SpecError
from framework.host.cli import _at, _specs

if TYPE_CHECKING:
    from framework.core.iceberg.at import Moment
    from framework.plan import Catalog

SECTION, ORDER = "see", 2
ALSO_CALLED = ("sql", "select")

_FIRST_ROWS = 100  # rows without --limit


@click.command()
@click.argument("sql", required=False)
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Read the select from a file; -: from standard input.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print all rows as CSV only.")
@click.option("--for-spreadsheets", is_flag=True, help="With --csv: put ' before texts that a spreadsheet would compute.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as one JSON list of objects only.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Print at most this many rows; default: {_FIRST_ROWS}, with --csv and --json all.",
)
@click.option("--at", type=_at.At(), metavar=_at.METAVAR, help=f"The tables as they were then: {_at.SAYS}.")
@_specs.with_specs
def command(
    sql: str | None,
    file: Path | None,
    as_csv: bool,
    for_spreadsheets: bool,
    as_json: bool,
    limit: int | None,
    at: Moment | None,
    specs: Path,
    environment: str,
) -> None:
    """Run one SQL select over the tables, with DuckDB.

    Starts no JVM, changes nothing, and opens only the tables it names: no function that reads a file by its path is allowed.

    Tables have the names of the specs; tables of bad rows end in __bad_rows. With several catalogs markets.trades is a table of
    the first, lake.markets.trades of the catalog lake. Times are in UTC. In CSV and JSON bytes are base64; in JSON decimals are
    text, which keeps their digits. CSV has a text such as =1+1 unchanged, and a spreadsheet computes it: --for-spreadsheets
    prevents that.

    Exit status: 0 answered, 1 the query or the specs have problems, 2 wrong usage.

    A select that is asked again and again is a file beside the specs, such as those in specs/sensors/queries/: --file runs it.

    Example: sluice query "select symbol, count(*) from markets.flagged_stock_trades group by 1"
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other: choose one")
    if for_spreadsheets and not as_csv:
        raise click.UsageError("--for-spreadsheets needs --csv")
    if (sql is None) == (file is None):
        raise click.UsageError("write one select: as an argument, or in the file of --file")
    text = _text(file) if file is not None else sql or ""
    catalogs = _catalogs(specs, environment)
    from framework.core.query.one_select import ask
    from framework.host.cli import _answers

    answer = ask(catalogs, text, at)
    if as_csv or as_json:
        names = [column.name for column in answer.columns]
        rows = answer.rows(limit)
        _print(_answers.csv(names, rows, for_spreadsheets) if as_csv else _answers.json(names, rows))
        return
    first_rows = list(answer.rows(_FIRST_ROWS if limit is None else limit))
    if sys.stdout.isatty():
        _answers.show(answer.columns, first_rows)
    else:
        _print(_answers.aligned(answer.columns, first_rows))
    if len(first_rows) == (_FIRST_ROWS if limit is None else limit) and (count := answer.count()) > len(first_rows):
        remainder = f"{count - len(first_rows):,} more rows: --limit {count} shows all, --csv and --json print all"
        click.echo(f"{len(first_rows):,} of {count:,} rows. {remainder}" if first_rows else remainder, err=True)
    elif sys.stdout.isatty():
        click.echo(counted(len(first_rows), "row"), err=True)


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise SluiceError("file-unreadable", f"{file} cannot be read: {reason}", "write one select into it") from None


def _print(lines: Iterator[str]) -> None:
    """Print as UTF-8, whatever the locale is, for other programs."""
    while line_chunk := list(islice(lines, 1000)):
        sys.stdout.buffer.write("".join(f"{line}\n" for line in line_chunk).encode())
        sys.stdout.buffer.flush()


def _catalogs(specs: Path, environment: str) -> tuple[Catalog, ...]:
    """The catalogs of the specs. Problems of pipelines do not matter for a query, but a file that cannot be read could name
    another catalog."""
    from framework.documents.draft import Draft
    from framework.host.plans import load, plan_documents

    written = load(specs, environment)
    resolved = plan_documents(Draft(written=written, problems=list(written.problems)), "catalog")
    if resolved.problems:
        raise SpecError(resolved.problems)
    if not resolved.catalogs:
        raise SluiceError("no-catalog", "the specs have no catalog, so there are no tables", "add `catalog: lake` to one")
    return tuple(resolved.catalogs.values())
