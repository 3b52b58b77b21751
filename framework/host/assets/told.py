"""The batches of a run of a pipeline, for its records in Dagster."""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.core.publish.batch import Batch
from framework.core.rules.work import Work
from framework.core.run.events import BatchDone, Event


@dataclass
class Told:
    """The batches that a run has published so far, and what waited when it began."""

    batches: list[Batch] = field(default_factory=list)
    waited: int | None = None

    def add(self, event: Event) -> None:
        if isinstance(event, BatchDone):
            self.batches.append(event.batch)

    @property
    def work(self) -> Work:
        return sum((batch.work for batch in self.batches), Work())
