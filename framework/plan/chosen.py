"""The pipelines that somebody names, each by its own name or its table's."""

from __future__ import annotations

from collections.abc import Collection

from framework.errors import SluiceError
from framework.model import Pipeline, Plan
from framework.spelling import did_you_mean


def chosen(plan: Plan, names: Collection[str], also: Collection[str] = ()) -> tuple[Pipeline, ...]:
    """The pipelines of these names; without names all. `also` are names that are right, though no pipeline of the plan has them."""
    tables = {pipeline.table.identifier: pipeline.name for pipeline in plan.pipelines}
    wanted = [tables.get(name, name) for name in names]
    unknown = [name for name in wanted if plan.pipeline(name) is None and name not in also]
    if unknown:
        names_of_all = [pipeline.name for pipeline in plan.pipelines]
        there_is = f"there is {', '.join(names_of_all)}" if names_of_all else "the specs have no pipelines"
        raise SluiceError(
            "unknown-pipeline",
            f"there is no pipeline{' with a table' if '.' in unknown[0] else ''} `{unknown[0]}`",
            did_you_mean(unknown[0], [*names_of_all, *tables], there_is),
        )
    return tuple(pipeline for pipeline in plan.pipelines if not wanted or pipeline.name in wanted)
