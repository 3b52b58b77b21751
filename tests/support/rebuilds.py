"""Rebuilds, and what they leave."""

from __future__ import annotations

from collections.abc import Callable

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.iceberg.updates import CommitCall, commit_transaction
from framework.core.publish.batch import Batch
from framework.core.run.events import BatchDone, Rebuilt
from framework.core.run.failures import raising
from framework.operations.rebuild import rebuild
from framework.plan import Pipeline
from framework.systems import catalogs
from tests.support.project import Project


def run_rebuild(
    project: Project,
    hook: Callable[[str], None] | None = None,
    commit: CommitCall = commit_transaction,
    without_lost: bool = False,
    batches: list[Batch] | None = None,
) -> Rebuilt | None:
    context = project.context(hook, commit)
    pipeline = context.plan.pipelines[0]
    return rebuilt(context, pipeline, without_lost, batches)


def rebuilt(
    context: Context, pipeline: Pipeline, without_lost: bool = False, batches: list[Batch] | None = None
) -> Rebuilt | None:
    """Rebuilds the table of a pipeline, and returns what was published."""
    published = None
    estimate, _ = rebuild.check_rebuild(context, pipeline, without_lost)
    for event in raising(rebuild.rebuild(context, pipeline, estimate, lambda: False)):
        if isinstance(event, BatchDone) and batches is not None:
            batches.append(event.batch)
        elif isinstance(event, Rebuilt):
            published = event
    return published


def nothing_left(project: Project) -> None:
    names = {
        name for name in catalogs.client_of(project.pipeline.table.catalog).tables() if name.startswith(f"{project.namespace}.")
    }
    assert names <= {f"{project.namespace}.trades", f"{project.namespace}.trades__bad_rows"}
    folders = {path.name for path in (project.lake / "warehouse" / project.namespace).iterdir()}
    assert folders <= {"trades", "trades__bad_rows"}, "files of the second table are left"
    assert project.branches() == []
    table = table_state.table(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None and table.metadata.refs["sluice"].snapshot_id == table.metadata.current_snapshot_id
    assert len(project.unreferenced()) <= 3
