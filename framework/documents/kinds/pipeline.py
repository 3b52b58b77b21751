"""Pipelines in a plan, with typed steps and a described table."""

from __future__ import annotations

from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.kinds import catalog
from framework.documents.pipeline import followers
from framework.documents.pipeline import plan as pipelines
from framework.documents.pipeline.written import Pipeline
from framework.language.kind import DocumentKind
from framework.plan import ListedTable
from framework.plan import Pipeline as Planned


def resolve(draft: Draft, documents: tuple[Pipeline, ...]) -> None:
    draft.pipelines = pipelines.resolve(draft, documents)
    _one_writer(draft)
    draft.problems.extend(followers.circles(draft.pipelines))
    written = {each.table.catalog.name: each.table.catalog for each in draft.pipelines}
    draft.problems.extend(catalog.other_logins(draft.written.of(catalog.Catalog), written.values()))


def _one_writer(draft: Draft) -> None:
    """Check that no two pipelines write the same table, that none writes another's table of bad rows, and that none is listed under the
    name of another."""
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
    for pipeline in draft.pipelines:
        for follower in pipeline.published:
            listed: ListedTable = follower.options
            first = taken.setdefault((listed.catalog.name, listed.identifier), pipeline)
            if first is not pipeline:
                message = f"the catalog `{listed.catalog.name}` has the table `{listed.identifier}` of `{first.name}`"
                draft.problems.append(Problem(follower.where, "two-writers", message, "give it another name by `as`"))


KIND = DocumentKind(Pipeline, resolve, needs=("topic", "catalog"), same_everywhere=True)
