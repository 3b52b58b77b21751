"""Collect the states of a table: the rows that its steps remember from batch to batch."""

from __future__ import annotations

from collections.abc import Iterable

from framework.base.errors import Problem
from framework.plan import Column, State, Step


def states(steps: Iterable[Step], columns: Iterable[Column], problems: list[Problem]) -> tuple[State, ...]:
    """The states of the steps. A step remembers rows of the table, so each column that it compares must be a column of the table."""
    names = {column.name for column in columns}
    states: dict[str, State] = {}
    for step in steps:
        if step.memory is None:
            continue
        missing = [name for name in step.memory.columns if name not in names]
        if missing:
            message = f"`{step.name}` remembers `{missing[0]}`, and the table has no such column"
            problems.append(Problem(step.where, "state-needs-column", message, f"keep `{missing[0]}` to the last step"))
        state = step.memory.state
        if state is None:  # the table's own rows
            continue
        if state.name in states:
            message = f"`{step.name}` is used twice, and a table remembers for one such step"
            problems.append(Problem(step.where, "step-used-twice", message, "keep one of them"))
        states[state.name] = state
    return tuple(states.values())
