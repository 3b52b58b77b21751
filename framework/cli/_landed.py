"""Tables on the terminal with the loaded rows, read from Iceberg without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.engine.iceberg import table_state
from framework.engine.observe.progress import Progress, newest_event
from framework.model import Pipeline, Plan

_MOST = 12  # lines about bad rows
_WIDEST = 60  # characters of a bad row's value


def show(console: Console, plan: Plan, before: Mapping[str, Progress], after: Sequence[Progress]) -> None:
    """Print every table, its rows by flag and its bad rows by code; `before` is the state before the demo."""
    _print_tables(console, plan, before, after)
    for pipeline in plan.pipelines:
        for column in (name for step in pipeline.steps if step.name == "flag" for name, _ in step.assign):
            _print_flags(console, pipeline, column)
    for pipeline in plan.pipelines:
        _print_bad_rows(console, pipeline)


def _print_tables(console: Console, plan: Plan, before: Mapping[str, Progress], after: Sequence[Progress]) -> None:
    now = datetime.now(timezone.utc)
    rows = []
    for pipeline, watched in zip(plan.pipelines, after, strict=True):
        old = before[pipeline.name]
        counts = (watched.rows, watched.rows - old.rows, watched.bad_rows, watched.bad_rows - old.bad_rows)
        lag = "unknown" if watched.lag is None else f"{watched.lag:,}"
        times = (_ago(now, newest_event(pipeline)), _ago(now, watched.committed))
        rows.append(
            (
                watched.table,
                *(f"{count:,}" for count in counts),
                lag,
                *times,
                f"{watched.files:,}",
                f"{watched.bytes / 2**20:.1f} MiB",
            )
        )
    names = ("table", "rows", "new", "bad rows", "new", "lag", "newest event", "last commit", "files", "size")
    _print(console, "What landed", names, rows, texts=1)


def _print_flags(console: Console, pipeline: Pipeline, column: str) -> None:
    arrow_table = _scan(pipeline, pipeline.table.identifier, column)
    counts = [] if arrow_table is None else arrow_table.column(column).value_counts().to_pylist()
    counts.sort(key=lambda each: -each["counts"])
    rows = [(str(each["values"]), f"{each['counts']:,}") for each in counts]
    _print(console, f"{pipeline.table.identifier} by {column}", (column, "rows"), rows, texts=1)


def _print_bad_rows(console: Console, pipeline: Pipeline) -> None:
    arrow_table = _scan(pipeline, pipeline.table.bad_rows, "code", "message", "value")
    bad = [] if arrow_table is None else arrow_table.to_pylist()
    samples = {(row["code"], row["message"]): row["value"] for row in bad}
    counts = Counter((row["code"], row["message"]) for row in bad).most_common(_MOST)
    rows = [(code, message, _sample(samples[code, message]), f"{count:,}") for (code, message), count in counts]
    if rows:
        _print(console, f"{pipeline.table.bad_rows} by code", ("code", "why", "one such message", "rows"), rows, texts=3)


def _print(console: Console, title: str, names: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> None:
    """Print a table; its first `texts` columns are text, the others numbers."""
    console.print(title, style="bold", markup=False, highlight=False)
    table = Table(box=box.SIMPLE)
    for index, name in enumerate(names):
        table.add_column(name, justify="left" if index < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _scan(pipeline: Pipeline, identifier: str, *columns: str) -> Any:
    """Some columns of a table, as an Arrow table; None if the table does not exist."""
    table = table_state.table(pipeline.table.catalog, identifier)
    return None if table is None else table.scan(selected_fields=columns).to_arrow()


def _sample(value: Any) -> str:
    if value is None:
        return "(no value)"
    text = "".join(each if each.isprintable() else "�" for each in bytes(value).decode("utf-8", errors="replace"))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _ago(now: datetime, moment: datetime | None) -> str:
    return "–" if moment is None else f"{max(0.0, (now - moment).total_seconds()):.0f} s ago"
