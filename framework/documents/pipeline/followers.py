"""Resolve `also` and `publish`: what shows the rows of a pipeline's table elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.language import components
from framework.plan import Follower, Pipeline


def resolve(draft: Draft, spec: WrittenPipeline, pipeline: Pipeline) -> tuple[Follower, ...]:
    return tuple(_resolved(draft, spec, pipeline))


def circles(pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Pipelines that feed each other by topics, which would go on for ever."""
    keys = {each.name: {("kafka", topic.cluster.name, topic.kafka_name) for topic in each.topics} for each in pipelines}
    fed = {each.name: [name for name, read in keys.items() if any(to.asset in read for to in each.also)] for each in pipelines}
    try:
        list(TopologicalSorter(fed).static_order())
    except CycleError as error:
        names = error.args[1]
        first = next(each for each in pipelines if each.name == names[0])
        where = next(to.where for to in first.also if any(to.asset in keys[name] for name in names))
        message = f"these pipelines feed each other: {' → '.join(names)}"
        yield Problem(where, "topic-cycle", message, "one of them must send its rows to a topic that none of them reads")


def _resolved(draft: Draft, spec: WrittenPipeline, pipeline: Pipeline) -> Iterator[Follower]:
    taken: set[tuple[str, tuple[str, ...]]] = set()
    for follower in _each(draft, spec, pipeline):
        if (follower.title, follower.asset) in taken:
            message = f"the rows are shown in the {follower.title} already"
            draft.problems.append(Problem(follower.where, "duplicate-follower", message, "remove one of the two"))
        taken.add((follower.title, follower.asset))
        yield follower


def _each(draft: Draft, spec: WrittenPipeline, pipeline: Pipeline) -> Iterator[Follower]:
    listings = pipeline.table.catalog.publish if spec.publish is None else ()
    files = components.current().followers
    of_catalogs = files.load("catalog")
    resolved = chain(
        (files.load(each.known_by or "").resolve(each, pipeline, draft) for each in spec.also),
        (of_catalogs.resolve(each, pipeline, draft) for each in spec.publish or ()),
        (of_catalogs.resolve_for_all(each, pipeline, draft) for each in listings),
    )
    yield from (follower for follower in resolved if follower is not None)
