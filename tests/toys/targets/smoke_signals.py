"""Read the table by smoke signals."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.access.about import AccessSubject
from framework.operations.access.steps import SHELL, ScriptStep, Warned, check, create, query, shared

OF = "table"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Smoke", "sql", "rest", "glue")
    yield Warned("smoke is read by everybody")
    yield create(SHELL, "The fire.", f"CREATE FIRE {place.table}", f"drop fire {place.table}")
    yield shared(SHELL, "The blanket.", "CREATE BLANKET wool", "drop blanket wool")
    yield check(SHELL, "The wind.", "wind")
    yield query(SHELL, "A puff for each row.", f"puff {place.identifier}")
