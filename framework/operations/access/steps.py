"""Steps of a script: what to run in which system, why, and what takes it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Part = Literal["create", "check", "query", "cleanup"]
PARTS: tuple[Part, ...] = ("create", "check", "query", "cleanup")
Kept = Literal["", "shared", "optional"]


@dataclass(frozen=True)
class System:
    """Where steps run: its name for people, and how its language marks a comment."""

    name: str
    language: str  # as it is called behind ``` in Markdown
    comment: str = "#"
    begins: str = ""  # what is run first, except where rows are queried


SHELL = System("In a shell", "sh")
PYTHON = System("In Python", "python")
SNOWFLAKE = System("In Snowflake", "sql", "--", "USE ROLE ACCOUNTADMIN;")
DUCKDB = System("In DuckDB", "sql", "--")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to run. What it makes is taken back by `undo`. What other tables or topics may use, too, is `shared`: taking it back is
    printed as a comment. What only some want is `optional`: all of it is."""

    part: Part
    in_: System
    why: str
    run: str
    undo: str = ""
    kept: Kept = ""
    back: str = ""  # what `undo` does, in words

    @property
    def commented(self) -> Step:
        return replace(self, run="\n".join(f"{self.in_.comment} {line}" for line in self.run.splitlines()))

    @property
    def taken_back(self) -> Step:
        headline = self.why.split(". ")[0].rstrip(".")
        why = self.back or f'Undoes the step "{headline}".'
        only = "Only if nothing else needs it. " if self.kept == "shared" else ""
        back = Step(part="cleanup", in_=self.in_, why=f"{only}{why}", run=self.undo)
        return back.commented if self.kept else back


@dataclass(frozen=True)
class Warned:
    """A note to read before any of it is run."""

    says: str


def create(in_: System, why: str, run: str, undo: str = "") -> Step:
    return Step(part="create", in_=in_, why=why, run=run, undo=undo)


def shared(in_: System, why: str, run: str, undo: str) -> Step:
    return Step(part="create", in_=in_, why=why, run=run, undo=undo, kept="shared")


def optional(in_: System, why: str, run: str, undo: str, back: str) -> Step:
    return Step(part="create", in_=in_, why=why, run=run, undo=undo, kept="optional", back=f"Only if it was done: {back}.")


def check(in_: System, why: str, run: str) -> Step:
    return Step(part="check", in_=in_, why=why, run=run)


def query(in_: System, why: str, run: str) -> Step:
    return Step(part="query", in_=in_, why=why, run=run)


def complete(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, and behind them what takes back all that they made, the last first; each part with what its system begins with."""
    every = list(steps)
    printed_steps = (step.commented if step.kept == "optional" else step for step in every)
    under_way: set[tuple[Part, System]] = set()
    for step in (*printed_steps, *(each.taken_back for each in reversed(every) if each.undo)):
        if step.in_.begins and step.part != "query" and (step.part, step.in_) not in under_way:
            under_way.add((step.part, step.in_))
            yield Step(part=step.part, in_=step.in_, why="As the administrator.", run=step.in_.begins)
        yield step
