"""The events of a run. They come in this order: LeftOut alone, or Began, then batches with what followers show between them, and at the end
followers, maintenance and failures. Ended is always the last one."""

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
    """A run begins. `waiting`: about how many messages and rows wait; with 0 no batch follows, and no JVM starts."""

    pipeline: Pipeline
    waiting: int


@dataclass(frozen=True)
class BatchDone:
    """A batch is published."""

    pipeline: Pipeline
    batch: Batch


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


Event: TypeAlias = Began | BatchDone | Followed | Maintained | LeftOut | Failed | Ended
