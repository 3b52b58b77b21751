"""Steps of a script: what to run in which system, why, and what takes it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Part = Literal["create", "check", "query", "cleanup"]
PARTS: tuple[Part, ...] = ("create", "check", "query", "cleanup")


@dataclass(frozen=True)
class System:
    """Where steps run: its name for people, and how its language marks a comment."""

    name: str
    language: str  # as it is called behind ``` in Markdown
    comment: str = "#"
    begins: str = ""  # what is run first where something is created or taken back


SHELL = System("In a shell", "sh")
PYTHON = System("In Python", "python")
SNOWFLAKE = System("In Snowflake", "sql", "--", "USE ROLE ACCOUNTADMIN;")
DUCKDB = System("In DuckDB", "sql", "--")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to run. What it makes is taken back by `undo`, in the system `undo_in`."""

    part: Part
    in_: System
    why: str
    run: str
    undo: str = ""
    undo_in: System | None = None


@dataclass(frozen=True)
class Warned:
    """What the user has to know before any of it is run."""

    says: str


def create(in_: System, why: str, run: str, undo: str = "", undo_in: System | None = None) -> Step:
    return Step(part="create", in_=in_, why=why, run=run, undo=undo, undo_in=undo_in)


def check(in_: System, why: str, run: str) -> Step:
    return Step(part="check", in_=in_, why=why, run=run)


def query(in_: System, why: str, run: str) -> Step:
    return Step(part="query", in_=in_, why=why, run=run)


def complete(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps, and behind them what takes back all that they made, the last first; each system with what it begins with."""
    every = list(steps)
    taken_back = [
        Step(
            part="cleanup", in_=step.undo_in or step.in_, why=f"Takes back: {step.why.split('. ')[0].rstrip('.')}.", run=step.undo
        )
        for step in reversed(every)
        if step.undo
    ]
    begun: set[tuple[Part, System]] = set()
    for step in (*every, *taken_back):
        if step.in_.begins and step.part in ("create", "cleanup") and (step.part, step.in_) not in begun:
            begun.add((step.part, step.in_))
            yield Step(part=step.part, in_=step.in_, why="As the administrator.", run=step.in_.begins)
        yield step
