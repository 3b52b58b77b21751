"""The lines with which `sluice run --every` begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.base.amounts import counted

if TYPE_CHECKING:
    from framework.core.rules.work import Work
    from framework.plan import Pipeline

_NAMED = 3  # pipelines


def begins(pipelines: Sequence[Pipeline], every: str) -> str:
    names = ", ".join(pipeline.name for pipeline in pipelines[:_NAMED]) or "nothing"
    other_count = len(pipelines) - _NAMED
    names = f"{names} and {counted(other_count, 'other')}" if other_count > 0 else names
    return f"loading {names} every {every}; Ctrl-C stops after the batch that is under way"


def ended(work: Work) -> str:
    rows, batches = work.rows, work.batches
    if not batches:
        return "stopped: nothing was loaded"
    return f"stopped: {counted(rows, 'row')} in {counted(batches, 'batch')}, all committed; the next run continues there"
