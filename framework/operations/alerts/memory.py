"""The memory of alerts, a file of this machine below `.sluice/alerts/`: incidents, who was told of them, and numbers of the past.

*Guarantee* One process at a time judges the alerts of an environment. What was told is kept before the next one is told anything.
*Limit* Only processes that use the same `.sluice` folder share it: alerts of one environment are judged on one machine.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from framework.base.home import home, lock_file, private, put, read

FOLDER = "alerts"
_STEPS = 60  # samples of the longest window
_LEAST = 5.0  # seconds between two samples
_LARGEST_GAP = 120.0  # seconds in which a sum is taken to grow evenly


@dataclass(kw_only=True)
class TableIncident:
    """A table for which an alert holds, or held. `told`: by a notice's id, when it was told last that it lasts. `over`: when it ended;
    `over_told`: the notices that were told so."""

    pipeline: str
    table: str
    since: float
    why: str
    told: dict[str, float] = field(default_factory=dict)
    over: float | None = None
    over_told: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Sample:
    """The sums of a table's batches, as they were from one time to another."""

    first: float
    last: float
    sums: Mapping[str, float]


@dataclass(kw_only=True)
class Memory:
    """All that is known of an environment's alerts. `lasting`: since when something has held."""

    incidents: dict[str, list[TableIncident]] = field(default_factory=dict)  # by alert
    samples: dict[str, list[Sample]] = field(default_factory=dict)  # by pipeline
    lasting: dict[str, float] = field(default_factory=dict)

    def open(self, alert: str, pipeline: str) -> TableIncident | None:
        """The incident of a table that is not over."""
        of_table = (incident for incident in self.incidents.get(alert, ()) if incident.pipeline == pipeline)
        return next((incident for incident in of_table if incident.over is None), None)

    def lasted(self, name: str, holds: bool, time: float) -> float:
        """The seconds for which something has held."""
        if not holds:
            self.lasting.pop(name, None)
            return 0.0
        return time - self.lasting.setdefault(name, time)

    def note(self, pipeline: str, sums: Mapping[str, float], time: float, window: float) -> None:
        """Notes the sums of a pipeline's table. Of those before the window only the last ones are kept."""
        samples = self.samples.setdefault(pipeline, [])
        step = max(_LEAST, window / _STEPS)
        if samples and samples[-1].sums == sums and time - samples[-1].last <= 2 * step:
            samples[-1].last = time
        elif not samples or time - samples[-1].last >= step:
            samples.append(Sample(first=time, last=time, sums=dict(sums)))
        while len(samples) > 1 and samples[1].first <= time - window:
            del samples[0]

    def grown(self, pipeline: str, name: str, sums: Mapping[str, float], time: float, window: float) -> float | None:
        """How much a sum has grown in the window before a time. None if nobody looked around its beginning, and it may have grown before
        or behind it."""
        since, value = time - window, sums.get(name, 0)
        samples = [*self.samples.get(pipeline, ()), Sample(first=time, last=time, sums=sums)]
        before = [sample for sample in samples if sample.first <= since]
        if not before:
            return None
        earlier = before[-1].sums.get(name, 0)
        after = samples[len(before)]
        gap, later = after.first - before[-1].last, after.sums.get(name, 0)
        if before[-1].last < since and earlier != later:
            if gap > max(_LARGEST_GAP, window):
                return None
            earlier += (later - earlier) * (since - before[-1].last) / gap
        return value - earlier if value >= earlier else value  # a table that was made anew begins with nothing


@contextmanager
def turn(environment: str) -> Iterator[tuple[Memory, Path] | None]:
    """The memory of an environment and its file, while no other process judges; None if one does."""
    file = private(FOLDER) / f"{environment}.json"
    with lock_file(home() / FOLDER / f"{environment}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield loaded(file), file


def loaded(file: Path) -> Memory:
    """The memory in a file. One that cannot be read is empty: then what lasts is told once more."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        written = json.loads(read(file))
        return Memory(
            incidents={alert: [TableIncident(**each) for each in of_alert] for alert, of_alert in written["incidents"].items()},
            samples={pipeline: [Sample(**each) for each in of_table] for pipeline, of_table in written["samples"].items()},
            lasting=dict(written["lasting"]),
        )
    return Memory()


def save(memory: Memory, file: Path) -> None:
    """Saves the memory, unless the file says the same already."""
    content: dict[str, Any] = asdict(memory)
    text = json.dumps(content)
    with suppress(OSError, ValueError):
        if read(file) == text:
            return
    put(file, text)
