"""Tables on the terminal with the loaded rows, read from Iceberg without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from framework.core.iceberg import table_state
from framework.operations.observe.progress import PipelineProgress, newest_event
from framework.plan import Pipeline, Plan

_MAX_LINES = 12  # lines about bad rows
_PLACE = ("topic", "partition", "offset", "item")  # identifies a bad message in several tables
_WIDEST = 60  # characters of a bad row's value


def show(console: Console, plan: Plan, before: Mapping[str, PipelineProgress], after: Sequence[PipelineProgress]) -> None:
    """Print every table, its rows by flag and its bad rows by code; `before` is the state before the demo."""
    _print_tables(console, plan, before, after)
    for pipeline in plan.pipelines:
        for column in (name for step in pipeline.steps if step.name == "flag" for name, _ in step.assign):
            _print_flags(console, pipeline, column)
    print_bad_messages(console, plan)


def _print_tables(
    console: Console, plan: Plan, before: Mapping[str, PipelineProgress], after: Sequence[PipelineProgress]
) -> None:
    current_time = datetime.now(timezone.utc)
    rows = []
    for pipeline, watched in zip(plan.pipelines, after, strict=True):
        old = before[pipeline.name]
        counts = (watched.rows, watched.rows - old.rows, watched.bad_rows, watched.bad_rows - old.bad_rows)
        lag = "unknown" if watched.lag is None else f"{watched.lag:,}"
        times = (_ago(current_time, newest_event(pipeline)), _ago(current_time, watched.committed))
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
    print_table(console, "What landed", names, rows, texts=1)


def _print_flags(console: Console, pipeline: Pipeline, column: str) -> None:
    arrow_table = _scan(pipeline, pipeline.table.identifier, column)
    counts = [] if arrow_table is None else arrow_table.column(column).value_counts().to_pylist()
    counts.sort(key=lambda count: -count["counts"])
    rows = [(str(count["values"]), f"{count['counts']:,}") for count in counts]
    print_table(console, f"{pipeline.table.identifier} by {column}", (column, "rows"), rows, texts=1)


def print_bad_messages(console: Console, plan: Plan) -> None:
    """Print the bad messages of each source once, however many tables have them."""
    by_source: dict[tuple[str, ...], list[Pipeline]] = {}
    for pipeline in plan.pipelines:
        by_source.setdefault(tuple(pipeline.sources), []).append(pipeline)
    for source, pipelines in by_source.items():
        messages: dict[tuple[str, str], set[tuple[Any, ...]]] = {}
        tables: dict[tuple[str, str], set[str]] = {}
        samples: dict[tuple[str, str], Any] = {}
        for pipeline in pipelines:
            for row in _bad_rows(pipeline):
                why = (row["code"], row["message"])
                messages.setdefault(why, set()).add(tuple(row[name] for name in _PLACE))
                tables.setdefault(why, set()).add(pipeline.table.bad_rows)
                samples[why] = row["value"]
        reasons = sorted(messages, key=lambda why: -len(messages[why]))[:_MAX_LINES]
        rows = [(*why, _sample(samples[why]), f"{len(messages[why]):,}", f"{len(tables[why]):,}") for why in reasons]
        if rows:
            title = f"Bad messages of {', '.join(source)}"
            print_table(console, title, ("code", "why", "one such message", "messages", "tables"), rows, texts=3)


def _bad_rows(pipeline: Pipeline) -> list[dict[str, Any]]:
    arrow_table = _scan(pipeline, pipeline.table.bad_rows, "code", "message", "value", *_PLACE)
    return [] if arrow_table is None else list(arrow_table.to_pylist())


def print_table(console: Console, title: str, names: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> None:
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


def printable(text: str) -> str:
    """The text without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else "�" for character in text)


def _sample(value: Any) -> str:
    if value is None:
        return "(no value)"
    text = printable(bytes(value).decode("utf-8", errors="replace"))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _ago(current_time: datetime, moment: datetime | None) -> str:
    return "–" if moment is None else f"{max(0.0, (current_time - moment).total_seconds()):.0f} s ago"
