"""What tests of followers share."""

from __future__ import annotations

from typing import Any

from framework.core.follow import follow
from framework.core.run.run import batches
from tests.project import Project


def ran(project: Project, at: Any = None) -> list[int]:
    """Rows that the followers show after a run."""
    context = project.context(at)
    pipeline = context.plan.pipelines[0]
    list(batches(context, pipeline))
    results = list(follow.after_run(context, pipeline))
    for result in results:
        if result.trouble:
            raise result.trouble
    return [result.rows for result in results]
