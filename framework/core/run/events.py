"""The events of a run. They come in this order: LeftOut alone, or Began, then batches with what followers show between them, and at the end
followers, maintenance and failures. Ended is always the last one.

A rebuild, a replay and a reading into another table are runs, too: Began, batches, Rebuilt or Failed, and Ended. Began is missing where a
run finds nothing to do, or fails before it knows whether there is something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from framework.base.errors import Paused, SluiceError
from framework.core.follow.follow import Followed
from framework.core.maintain.maintain import MaintenanceDone
from framework.core.publish.batch import Batch
from framework.plan import Follower, Pipeline


@dataclass(frozen=True)
class Began:
    """A run begins. `waiting`: about how many messages and rows wait; with 0 no batch follows, and no JVM starts. With `rebuilds`, readers
    see none of its rows before Rebuilt."""

    pipeline: Pipeline
    waiting: int
    rebuilds: bool = False


@dataclass(frozen=True)
class BatchDone:
    """A batch is published."""

    pipeline: Pipeline
    batch: Batch


@dataclass(frozen=True)
class Rebuilt:
    """A rebuilt table was published, as the batch `number`. `only_ended`: it was published before, and only the second table was left to
    delete."""

    pipeline: Pipeline
    number: int
    snapshot: int
    only_ended: bool = False


@dataclass(frozen=True)
class Maintained:
    """A table of the pipeline was maintained."""

    pipeline: Pipeline
    done: MaintenanceDone


@dataclass(frozen=True)
class LeftOut:
    """The pipeline is paused, so it does not run. This is no failure where nobody asked for it by its name."""

    pipeline: Pipeline
    reason: Paused


@dataclass(frozen=True)
class Failed:
    """The run stopped with an error, which is recorded. The batches before it stay. With `follower`, that one failed: the table has all
    rows."""

    pipeline: Pipeline
    error: SluiceError
    follower: Follower | None = None


@dataclass(frozen=True)
class Ended:
    """The run is over."""

    pipeline: Pipeline


Event: TypeAlias = Began | BatchDone | Rebuilt | Followed | Maintained | LeftOut | Failed | Ended
