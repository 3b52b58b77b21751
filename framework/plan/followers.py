"""Resolve `also`: what shows the rows of a pipeline's table elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from framework import components
from framework.errors import Problem
from framework.model import Follower, Pipeline
from framework.plan.draft import Draft
from framework.spec import kinds

PACKAGE = "framework.followers"


def resolve(draft: Draft, spec: kinds.Pipeline, pipeline: Pipeline) -> tuple[Follower, ...]:
    return tuple(_resolved(draft, spec, pipeline))


def _resolved(draft: Draft, spec: kinds.Pipeline, pipeline: Pipeline) -> Iterator[Follower]:
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for written in spec.also:
        follower = components.load(PACKAGE, written.known_by or "").resolve(written, pipeline, draft)
        if follower is None:
            continue
        if (follower.title, follower.asset) in seen:
            message = f"the rows are shown in the {follower.title} already"
            draft.problems.append(Problem(follower.where, "duplicate-follower", message, "remove one of the two"))
        seen.add((follower.title, follower.asset))
        yield follower
