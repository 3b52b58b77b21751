"""Finds joins that go wrong if rows are read again after a change: by then, the joined table may have another match for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from framework.base.errors import Problem
from framework.plan import AllRows, Keyed, Rule, Step, TableChanges, columns_read
from framework.plan.totals import TIME, Totals


def problems(source: TableChanges, steps: Sequence[Step], rule: Rule) -> Iterator[Problem]:
    """Reports a join that decides about rows that change. An old row goes through the steps again, to be subtracted or to leave
    its key, and what the joined table decided the first time is no longer known."""
    if source.old != "all":
        return
    deciding_names = set(_deciding(rule))
    joined_names: set[str] = set()  # columns with something of a joined table in them
    join_step: Step | None = None
    for step in steps:
        conditions = (step.keep, *(fault.when for fault in step.faults), step.each.list if step.each else None)
        if join_step is None:
            join_step = step if step.join else None
        if join_step is None:
            continue
        if (step.join and any(conditions)) or any(sql and columns_read(sql, joined_names) for sql in conditions):
            yield _problem(join_step, source)
            return
        joined_names |= {name for name, sql in step.assign if columns_read(sql, joined_names)}
        joined_names -= {name for name, sql in step.assign if not columns_read(sql, joined_names)}
        joined_names |= set(step.join.take) if step.join else set()
    if join_step is not None and joined_names & deciding_names:
        yield _problem(join_step, source)


def _deciding(rule: Rule) -> tuple[str, ...]:
    """The columns that decide to which row of the table a row belongs, and what it adds."""
    match rule:
        case Totals():
            return (TIME, *rule.by, *(measure.row_column for measure in rule.measures))
        case Keyed() | AllRows():
            return rule.keys


def _problem(step: Step, source: TableChanges) -> Problem:
    assert step.join is not None
    joined_table = step.join.source.identifier
    message = (
        f"rows of {source.identifier} change, and what {joined_table} decided about a row before it changed is not known any more: "
        "the row would be judged by what is there now"
    )
    hint = (
        f"join in the pipeline that writes {source.identifier}, whose rows then keep what they got; or read both by "
        "`from: {tables: […]}`, with one step `sql` that joins them, and `write: replace`"
    )
    return Problem(step.where, "join-of-changes", message, hint)
