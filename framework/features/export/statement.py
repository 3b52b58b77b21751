"""The query of an export: one select over `input`, checked before any row is read."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.errors import Problem, SluiceError
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
        try:
            bound.bind(export.query, export.pipeline.table, _WHOSE)
        except SluiceError as error:
            message = error.message.splitlines()
            yield Problem(export.query_where, error.code, " ".join(line.strip() for line in message), error.hint)
