"""The query of an export: one select over `input`, checked before any row is read."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.errors import Problem
from framework.core.query import bound
from framework.plan import Plan
from framework.plan.export import Export

_WHOSE = "an export"


def checked(query: str) -> str:
    """The query, if it is one select that reads `input` alone."""
    return bound.checked(query, _WHOSE)


def problems(plan: Plan) -> Iterator[Problem]:
    """The problems of the queries of a plan's exports, found without their tables."""
    for document in plan.documents_of("export"):
        export: Export = document.value
        if problem := bound.problem(export.query, export.pipeline.table, _WHOSE, export.query_where):
            yield problem
