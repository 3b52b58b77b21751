"""Pipelines in a plan, with typed steps and a described table."""

from __future__ import annotations

from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.kinds import catalog
from framework.documents.pipeline import followers, plan as pipelines
from framework.documents.pipeline.written import Pipeline
from framework.language.kind import Kind
from framework.plan import ListedTable, Pipeline as Planned


def plan_pipelines(draft: Draft, documents: tuple[Pipeline, ...]) -> None:
    draft.pipelines = pipelines.plan_pipelines(draft, documents)
    _one_writer(draft)
    draft.problems.extend(followers.circles(draft.pipelines))
    used_catalogs = {pipeline.table.catalog.name: pipeline.table.catalog for pipeline in draft.pipelines}
    draft.problems.extend(catalog.other_logins(draft.written.of(catalog.Catalog), used_catalogs.values()))


def _one_writer(draft: Draft) -> None:
    """Check that no two pipelines write the same table, that none writes another's table of bad rows, and that none is listed under the
    name of another."""
    writers: dict[tuple[str, str], Planned] = {}
    for pipeline in draft.pipelines:
        for name in (pipeline.table.identifier, pipeline.table.bad_rows):
            first_writer = writers.setdefault((pipeline.table.catalog.name, name), pipeline)
            if first_writer is not pipeline:
                place, first_place = (writer.table.places["table"] for writer in (pipeline, first_writer))
                message = f"`{pipeline.name}` and `{first_writer.name}` both write the table `{name}`"
                hint = f"the other is at {first_place}: give one of them another table"
                draft.problems.append(Problem(place, "two-writers", message, hint))
                break  # two pipelines with the same table also share its table of bad rows
    for pipeline in draft.pipelines:
        for follower in pipeline.published:
            listed: ListedTable = follower.options
            first_writer = writers.setdefault((listed.catalog.name, listed.identifier), pipeline)
            if first_writer is not pipeline:
                message = f"the catalog `{listed.catalog.name}` has the table `{listed.identifier}` of `{first_writer.name}`"
                draft.problems.append(Problem(follower.where, "two-writers", message, "give it another name by `as`"))


KIND = Kind(Pipeline, plan_pipelines, needs=("topic", "catalog"), same_everywhere=True)
