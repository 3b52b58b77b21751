"""Scripts as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType

from framework.operations.access.about import AccessSubject, TopicSubject
from framework.operations.access.steps import Part, ScriptStep, Warned, complete


def says(target: ModuleType) -> str:
    """The line of a target in the help."""
    return str(target.__doc__).splitlines()[0]


def script(target: ModuleType, about: AccessSubject | TopicSubject) -> tuple[list[Warned], list[ScriptStep]]:
    """Returns the notes to read first, and all steps with those that undo them."""
    entries = list(target.steps(about))
    warnings = [entry for entry in entries if isinstance(entry, Warned)]
    return warnings, list(complete(entry for entry in entries if isinstance(entry, ScriptStep)))


def as_text(title: str, warnings: Sequence[Warned], steps: Iterable[ScriptStep], parts: Sequence[Part]) -> Iterator[str]:
    """The script as text, to be pasted where each heading says; everything that is not to be run is a comment."""
    chosen_steps = [step for step in steps if step.part in parts]
    comment = chosen_steps[0].system.comment if chosen_steps else "#"
    yield f"{comment} {title}"
    for warning in warnings:
        yield f"{comment} Note: {warning.says}"
    heading = None
    for step in chosen_steps:
        if (step.system, step.part) != heading:
            yield ""
            yield f"{step.system.comment} == {step.system.name}: {step.part}"
            heading = (step.system, step.part)
        yield ""
        yield f"{step.system.comment} {step.why}"
        yield step.run
    if not chosen_steps:
        yield f"{comment} There is nothing to do."


def as_json(target: str, subject: str, warnings: Sequence[Warned], steps: Iterable[ScriptStep], parts: Sequence[Part]) -> str:
    chosen_steps = [
        {"part": step.part, "in": step.system.name, "language": step.system.language, "why": step.why, "run": step.run}
        for step in steps
        if step.part in parts
    ]
    return json.dumps(
        {"target": target, "of": subject, "notes": [warning.says for warning in warnings], "steps": chosen_steps}, indent=2
    )
