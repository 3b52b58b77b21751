"""Messages and their rows after each step, side by side: on a terminal, or as text for a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.text import Text

from framework.base import hints
from framework.base.amounts import counted
from framework.operations.trials.preview import Preview, PreviewedMessage, Row
from framework.plan import Pipeline

_WIDTH = 100  # characters of a line without a terminal
_WIDEST = 120
_NAME = 22  # characters of a column's name
_VALUE = 24  # characters of a value at least; a step with less space goes to the next lines
_GONE = "(gone)"
_SAME = "·"


def text(pipeline: Pipeline, preview: Preview) -> str:
    out = StringIO()
    show(Console(file=out, color_system=None, highlight=False, markup=False), pipeline, preview)
    return out.getvalue()


def show(console: Console, pipeline: Pipeline, preview: Preview) -> None:
    console.width = min(_WIDEST, console.width) if console.is_terminal else _WIDTH
    for line in _about(pipeline, preview):
        console.print(line, soft_wrap=True)
    for message in preview.messages:
        console.print()
        _print_message(console, pipeline, message)


def _about(pipeline: Pipeline, preview: Preview) -> Iterator[Text]:
    number = len(preview.messages)
    messages = counted(number, "row" if pipeline.source else "message")
    where = ", ".join(pipeline.sources)
    if preview.refused:
        yield Text(hints.of_environment(f"a run would be refused: {preview.refused}", pipeline.environment), style="red")
    if not number:
        noun = "rows" if pipeline.source else "messages"
        none = f"no {noun} are at the offsets that wait" if preview.waiting else f"there are no {noun}"
        yield Text(f"{pipeline.name}: nothing to show, {none} in {where}")
    elif pipeline.source:
        yield Text(f"{pipeline.name}: {messages} of {where}")
    elif preview.which == "latest":
        nothing = "nothing waits; " if preview.waiting == 0 else ""
        yield Text(f"{pipeline.name}: {nothing}the last {messages} of {where}")
    elif preview.which == "earliest":
        yield Text(f"{pipeline.name}: the first {messages} of {where}")
    else:
        yield Text(f"{pipeline.name}: the next {messages} of {preview.waiting or 0:,} that wait in {where}")
    names = [_step(pipeline, at) for at in range(1, len(pipeline.steps) + 1)] if number else []
    width = max(map(len, names), default=0)
    for name, step in zip(names, pipeline.steps, strict=False):
        for line, says in enumerate(step.says or ("",)):
            yield Text(f"  {('' if line else name).ljust(width)}  {says}".rstrip())
    if names:
        yield Text(f"  {_SAME.ljust(width)}  as before")


def _step(pipeline: Pipeline, at: int) -> str:
    return f"{at} {pipeline.steps[at - 1].name}" if at else "read"


def _print_message(console: Console, pipeline: Pipeline, message: PreviewedMessage) -> None:
    place = [message.topic] if len(pipeline.topics) > 1 or pipeline.source else []
    place += [f"partition {message.partition}, offset {message.offset}"] if message.partition is not None else []
    place += [message.timestamp] if message.timestamp else []
    place += [f"key {_raw(message.key)}"] if message.key is not None else []
    console.print(Text(", ".join(place), style="bold"), no_wrap=True, overflow="ellipsis")
    if not pipeline.source:
        console.print(Text(f"  {_raw(message.value)}", style="dim"), no_wrap=True, overflow="ellipsis")
    before: Row | None = None
    for number, row in enumerate(message.rows, 1):
        if before:
            console.print()
        if len(message.rows) > 1:
            console.print(Text(f"  row {number} of {len(message.rows)}: item {row.item}", style="bold"))
        _print_row(console, pipeline, row, _alike(before, row))
        before = row


def _alike(before: Row | None, row: Row) -> int:
    """The steps after which this row equals the row before it, so that they are not shown again."""
    pairs = zip(before.after if before else (), row.after, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), 0)


def _print_row(console: Console, pipeline: Pipeline, row: Row, first: int) -> None:
    left = range(first, len(row.after))
    names = list(dict.fromkeys(name for at in left for name in row.after[at]))
    head = [Text(_visible(name)) for name in names]
    width = min(_NAME, max((each.cell_len for each in head), default=0))
    while left:
        columns = [
            [Text(_step(pipeline, at), style="bold"), *(_cell(row.after, at, name, at == left[0]) for name in names)]
            for at in left
        ]
        widths = _widths(columns, console.width - width - 2)
        lines = zip([Text(), *head], *columns[: len(widths)], strict=True)
        for line in lines:
            if any(line[1:]):
                _print_line(console, line, (width, *widths))
        left = left[len(widths) :]
    console.print(_fate(pipeline, row), soft_wrap=True)


def _widths(columns: Sequence[Sequence[Text]], room: int) -> list[int]:
    """The widths of as many columns as fit in a line: the width that each needs, or a share of the rest."""
    needed = [max(each.cell_len for each in column) for column in columns]
    widths: list[int] = []
    for column, need in zip(columns, needed, strict=True):
        least = min(need, max(_VALUE, column[0].cell_len))
        if widths and sum(widths) + least + 2 * len(widths) + 2 > room:
            break
        widths.append(min(least, room - 2))
    spare = room - sum(widths) - 2 * len(widths)
    for at, width in enumerate(widths):
        widths[at] += min(needed[at] - width, spare)
        spare -= widths[at] - width
    return widths


def _print_line(console: Console, cells: Sequence[Text], widths: Sequence[int]) -> None:
    for cell, width in zip(cells, widths, strict=True):
        cell.truncate(width, overflow="ellipsis", pad=True)
    line = Text("  ").join([Text(), *cells])
    line.rstrip()
    console.print(line, no_wrap=True, overflow="crop")


def _cell(after: tuple[Mapping[str, Any], ...], at: int, name: str, whole: bool) -> Text:
    """A column's value after a step, and whether the step left it unchanged; empty if the column does not exist."""
    if name not in after[at]:
        return Text(_GONE if at and name in after[at - 1] else "", style="red")
    changed = at > 0 and (name not in after[at - 1] or after[at - 1][name] != after[at][name])
    if not changed and not whole:
        return Text(_SAME, style="dim")
    return Text(_text(after[at][name]), style="bold green" if changed else "")


def _fate(pipeline: Pipeline, row: Row) -> Text:
    if row.fate == "bad":
        return Text(f"  bad row, {row.stage}: {row.code}: {row.message}", style="red")
    if row.fate == "filtered":
        at = len(row.after)
        if at == 0:
            return Text("  skipped when read: it has no value, or is about no row", style="yellow")
        empty = pipeline.steps[at - 1].each is not None
        return Text(f"  {'no items for' if empty else 'filtered out by'} {_step(pipeline, at)}", style="yellow")
    if row.fate == "deletes":
        return Text(f"  deletes the row of its key in {pipeline.table.identifier}", style="yellow")
    unexpected = "".join(f"; not as `{name}` expects" for name in row.unexpected)
    compared = ", ".join(_step(pipeline, at) for at, step in enumerate(pipeline.steps, 1) if step.memory)
    unless = f", unless {compared} leaves it out: a preview does not compare it with other rows" if compared else ""
    return Text(f"  lands in {pipeline.table.identifier}{unless}{unexpected}", style="yellow" if unexpected else "")


def _raw(data: bytes | None) -> str:
    if data is not None and data.startswith(b"\0"):  # a registry's format, whose content the columns show
        return f"0x{data[:500].hex()}"
    return "(no value)" if data is None else _visible(data.decode("utf-8", errors="replace"))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _visible(value)
    return "null" if value is None else _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    return "".join(each if each.isprintable() else "�" for each in text[:500])
