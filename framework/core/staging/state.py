"""State of a pipeline, kept from batch to batch: rows of its table on branches that no reader sees.

State that is kept for a time has a branch for each day, so that old rows are deleted with their branch; other state has one branch, `all`.
Guarantee: the state of a batch is published by the commit that publishes the batch, or not at all.
Cost: a commit for the branch and one for its rows. The files of a branch are joined once there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

from framework.core.iceberg import state_branches
from framework.core.rules import protocol
from framework.core.staging import StagingTarget
from framework.plan import State
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_FILES = 32  # files


def remembered(target: StagingTarget, state: State) -> DataFrame | None:
    """The rows of all batches so far, with the state's columns; None where nothing was ever remembered."""
    from pyspark.sql import DataFrame

    parts = state_branches.parts(target.table, state.name)
    frames = (target.spark.table(target.published_branch(part)) for part in parts)
    return reduce(DataFrame.unionByName, frames).select(*map(identifier, state.columns)) if parts else None


def remember(
    target: StagingTarget, state: State, rows: DataFrame, reduced: Callable[[DataFrame], DataFrame] | None = None
) -> None:
    """Adds rows, on a branch of the attempt. When files are joined, `reduced` drops rows that are no longer needed."""
    from pyspark.sql import functions

    branch = protocol.state_branch(state.name, "all" if state.keep_for is None else target.context.clock().date().isoformat())
    is_full = state_branches.begin(target.lake, target.table, target.attempt, branch) >= _MAX_FILES
    rows = rows.select(*map(identifier, state.columns))
    if is_full:
        rows = rows.unionByName(target.spark.table(target.published_branch(branch)).select(*rows.columns))
        rows = (reduced(rows) if reduced else rows.distinct()).coalesce(1)
    writer = rows.writeTo(target.branch(protocol.staged_state(branch, target.attempt)))
    writer = writer.option(f"snapshot-property.{protocol.ATTEMPT}", target.attempt)
    if is_full:
        writer.overwrite(functions.lit(True))
    else:
        writer.append()
    target.context.reached("staged_state")


def expired(table: Any, states: Iterable[State], moment: datetime) -> tuple[str, ...]:
    """The branches of days that are older than their state is kept."""
    return tuple(
        branch
        for state in states
        if state.keep_for is not None
        for branch in state_branches.parts(table, state.name)
        if branch < protocol.state_branch(state.name, (moment - timedelta(seconds=state.keep_for, days=1)).date().isoformat())
    )
