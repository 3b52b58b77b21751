"""Problems of the queries of exports. DuckDB, which reads them, is imported only where there are some."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.errors import Problem
from framework.plan import Plan


def problems(plan: Plan) -> Iterator[Problem]:
    if any(plan.documents_of("export")):
        from framework.features.export import statement

        yield from statement.problems(plan)
