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
_MISSING = "(gone)"
_SAME = "·"


def text(pipeline: Pipeline, preview: Preview) -> str:
    output = StringIO()
    show(Console(file=output, color_system=None, highlight=False, markup=False), pipeline, preview)
    return output.getvalue()


def show(console: Console, pipeline: Pipeline, preview: Preview) -> None:
    console.width = min(_WIDEST, console.width) if console.is_terminal else _WIDTH
    for line in _about(pipeline, preview):
        console.print(line, soft_wrap=True)
    for message in preview.messages:
        console.print()
        _print_message(console, pipeline, message)


def _about(pipeline: Pipeline, preview: Preview) -> Iterator[Text]:
    number = len(preview.messages)
    messages = counted(number, pipeline.noun)
    source_names = ", ".join(pipeline.sources)
    if preview.refused:
        yield Text(hints.of_environment(f"a run would be refused: {preview.refused}", pipeline.environment), style="red")
    if not number:
        noun = f"{pipeline.noun}s"
        none_text = f"no {noun} are at the offsets that wait" if preview.waiting else f"there are no {noun}"
        yield Text(f"{pipeline.name}: nothing to show, {none_text} in {source_names}")
    elif pipeline.read_tables:
        yield Text(f"{pipeline.name}: {messages} of {source_names}")
    elif preview.which == "latest":
        idle_text = "nothing waits; " if preview.waiting == 0 else ""
        yield Text(f"{pipeline.name}: {idle_text}the last {messages} of {source_names}")
    elif preview.which == "earliest":
        yield Text(f"{pipeline.name}: the first {messages} of {source_names}")
    else:
        yield Text(f"{pipeline.name}: the next {messages} of {preview.waiting or 0:,} that wait in {source_names}")
    names = [_step(pipeline, step_number) for step_number in range(1, len(pipeline.steps) + 1)] if number else []
    width = max(map(len, names), default=0)
    for name, step in zip(names, pipeline.steps, strict=False):
        for line, effect in enumerate(step.says or ("",)):
            yield Text(f"  {('' if line else name).ljust(width)}  {effect}".rstrip())
    if names:
        yield Text(f"  {_SAME.ljust(width)}  as before")


def _step(pipeline: Pipeline, number: int) -> str:
    return f"{number} {pipeline.steps[number - 1].name}" if number else "read"


def _print_message(console: Console, pipeline: Pipeline, message: PreviewedMessage) -> None:
    place = [message.topic] if len(pipeline.topics) > 1 or pipeline.read_tables else []
    place += [f"partition {message.partition}, offset {message.offset}"] if message.partition is not None else []
    place += [message.timestamp] if message.timestamp else []
    place += [f"key {_raw(message.key)}"] if message.key is not None else []
    console.print(Text(", ".join(place), style="bold"), no_wrap=True, overflow="ellipsis")
    if pipeline.topics:
        console.print(Text(f"  {_raw(message.value)}", style="dim"), no_wrap=True, overflow="ellipsis")
    previous_row: Row | None = None
    for number, row in enumerate(message.rows, 1):
        if previous_row:
            console.print()
        if len(message.rows) > 1:
            console.print(Text(f"  row {number} of {len(message.rows)}: item {row.item}", style="bold"))
        _print_row(console, pipeline, row, _alike(previous_row, row))
        previous_row = row


def _alike(previous_row: Row | None, row: Row) -> int:
    """The number of steps after which this row equals the row before it, so that they are not shown again."""
    pairs = zip(previous_row.after if previous_row else (), row.after, strict=False)
    return next((index for index, (old_values, new_values) in enumerate(pairs) if old_values != new_values), 0)


def _print_row(console: Console, pipeline: Pipeline, row: Row, first_step: int) -> None:
    step_numbers = range(first_step, len(row.after))
    names = list(dict.fromkeys(name for step_number in step_numbers for name in row.after[step_number]))
    head = [Text(_visible(name)) for name in names]
    width = min(_NAME, max((text.cell_len for text in head), default=0))
    while step_numbers:
        columns = [
            [
                Text(_step(pipeline, step_number), style="bold"),
                *(_cell(row.after, step_number, name, step_number == step_numbers[0]) for name in names),
            ]
            for step_number in step_numbers
        ]
        widths = _widths(columns, console.width - width - 2)
        lines = zip([Text(), *head], *columns[: len(widths)], strict=True)
        for line in lines:
            if any(line[1:]):
                _print_line(console, line, (width, *widths))
        step_numbers = step_numbers[len(widths) :]
    console.print(_fate(pipeline, row), soft_wrap=True)


def _widths(columns: Sequence[Sequence[Text]], room: int) -> list[int]:
    """The widths of as many columns as fit in a line. Each gets the width that it needs, or a share of the space that remains."""
    needed_widths = [max(cell.cell_len for cell in column) for column in columns]
    widths: list[int] = []
    for column, needed_width in zip(columns, needed_widths, strict=True):
        least_width = min(needed_width, max(_VALUE, column[0].cell_len))
        if widths and sum(widths) + least_width + 2 * len(widths) + 2 > room:
            break
        widths.append(min(least_width, room - 2))
    spare = room - sum(widths) - 2 * len(widths)
    for index, width in enumerate(widths):
        widths[index] += min(needed_widths[index] - width, spare)
        spare -= widths[index] - width
    return widths


def _print_line(console: Console, cells: Sequence[Text], widths: Sequence[int]) -> None:
    for cell, width in zip(cells, widths, strict=True):
        cell.truncate(width, overflow="ellipsis", pad=True)
    line = Text("  ").join([Text(), *cells])
    line.rstrip()
    console.print(line, no_wrap=True, overflow="crop")


def _cell(after: tuple[Mapping[str, Any], ...], number: int, name: str, show_all: bool) -> Text:
    """The text of a column's value after a step, or a sign that the step left it unchanged; empty if the column does not exist."""
    if name not in after[number]:
        return Text(_MISSING if number and name in after[number - 1] else "", style="red")
    is_changed = number > 0 and (name not in after[number - 1] or after[number - 1][name] != after[number][name])
    if not is_changed and not show_all:
        return Text(_SAME, style="dim")
    return Text(_text(after[number][name]), style="bold green" if is_changed else "")


def _fate(pipeline: Pipeline, row: Row) -> Text:
    if row.fate == "bad":
        return Text(f"  bad row, {row.stage}: {row.code}: {row.message}", style="red")
    if row.fate == "filtered":
        number = len(row.after)
        if number == 0:
            return Text("  skipped when read: it has no value, or is about no row", style="yellow")
        empty = pipeline.steps[number - 1].each is not None
        return Text(f"  {'no items for' if empty else 'filtered out by'} {_step(pipeline, number)}", style="yellow")
    if row.fate == "deletes":
        return Text(f"  deletes the row of its key in {pipeline.table.identifier}", style="yellow")
    unexpected = "".join(f"; not as `{name}` expects" for name in row.unexpected)
    compared_steps = ", ".join(_step(pipeline, number) for number, step in enumerate(pipeline.steps, 1) if step.memory)
    exception_text = (
        f", unless {compared_steps} leaves it out: a preview does not compare it with other rows" if compared_steps else ""
    )
    return Text(f"  lands in {pipeline.table.identifier}{exception_text}{unexpected}", style="yellow" if unexpected else "")


def _raw(data: bytes | None) -> str:
    if data is not None and data.startswith(b"\0"):  # a registry's format, whose content the columns show
        return f"0x{data[:500].hex()}"
    return "(no value)" if data is None else _visible(data.decode("utf-8", errors="replace"))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _visible(value)
    return "null" if value is None else _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in text[:500])
