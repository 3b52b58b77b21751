"""The lines with which `sluice run --every` begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.base.amounts import counted

if TYPE_CHECKING:
    from framework.core.publish.batch import Batch
    from framework.plan import Pipeline

_NAMED = 3  # pipelines


@dataclass
class Loaded:
    """The number of batches and rows that a run has committed."""

    batches: int = 0
    rows: int = 0

    def add(self, batch: Batch) -> None:
        self.batches += 1
        self.rows += batch.rows


def begins(pipelines: Sequence[Pipeline], every: str) -> str:
    names = ", ".join(pipeline.name for pipeline in pipelines[:_NAMED]) or "nothing"
    other_count = len(pipelines) - _NAMED
    names = f"{names} and {counted(other_count, 'other')}" if other_count > 0 else names
    return f"loading {names} every {every}; Ctrl-C stops after the batch that is under way"


def ended(loaded: Loaded) -> str:
    if not loaded.batches:
        return "stopped: nothing was loaded"
    return f"stopped: {counted(loaded.rows, 'row')} in {counted(loaded.batches, 'batch')}, all committed; the next run continues there"
