"""Parts that tests of followers share."""

from __future__ import annotations

from typing import Any

from framework.core.follow import follow
from framework.core.run.run import batches
from tests.support.project import Project


def ran(project: Project, hook: Any = None) -> list[int]:
    """Runs the pipeline, and returns the number of rows that each follower then shows."""
    context = project.context(hook)
    pipeline = context.plan.pipelines[0]
    list(batches(context, pipeline))
    results = list(follow.after_run(context, pipeline))
    for result in results:
        if result.trouble:
            raise result.trouble
    return [result.rows for result in results]
