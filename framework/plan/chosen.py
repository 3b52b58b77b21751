"""Choose pipelines by their names or the names of their tables."""

from __future__ import annotations

from collections.abc import Collection

from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, the_names
from framework.plan import Pipeline, Plan


def chosen(plan: Plan, names: Collection[str], may_lack: bool = False) -> tuple[Pipeline, ...]:
    """The pipelines of these names; without names, all. With `may_lack`, no error is raised for names that the plan lacks, since
    their specs have problems that are shown elsewhere."""
    names_by_table = {pipeline.table.identifier: pipeline.name for pipeline in plan.pipelines}
    wanted_names = [names_by_table.get(name, name) for name in names]
    unknown_names = [name for name in wanted_names if plan.pipeline(name) is None]
    if unknown_names and not may_lack:
        all_names = [pipeline.name for pipeline in plan.pipelines]
        fallback = the_names("pipeline", all_names) if all_names else "the specs have no pipelines"
        raise SluiceError(
            "unknown-pipeline",
            f"there is no pipeline{' with a table' if '.' in unknown_names[0] else ''} `{unknown_names[0]}`",
            did_you_mean(unknown_names[0], [*all_names, *names_by_table], fallback),
        )
    return tuple(pipeline for pipeline in plan.pipelines if not wanted_names or pipeline.name in wanted_names)
