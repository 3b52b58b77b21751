"""Takes over a table that another program created: from now on it is the pipeline's, and its rows stay.

Guarantee: one commit records the owner and where reading begins, and only on the table as it was compared with the spec.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from framework.base.errors import RefusedError
from framework.base.spelling import joined
from framework.core.context.context import Context
from framework.core.iceberg import moves
from framework.core.iceberg.commit import again
from framework.core.iceberg.jvm_state import names, state
from framework.core.iceberg.lake import TableStore
from framework.core.publish.tables import LAYOUT, schema_change, write_properties
from framework.core.rules import protocol, recorded_moves, refusals
from framework.plan import Pipeline
from framework.plan.change import changes

_HINT = "run again when the other writer is done; nothing was lost"


def adoptable(lake: TableStore, pipeline: Pipeline) -> Any:
    """The table, if a run takes it over, else None. Raises a refusal if the spec does not fit the table."""
    table = lake.load(pipeline.table.identifier)
    if table is None or not refusals.may_adopt(pipeline, state(table)):
        return None
    spec_changes = changes(pipeline, lake.existing(table))
    if any(not change.allowed for change in spec_changes):
        raise schema_change(pipeline, spec_changes)
    if taken_refs := [name for name in (protocol.TAG, protocol.EMPTY) if name in names(table)]:
        taken_names = joined([f"`{name}`" for name in taken_refs])
        message = (
            f"{pipeline.table.identifier} has a tag or branch {taken_names} of another program, and Sluice calls its own tag so"
        )
        raise RefusedError("name-taken", message, "create it again under another name, and drop this one; then run again")
    return table


def adopt(context: Context, lake: TableStore, pipeline: Pipeline) -> None:
    """Takes the table over; does nothing if it is missing or is a pipeline's."""
    again(pipeline.table.identifier, partial(_adopt, context, lake, pipeline), _HINT)


def _adopt(context: Context, lake: TableStore, pipeline: Pipeline) -> None:
    table = adoptable(lake, pipeline)
    if table is None:
        return
    source = context.source(pipeline)
    topic = source.topic_state()
    commit = lake.begin(table)
    if commit.table.currentSnapshot() is None:  # it has never had rows
        commit.append({})
    current_state = state(commit.table)
    start_position = protocol.born(topic, source.starts(topic, {}), pipeline.spec)
    position = replace(start_position, snapshot=current_state.main, sequence=current_state.snapshots[current_state.main].sequence)
    properties = {
        **LAYOUT,
        **write_properties(pipeline),
        protocol.OWNER: refusals.owner(pipeline),
        protocol.ADOPTED: "true",
        **recorded_moves.with_move(None, recorded_moves.ADOPT, position, current_state),
    }
    moves.move_position(commit, position, properties)
