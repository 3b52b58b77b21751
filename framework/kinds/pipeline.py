"""Pipelines in a plan, with typed steps and a described table."""

from __future__ import annotations

from framework.errors import Problem
from framework.model import Pipeline as Planned
from framework.plan import followers, pipelines
from framework.plan.draft import Draft
from framework.spec.kinds import DocumentKind, Pipeline


def resolve(draft: Draft, documents: tuple[Pipeline, ...]) -> None:
    draft.pipelines = pipelines.resolve(draft, documents)
    _one_writer(draft)
    draft.problems.extend(followers.circles(draft.pipelines))


def _one_writer(draft: Draft) -> None:
    """Check that no two pipelines write the same table, and that none writes another's table of bad rows."""
    taken: dict[tuple[str, str], Planned] = {}
    for pipeline in draft.pipelines:
        for name in (pipeline.table.identifier, pipeline.table.bad_rows):
            first = taken.setdefault((pipeline.table.catalog.name, name), pipeline)
            if first is not pipeline:
                here, there = (each.table.places["table"] for each in (pipeline, first))
                message = f"`{pipeline.name}` and `{first.name}` both write the table `{name}`"
                hint = f"the other is at {there}: give one of them another table"
                draft.problems.append(Problem(here, "two-writers", message, hint))
                break  # two pipelines with the same table also share its table of bad rows


KIND = DocumentKind(Pipeline, resolve, needs=("topic", "catalog"), same_everywhere=True)
