"""Scripts as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType

from framework.operations.access.about import About, AboutTopic
from framework.operations.access.steps import Part, Step, Warned, complete


def says(target: ModuleType) -> str:
    """Its line in the help."""
    return str(target.__doc__).splitlines()[0]


def script(target: ModuleType, about: About | AboutTopic) -> tuple[list[Warned], list[Step]]:
    """The notes to read first, and all steps with those that take them back."""
    every = list(target.steps(about))
    warned = [each for each in every if isinstance(each, Warned)]
    return warned, list(complete(each for each in every if isinstance(each, Step)))


def as_text(title: str, warned: Sequence[Warned], steps: Iterable[Step], parts: Sequence[Part]) -> Iterator[str]:
    """To be pasted where each heading says; all that is not to be run is a comment."""
    chosen = [each for each in steps if each.part in parts]
    comment = chosen[0].in_.comment if chosen else "#"
    yield f"{comment} {title}"
    for each in warned:
        yield f"{comment} Note: {each.says}"
    before = None
    for step in chosen:
        if (step.in_, step.part) != before:
            yield ""
            yield f"{step.in_.comment} == {step.in_.name}: {step.part}"
            before = (step.in_, step.part)
        yield ""
        yield f"{step.in_.comment} {step.why}"
        yield step.run
    if not chosen:
        yield f"{comment} There is nothing to do."


def as_json(target: str, of: str, warned: Sequence[Warned], steps: Iterable[Step], parts: Sequence[Part]) -> str:
    told = [
        {"part": each.part, "in": each.in_.name, "language": each.in_.language, "why": each.why, "run": each.run}
        for each in steps
        if each.part in parts
    ]
    return json.dumps({"target": target, "of": of, "notes": [each.says for each in warned], "steps": told}, indent=2)
