"""Sluice from Python, for notebooks, tests and programs of your own. All names without `_` are public; `framework` is not.

`env` is a folder of `environments`; without it SLUICE_ENV decides, or it is `local`.

>>> import sluice
>>> sluice.check("specs")
()
>>> sluice.run("orders", specs="specs").rows
833
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from framework import __version__ as __version__
from framework.base.errors import Problem as Problem, SluiceError as SluiceError, SpecError as SpecError
from framework.base.home import environment_of as _environment_of

if TYPE_CHECKING:
    from framework.core.publish.batch import Batch
    from framework.operations.observe.next_run import NextRun
    from framework.plan import Pipeline

_turn = RLock()


@dataclass(frozen=True)
class Planned:
    """A pipeline: its columns after each step, its table, and what the next run does."""

    pipeline: Pipeline
    next_run: NextRun | None  # None if Kafka and the catalog were not asked


@dataclass(frozen=True)
class Run:
    """The batches that a run published."""

    pipeline: str
    batches: tuple[Batch, ...]
    behind: tuple[SluiceError, ...] = ()  # why followers do not show all of the table yet

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def bad(self) -> int:
        return sum(batch.bad for batch in self.batches)


def check(specs: str | Path = "specs", env: str | None = None) -> tuple[Problem, ...]:
    """All problems of the specs, as `sluice check` finds them."""
    from framework.features.export import queries
    from framework.host.plans import draft
    from framework.language import extensions

    folder = Path(specs)
    with extensions.project(folder.absolute().parent, loads=True):
        plan_, problems = draft(folder, _environment_of(env), logins=False)
        return (*problems, *queries.problems(plan_))


def plan(specs: str | Path = "specs", env: str | None = None, look: bool = True) -> tuple[Planned, ...]:
    """The plan of the specs. With `look`, Kafka and the catalog are asked about the next run. Raises `SpecError` with all problems."""
    from framework.host.plans import make
    from framework.operations.observe.next_run import next_runs

    plan_ = make(Path(specs), _environment_of(env))
    runs_by_name = {next_run.pipeline.name: next_run for next_run in next_runs(plan_, plan_.pipelines)} if look else {}
    return tuple(Planned(pipeline, runs_by_name.get(pipeline.name)) for pipeline in plan_.pipelines)


def run(name: str, specs: str | Path = "specs", env: str | None = None) -> Run:
    """Loads all waiting messages of a pipeline, or of the table of this name. What stops it is raised; the batches before stay. Threads
    take turns: a process has one Spark."""
    from framework.core.run import run as loop
    from framework.core.run.events import BatchDone, Failed
    from framework.core.run.failures import raising
    from framework.host.plans import make
    from framework.host.session import opened
    from framework.host.watchers import with_watchers

    with _turn, opened(make(Path(specs), _environment_of(env)), name) as (context, pipeline):
        events = tuple(raising(with_watchers(loop.run(context, pipeline))))
    batches = tuple(event.batch for event in events if isinstance(event, BatchDone))
    return Run(pipeline.name, batches, tuple(event.error for event in events if isinstance(event, Failed)))
