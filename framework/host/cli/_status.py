"""The state of tables, as text and columns."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from framework.base.amounts import counted, span
from framework.core.rules.protocol import parted
from framework.host.cli._grid import GridColumn, ago, grid
from framework.host.cli._specs import hinted
from framework.operations.observe.status import Reason, Status
from framework.plan.text import duration

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = (
    GridColumn("table", folds=True), GridColumn("state"), GridColumn("waiting", right=True), GridColumn("newest event", 2),
    GridColumn("last commit", 3), GridColumn("rows", 1, right=True), GridColumn("bad rows", 1, right=True),
    GridColumn("files", 5, right=True), GridColumn("fresh"),
)  # fmt: skip
_COLOURS = {"caught up": "green", "syncing": "cyan", "pending": "", "paused": "yellow", "suspended": "red", "failing": "red"}
_ALL = "once it answers, the next run continues; no message is lost"
_LEGEND = "waiting: messages that no run has read yet; newest event: the newest time in the table, by its event time or Kafka's"


def block(states: Sequence[Status], partitions: bool, width: int) -> Group:
    if not states:
        return Group(Text("there are no pipelines"))
    parts: list[RenderableType] = [grid(_COLUMNS, [_row(status) for status in states], width), Text(f"\n{_LEGEND}", style="dim")]
    shared = _shared(states)
    for reason, names in shared.items():
        lines = [*_why(reason, ""), Text(f"  pipelines: {', '.join(names)}")]
        parts.append(Text("\n").join([Text(), *lines]))
    for status in states:
        lines = list(_details(status, shared))
        if lines:
            parts.append(Text("\n").join([Text(f"\n{status.pipeline.name}", style="bold"), *lines]))
    if partitions:
        parts += [part for status in states for part in _partitions(status, width)]
    return Group(*parts)


def _row(status: Status) -> tuple[Text | str, ...]:
    watched = status.progress
    fresh = "–" if status.fresh is None else Text("yes") if status.fresh else Text("LATE", style="red")
    numbers = ["?" if watched.catalog_away else f"{number:,}" for number in (watched.rows, watched.bad_rows, watched.files)]
    return (
        watched.table, Text(status.state, style=_COLOURS[status.state]), "?" if watched.lag is None else f"{watched.lag:,}",
        ago(status.age(status.newest_event)), ago(status.age(watched.committed)), *numbers, fresh,
    )  # fmt: skip


def _shared(states: Sequence[Status]) -> dict[Reason, list[str]]:
    """The reasons that several tables share, so that each is printed once."""
    names: dict[Reason, list[str]] = {}
    for status in states:
        for reason in status.reasons:
            if reason.unanswered:
                names.setdefault(replace(reason, do=_ALL), []).append(status.pipeline.name)
    return {reason: named for reason, named in names.items() if len(named) > 1}


def _details(status: Status, shared: Container[Reason]) -> Iterator[Text]:
    """The details of one table, printed below the grid."""
    watched, name = status.progress, status.pipeline.name
    if status.paused:
        yield Text(hinted(f"  paused {ago(status.age(status.paused))}: `sluice resume {name}` resumes it"), style="yellow")
    if status.streamed_by:
        yield Text(f"  streamed by {status.streamed_by}")
    for reason in status.reasons:
        if replace(reason, do=_ALL) not in shared:
            since = f"the last run, {ago(status.age(reason.time))}: " if reason.time else ""
            yield from (Text("  ") + line for line in _why(reason, since))
    if status.state == "pending":
        yield Text(hinted(f"  {_pending(status)}"))
    if status.fresh is False:
        yield Text(f"  {_late(status)}", style="red")
    for follower in status.followers:
        yield Text(f"  also {follower.follower.title}: {follower.words}", style="red" if follower.failed else "")
        if follower.failed:
            yield Text(f"    {follower.failed.code}: {follower.failed.message}", style="red")
            yield Text(hinted(f"    hint: {follower.failed.hint}"))
    for table in status.maintenance:
        yield Text(f"  the next run maintains {table.identifier}: {table.words}")
    if watched.bad_waiting:
        waits = "waits: the next run writes it" if watched.bad_waiting == 1 else "wait: the next run writes them"
        yield Text(f"  {counted(watched.bad_waiting, 'bad row')} of the last batch {waits} to the bad rows' table")


def _why(reason: Reason, since: str) -> Iterator[Text]:
    yield Text(f"{since}{reason.code}: {reason.message}", style="red")
    if reason.hint:
        yield Text(hinted(f"  hint: {reason.hint}"))
    yield Text(hinted(f"  do: {reason.do}"))


def _late(status: Status) -> str:
    age = status.age(status.progress.committed)
    old = "there is no commit" if age is None else f"the last commit is {span(age)} old"
    waits = "the number of waiting messages is unknown" if status.progress.lag is None else "messages wait"
    return f"late: {old}, `fresh_within` is {duration(status.pipeline.fresh_within or 0)}, and {waits}"


def _pending(status: Status) -> str:
    watched, name = status.progress, status.pipeline.name
    if watched.trouble:
        return f"nothing has landed yet: {watched.trouble.message}; {watched.trouble.hint}"
    noun = status.pipeline.noun
    if not watched.lag:
        return f"nothing has landed yet, and there are no {noun}s to read"
    return f"nothing has landed yet, {counted(watched.lag, noun)} to read: `sluice run {name}`"


def _partitions(status: Status, width: int) -> Iterator[Table | Text]:
    yield Text(f"\n{status.progress.table}", style="bold")
    if status.pipeline.read_tables:
        yield Text(f"  is computed from the table {status.pipeline.source_name}, which has no partitions of Kafka's")
    elif not status.progress.offsets:
        yield Text("  its partitions are unknown")
    else:
        columns = (
            GridColumn("topic", folds=True),
            *(GridColumn(name, right=True) for name in ("partition", "position", "end", "waiting")),
        )
        rows = [
            (*map(str, parted(offsets.partition)), f"{offsets.next_offset:,}", f"{offsets.end:,}", f"{offsets.waiting:,}")
            for offsets in status.progress.offsets
        ]
        yield grid(columns, rows, width)
