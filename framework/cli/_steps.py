"""Messages and what each step makes of them, side by side on the terminal; without colours where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from framework.engine.preview import Message, Preview, Row
from framework.plan.model import Pipeline

_WIDTH = 100  # characters of a line where there is no terminal
_WIDEST = 120
_NAME = 22  # characters of a column's name
_NARROWEST = 16  # characters of a value
_GONE = "(gone)"
_SAME = "·"


def show(out: IO[str], pipeline: Pipeline, found: Preview) -> None:
    asked = Console(file=out)
    width = min(_WIDEST, asked.width) if asked.is_terminal else _WIDTH
    console = Console(file=out, width=width, highlight=False, markup=False)
    for line in _about(pipeline, found):
        console.print(line, soft_wrap=True)
    for message in found.messages:
        console.print()
        _print_message(console, pipeline, message)


def _about(pipeline: Pipeline, found: Preview) -> Iterator[Text]:
    number = len(found.messages)
    messages = f"{number:,} {'row' if pipeline.source else 'message'}{'' if number == 1 else 's'}"
    where = ", ".join(pipeline.sources)
    if found.refused:
        yield Text(f"a run would not go on: {found.refused}", style="red")
    if not number:
        yield Text(f"{pipeline.name}: {'nothing to show, there are no messages' if not found.waiting else _NONE_YET} in {where}")
    elif pipeline.source:
        yield Text(f"{pipeline.name}: {messages} of {where}")
    elif found.which == "latest":
        nothing = "nothing waits; " if found.waiting == 0 else ""
        yield Text(f"{pipeline.name}: {nothing}the last {messages} of {where}")
    elif found.which == "earliest":
        yield Text(f"{pipeline.name}: the first {messages} of {where}")
    else:
        yield Text(f"{pipeline.name}: the next {messages} of {found.waiting or 0:,} that wait in {where}")
    names = [_step(pipeline, at) for at in range(1, len(pipeline.steps) + 1)] if number else []
    width = max(map(len, names), default=0)
    for name, step in zip(names, pipeline.steps, strict=False):
        for line, says in enumerate(step.says or ("",)):
            yield Text(f"  {('' if line else name).ljust(width)}  {says}".rstrip())
    if names:
        yield Text(f"  {_SAME.ljust(width)}  as before")


_NONE_YET = "the next offsets hold no messages"


def _step(pipeline: Pipeline, at: int) -> str:
    return f"{at} {pipeline.steps[at - 1].name}" if at else "read"


def _print_message(console: Console, pipeline: Pipeline, message: Message) -> None:
    place = [message.topic] if len(pipeline.topics) > 1 or pipeline.source else []
    place += [f"partition {message.partition}, offset {message.offset}"] if message.partition is not None else []
    place += [message.timestamp] if message.timestamp else []
    place += [f"key {_raw(message.key)}"] if message.key is not None else []
    console.print(Text(", ".join(place), style="bold"), no_wrap=True, overflow="ellipsis")
    if not pipeline.source:
        console.print(Text(f"  {_raw(message.value)}", style="dim"), no_wrap=True, overflow="ellipsis")
    for number, row in enumerate(message.rows, 1):
        if len(message.rows) > 1:
            console.print(Text(f"  row {number} of {len(message.rows)}: item {row.item}", style="bold"))
        _print_row(console, pipeline, row)


def _print_row(console: Console, pipeline: Pipeline, row: Row) -> None:
    most = max(2, (console.width - _NAME - 4) // (_NARROWEST + 2))
    for first in range(0, len(row.after), most):
        shown = range(first, min(first + most, len(row.after)))
        names = list(dict.fromkeys(name for at in shown for name in row.after[at]))
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
        table.add_column("column", no_wrap=True, overflow="ellipsis", max_width=_NAME)
        for at in shown:
            table.add_column(_step(pipeline, at), no_wrap=True, overflow="ellipsis", min_width=8)
        for name in names:
            table.add_row(Text(_visible(name)), *(_cell(row.after, at, name, at == first) for at in shown))
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
    console.print(_fate(pipeline, row), soft_wrap=True)


def _cell(after: tuple[Mapping[str, Any], ...], at: int, name: str, whole: bool) -> Text:
    """A column's value after a step, and whether it is what it was before; nothing where there is no such column."""
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
        empty = pipeline.steps[at - 1].each is not None
        return Text(f"  {'no items for' if empty else 'filtered out by'} {_step(pipeline, at)}", style="yellow")
    said = "".join(f"; not as `{name}` expects" for name in row.unexpected)
    return Text(f"  lands in {pipeline.table.identifier}{said}", style="yellow" if said else "")


def _raw(data: bytes | None) -> str:
    return "(no value)" if data is None else _visible(data.decode("utf-8", errors="replace"))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return _visible(value)
    return "null" if value is None else _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    return "".join(each if each.isprintable() else "�" for each in text[:500])
