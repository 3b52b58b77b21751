"""A project whose batches are refused, and the answer of a person."""

from __future__ import annotations

from framework.base.errors import RefusedError
from framework.operations.undo import accept
from tests.support.project import Project


def accept_it(project: Project) -> RefusedError:
    context = project.context()
    pipeline = context.plan.pipelines[0]
    refusal = accept.refusal(context, pipeline)
    assert refusal is not None
    assert f"sluice accept {pipeline.name}" in refusal.hint
    accept.accept(context, pipeline, refusal)
    return refusal


def begun(project: Project, count: int = 12, bad_every: int = 4) -> Project:
    project.make_topic()
    project.send_good(count, bad_every)
    project.run()
    return project
