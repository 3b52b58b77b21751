"""The second table of a rebuild: its name and its identity, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from framework.base.errors import BatchError
from framework.core.iceberg import metadata
from framework.core.rules import protocol, refusals
from framework.core.rules.protocol import Position
from framework.plan import Pipeline
from framework.plan.change import Change, hint, refusal_text

GOING = "sluice.going"  # of a table that is being deleted: what is left of it is not resumed


def second_pipeline(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the second table as its target."""
    return replace(pipeline, table=pipeline.table.second)


def resume_position(pipeline: Pipeline) -> Position | None:
    """The position of an interrupted rebuild of this spec; None where there is none to resume."""
    first_table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    second_table = metadata.read(pipeline.table.catalog, second_pipeline(pipeline).table.identifier)
    position = second_table.position if second_table else None
    if first_table is None or second_table is None or position is None or GOING in second_table.properties:
        return None
    if second_table.properties.get(protocol.OF) != first_table.uuid or second_table.uuid == first_table.properties.get(
        protocol.REBUILT
    ):
        return None
    return position if position.spec == pipeline.spec else None


def second_uuid(pipeline: Pipeline) -> str | None:
    """The uuid of the second table, which distinguishes it from a later one."""
    second = metadata.read(pipeline.table.catalog, second_pipeline(pipeline).table.identifier)
    return second.uuid if second else None


def is_leftover(table: Any | None, pipeline: Pipeline) -> bool:
    """Whether a table with the name of the second one is left from a rebuild of this pipeline."""
    owner = table.properties.get(protocol.OWNER) if table is not None else None
    return refusals.is_ours(pipeline, owner)


def refuse_changes(pipeline: Pipeline, spec_changes: tuple[Change, ...]) -> None:
    refused = [change for change in spec_changes if not change.allowed and not change.rebuild]
    if refused:
        message = f"a rebuild of {pipeline.table.identifier} cannot make these changes: {refusal_text(refused)}"
        raise BatchError("schema-change", message, hint(refused, spec_changes, pipeline.name))
