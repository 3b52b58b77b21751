"""Resolve `also` and `publish`: the followers that show the rows of a pipeline's table elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.language import components
from framework.plan import Follower, Pipeline


def plan_followers(draft: Draft, spec: WrittenPipeline, pipeline: Pipeline) -> tuple[Follower, ...]:
    return tuple(_resolved(draft, spec, pipeline))


def circles(pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    """Reports pipelines that feed each other through topics, since they would never stop."""
    keys = {
        pipeline.name: {("kafka", topic.cluster.name, topic.kafka_name) for topic in pipeline.topics} for pipeline in pipelines
    }
    fed_names = {
        pipeline.name: [
            name for name, topic_keys in keys.items() if any(follower.asset in topic_keys for follower in pipeline.also)
        ]
        for pipeline in pipelines
    }
    try:
        list(TopologicalSorter(fed_names).static_order())
    except CycleError as error:
        names = error.args[1]
        first_pipeline = next(pipeline for pipeline in pipelines if pipeline.name == names[0])
        where = next(follower.where for follower in first_pipeline.also if any(follower.asset in keys[name] for name in names))
        message = f"these pipelines feed each other: {' → '.join(names)}"
        yield Problem(where, "topic-cycle", message, "one of them must send its rows to a topic that none of them reads")


def _resolved(draft: Draft, spec: WrittenPipeline, pipeline: Pipeline) -> Iterator[Follower]:
    earlier_targets: set[tuple[str, tuple[str, ...]]] = set()
    for follower in _all_followers(draft, spec, pipeline):
        if (follower.title, follower.asset) in earlier_targets:
            message = f"the rows are shown in the {follower.title} already"
            draft.problems.append(Problem(follower.where, "duplicate-follower", message, "remove one of the two"))
        earlier_targets.add((follower.title, follower.asset))
        yield follower


def _all_followers(draft: Draft, spec: WrittenPipeline, pipeline: Pipeline) -> Iterator[Follower]:
    listings = pipeline.table.catalog.publish if spec.publish is None else ()
    files = components.current().followers
    of_catalogs = files.load("catalog")
    resolved = chain(
        (files.load(entry.known_by or "").plan_follower(entry, pipeline, draft) for entry in spec.also),
        (of_catalogs.plan_follower(entry, pipeline, draft) for entry in spec.publish or ()),
        (of_catalogs.resolve_for_all(listing, pipeline, draft) for listing in listings),
    )
    yield from (follower for follower in resolved if follower is not None)
