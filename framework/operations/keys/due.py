"""Replaces the keys of a plan that are due, and retires former ones that nobody uses any longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framework.base import hints
from framework.base.errors import SluiceError
from framework.operations.keys.rotation import Rotation
from framework.plan import Plan


@dataclass(frozen=True)
class Replaced:
    """Lines for the steps that were done; lines for what could not be done yet; and the errors of keys that could not be replaced."""

    lines: Sequence[str]
    lasting: Sequence[str]
    failures: Sequence[SluiceError]


def replace_due(plan: Plan, names: Sequence[str] = ()) -> Replaced:
    """Replaces what is due of all documents, or of those of these names. A failure of one holds up no other."""
    lines: list[str] = []
    lasting: list[str] = []
    failures: list[SluiceError] = []
    for document in plan.documents_of("keys"):
        if document.value.rotate_every is None or (names and document.name not in names):
            continue
        try:
            for step in Rotation(plan, document.value).rotate_due():
                told = lasting if step.lasts else lines
                told += [f"{document.name}: {step.says}", *(f"  {line}" for line in step.left)]
        except SluiceError as error:
            hint = hints.of_environment(error.hint, plan.environment)
            failures.append(SluiceError(error.code, f"{document.name}: {error.message}", hint))
    return Replaced(lines, lasting, failures)
