"""The events of a run of a pipeline, summed up for its records in Dagster."""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.core.publish.batch import Batch
from framework.core.run.events import BatchDone, Event
from framework.core.run.metrics import Totals


@dataclass
class Told:
    """The batches that a run has published so far, and the sums of its numbers."""

    batches: list[Batch] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)

    def add(self, event: Event) -> None:
        self.totals.add(event)
        if isinstance(event, BatchDone):
            self.batches.append(event.batch)
