"""Steps of a script: what to run in which system, why, and how to undo it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Part = Literal["create", "check", "query", "cleanup"]
PARTS: tuple[Part, ...] = ("create", "check", "query", "cleanup")
Scope = Literal["", "shared", "optional"]


@dataclass(frozen=True)
class System:
    """A system in which steps run: its name for people, and how its language marks a comment."""

    name: str
    language: str  # its name behind ``` in Markdown
    comment: str = "#"
    begins: str = ""  # the statement that is run first, except where rows are queried


SHELL = System("In a shell", "sh")
PYTHON = System("In Python", "python")
SNOWFLAKE = System("In Snowflake", "sql", "--", "USE ROLE ACCOUNTADMIN;")
DUCKDB = System("In DuckDB", "sql", "--")


@dataclass(frozen=True, kw_only=True)
class ScriptStep:
    """One thing to run, and `undo`, which reverts it. A step is `shared` if other tables or topics may use its result, too: the undo is
    printed as a comment. It is `optional` if only some users want it: the whole step is printed as a comment."""

    part: Part
    system: System
    why: str
    run: str
    undo: str = ""
    scope: Scope = ""
    effect: str = ""  # the effect of `undo`, in words

    @property
    def commented(self) -> ScriptStep:
        return replace(self, run="\n".join(f"{self.system.comment} {line}" for line in self.run.splitlines()))

    @property
    def taken_back(self) -> ScriptStep:
        headline = self.why.split(". ")[0].rstrip(".")
        why = self.effect or f'Undoes the step "{headline}".'
        condition = "Only if nothing else needs it. " if self.scope == "shared" else ""
        undo_step = ScriptStep(part="cleanup", system=self.system, why=f"{condition}{why}", run=self.undo)
        return undo_step.commented if self.scope else undo_step


@dataclass(frozen=True)
class Warned:
    """A note to read before any step is run."""

    says: str


def create(system: System, why: str, run: str, undo: str = "") -> ScriptStep:
    return ScriptStep(part="create", system=system, why=why, run=run, undo=undo)


def shared(system: System, why: str, run: str, undo: str) -> ScriptStep:
    return ScriptStep(part="create", system=system, why=why, run=run, undo=undo, scope="shared")


def optional(system: System, why: str, run: str, undo: str, effect: str) -> ScriptStep:
    return ScriptStep(
        part="create", system=system, why=why, run=run, undo=undo, scope="optional", effect=f"Only if it was done: {effect}."
    )


def check(system: System, why: str, run: str) -> ScriptStep:
    return ScriptStep(part="check", system=system, why=why, run=run)


def query(system: System, why: str, run: str) -> ScriptStep:
    return ScriptStep(part="query", system=system, why=why, run=run)


def complete(steps: Iterable[ScriptStep]) -> Iterator[ScriptStep]:
    """The steps, and behind them those that undo them, the last first. Each part opens with the statement that its system begins with."""
    all_steps = list(steps)
    printed_steps = (step.commented if step.scope == "optional" else step for step in all_steps)
    begun_parts: set[tuple[Part, System]] = set()
    for step in (*printed_steps, *(step.taken_back for step in reversed(all_steps) if step.undo)):
        if step.system.begins and step.part != "query" and (step.part, step.system) not in begun_parts:
            begun_parts.add((step.part, step.system))
            yield ScriptStep(part=step.part, system=step.system, why="As the administrator.", run=step.system.begins)
        yield step
