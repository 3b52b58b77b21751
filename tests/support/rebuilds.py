"""Rebuilds, and what they leave."""

from __future__ import annotations

from collections.abc import Callable

from framework.core.iceberg import table_state
from framework.core.iceberg.lake import CommitCall, commit_transaction
from framework.core.publish.batch import Batch
from framework.operations.rebuild import rebuild
from framework.operations.rebuild.publish import Published
from framework.systems import catalogs
from tests.support.project import Project


def run_rebuild(
    project: Project,
    hook: Callable[[str], None] | None = None,
    commit: CommitCall = commit_transaction,
    without_lost: bool = False,
    batches: list[Batch] | None = None,
) -> Published | None:
    context = project.context(hook, commit)
    pipeline = context.plan.pipelines[0]
    estimate, _ = rebuild.check_rebuild(context, pipeline, without_lost)
    return rebuild.rebuild(context, pipeline, estimate, (batches if batches is not None else []).append, lambda: False)


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
