"""Answers questions about tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.amounts import counted
from framework.cli import _specs
from framework.errors import SluiceError, SpecError

if TYPE_CHECKING:
    from framework.model import Catalog

SECTION, ORDER = "see", 2
ALSO_CALLED = ("sql", "select")

_FIRST_ROWS = 100  # rows, where --limit does not say otherwise


@click.command()
@click.argument("sql")
@click.option("--csv", "as_csv", is_flag=True, help="Print all rows as CSV and nothing else.")
@click.option("--for-spreadsheets", is_flag=True, help="With --csv: put ' before texts that a spreadsheet would compute.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as one JSON list of objects and nothing else.")
@click.option("--limit", type=click.IntRange(min=0), help=f"At most so many rows; a table shows {_FIRST_ROWS} unless told.")
@_specs.with_specs
def command(
    sql: str, as_csv: bool, for_spreadsheets: bool, as_json: bool, limit: int | None, specs: Path, environment: str
) -> None:
    """Run one SQL select over the tables, with DuckDB.

    Starts no JVM, changes nothing, and opens only the tables it names: no function that reads a file by its path is allowed.

    Tables are called as in the specs, their bad rows with __bad_rows behind. With several catalogs markets.trades is a table of
    the first, lake.markets.trades of any. Times are in UTC. In CSV and JSON bytes are base64, in JSON decimals are text, which
    keeps their digits. A text such as =1+1 stands in CSV as it is, and a spreadsheet computes it: --for-spreadsheets makes it text
    there.

    Exit status: 0 answered, 1 the question or the specs have problems, 2 wrong usage.

    Example: sluice query "select symbol, count(*) from markets.flagged_stock_trades group by 1"
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two answers: choose one")
    if for_spreadsheets and not as_csv:
        raise click.UsageError("--for-spreadsheets needs --csv")
    catalogs = _catalogs(specs, environment)
    from framework.cli import _answers
    from framework.engine.query.one_select import ask

    answer = ask(catalogs, sql)
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
        more = f"{count - len(first_rows):,} more rows: --limit {count} shows all, --csv and --json print all"
        click.echo(f"{len(first_rows):,} of {count:,} rows. {more}" if first_rows else more, err=True)
    elif sys.stdout.isatty():
        click.echo(counted(len(first_rows), "row"), err=True)


def _print(lines: Iterator[str]) -> None:
    """As UTF-8, whatever the terminal's language is: other programs read it."""
    while some := list(islice(lines, 1000)):
        sys.stdout.buffer.write("".join(f"{line}\n" for line in some).encode())
        sys.stdout.buffer.flush()


def _catalogs(specs: Path, environment: str) -> tuple[Catalog, ...]:
    """What is wrong with pipelines does not keep their tables from being asked, but files that cannot be read could say
    another catalog."""
    from framework.plan import passes
    from framework.plan.draft import Draft
    from framework.spec import load

    written = load(specs, environment)
    resolved = passes.resolve(Draft(written=written, problems=list(written.problems)), "catalog")
    if resolved.problems:
        raise SpecError(resolved.problems)
    if not resolved.catalogs:
        raise SluiceError("no-catalog", "the specs have no catalog, so that there are no tables", "add `catalog: lake` to one")
    return tuple(resolved.catalogs.values())
