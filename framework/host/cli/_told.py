"""The events of a command that works on one pipeline: a line for each batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import click

from framework.core.run.events import BatchDone, Event, Rebuilt
from framework.core.run.failures import raising
from framework.host.cli.run import line
from framework.host.watchers import with_watchers


@dataclass
class Outcome:
    """The results of the events of a run."""

    batches: int = 0
    rebuilt: Rebuilt | None = None


def told(events: Iterable[Event]) -> Outcome:
    """Prints the batches. Raises what stopped them."""
    outcome = Outcome()
    for event in raising(with_watchers(events)):
        if isinstance(event, BatchDone):
            click.echo(line(event))
            outcome.batches += 1
        elif isinstance(event, Rebuilt):
            outcome.rebuilt = event
    return outcome
