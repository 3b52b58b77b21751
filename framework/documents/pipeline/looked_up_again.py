"""The uses of a joined table that go wrong where rows are read again after they have changed: it may have another row for them by now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from framework.base.errors import Problem
from framework.plan import Keyed, SelectSource, Step, TableSource, columns_read
from framework.plan.totals import TIME, Accumulated


def problems(
    source: TableSource | SelectSource | None, steps: Sequence[Step], keys: Keyed | None, totals: Accumulated | None
) -> Iterator[Problem]:
    """Rows from before a change go through the steps again, to be taken off or to leave their key. What a joined table has decided when
    they came is not known any more."""
    if not isinstance(source, TableSource) or source.old != "all":
        return
    decides = set(keys.keys if keys else ())
    decides |= {TIME, *totals.by, *(each.row_column for each in totals.measures)} if totals else set()
    taken: set[str] = set()  # columns with something of a joined table in them
    joined: Step | None = None
    for step in steps:
        chooses = (step.keep, *(fault.when for fault in step.faults), step.each.list if step.each else None)
        if joined is None:
            joined = step if step.join else None
        if joined is None:
            continue
        if (step.join and any(chooses)) or any(sql and columns_read(sql, taken) for sql in chooses):
            yield _problem(joined, source)
            return
        taken |= {name for name, sql in step.assign if columns_read(sql, taken)}
        taken -= {name for name, sql in step.assign if not columns_read(sql, taken)}
        taken |= set(step.join.take) if step.join else set()
    if joined is not None and taken & decides:
        yield _problem(joined, source)


def _problem(step: Step, source: TableSource) -> Problem:
    assert step.join is not None
    other = step.join.source.identifier
    message = (
        f"rows of {source.identifier} change, and what {other} decided about a row before it changed is not known any more: "
        "the row would be judged by what is there now"
    )
    hint = (
        f"join in the pipeline that writes {source.identifier}, whose rows then keep what they got; or read both by "
        "`from: {tables: […]}`, with one step `sql` that joins them, and `write: replace`"
    )
    return Problem(step.where, "join-of-changes", message, hint)
