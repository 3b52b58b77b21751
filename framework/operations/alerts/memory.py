"""The memory of alerts, a file of this machine below `.sluice/alerts/`: incidents, who was told of them, and numbers of the past.

*Guarantee* One process at a time judges the alerts of an environment. What was told is kept before the next one is told anything.
*Limit* Only processes that use the same `.sluice` folder share it: alerts of one environment are judged on one machine. Where files cannot
be locked, two that judge at once may both tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from framework.base.home import home, private, put, read, turn as turn_of
from framework.base.pauses import note_failure, rests

FOLDER = "alerts"
_STEPS = 30  # samples of a window, however long it is
_LEAST = 5.0  # seconds between two samples
_LARGEST_GAP = 120.0  # seconds in which a sum is taken to grow evenly
_FORGOTTEN = 86400.0  # seconds in which nobody has judged it
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 600.0  # seconds before a notice is tried again that could not be sent


@dataclass(kw_only=True)
class TableIncident:
    """A table for which an alert holds, or held. `judged`: when somebody looked last. `told`: by a notice's id, when it was told last that
    it lasts. `over`: when it ended; `over_told`: the notices that were told so."""

    pipeline: str
    table: str
    since: float
    judged: float
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
    """All that is known of an environment's alerts. `lasting`: since when something has held, and when that was asked last. `pauses`: by a
    notice's id, until when it is not tried again, and how often it failed in a row."""

    incidents: dict[str, list[TableIncident]] = field(default_factory=dict)  # by alert
    samples: dict[str, list[Sample]] = field(default_factory=dict)  # by pipeline
    lasting: dict[str, tuple[float, float]] = field(default_factory=dict)
    pauses: dict[str, tuple[float, int]] = field(default_factory=dict)

    def open(self, alert: str, pipeline: str) -> TableIncident | None:
        """The incident of a table that is not over."""
        of_table = (incident for incident in self.incidents.get(alert, ()) if incident.pipeline == pipeline)
        return next((incident for incident in of_table if incident.over is None), None)

    def lasted(self, name: str, holds: bool, time: float) -> float:
        """The seconds for which something has held."""
        if not holds:
            self.lasting.pop(name, None)
            return 0.0
        since, _ = self.lasting.get(name, (time, time))
        self.lasting[name] = since, time
        return time - since

    def failed(self, notice: str, time: float) -> None:
        """Notes that a notice could not be sent: it rests, each time for longer."""
        note_failure(self.pauses, notice, time, _FIRST_PAUSE, _LONGEST_PAUSE)

    def rests(self, notice: str, time: float) -> bool:
        """Whether a notice that could not be sent is not tried again yet."""
        return rests(self.pauses, notice, time, _LONGEST_PAUSE)

    def note(self, pipeline: str, sums: Mapping[str, float], time: float, window: float) -> None:
        """Notes the sums of a pipeline's table. Samples are the rarer the older they are: each window has enough of them."""
        samples = self.samples.setdefault(pipeline, [])
        if samples and time < samples[-1].last:  # the clock went back
            samples.clear()
        if samples and samples[-1].sums == sums and time - samples[-1].last <= _LARGEST_GAP:
            samples[-1].last = time
        elif not samples or time - samples[-1].last >= _LEAST:
            samples.append(Sample(first=time, last=time, sums=dict(sums)))
        while len(samples) > 1 and samples[1].first <= time - window:
            del samples[0]
        kept = samples[:1]
        for sample in samples[1:]:
            if sample is samples[-1] or sample.last - kept[-1].last >= (time - sample.last) / _STEPS:
                kept.append(sample)
        samples[:] = kept

    def forget(self, time: float) -> None:
        """Forgets what nobody has asked for in a day, and what alerts that are gone have left."""
        self.lasting = {name: times for name, times in self.lasting.items() if time - times[1] < _FORGOTTEN}
        self.pauses = {notice: pause for notice, pause in self.pauses.items() if time - pause[0] < _FORGOTTEN}
        self.samples = {name: samples for name, samples in self.samples.items() if time - samples[-1].last < 8 * _FORGOTTEN}
        for alert, incidents in list(self.incidents.items()):
            self.incidents[alert] = [incident for incident in incidents if time - incident.judged < 8 * _FORGOTTEN]
            if not self.incidents[alert]:
                del self.incidents[alert]

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
        return value - earlier if value >= earlier else value  # a table that was dropped and created again begins with nothing


def is_stale(incident: TableIncident, time: float) -> bool:
    """Whether nobody has judged an incident for a day: of what became of it nobody knows."""
    return time - incident.judged >= _FORGOTTEN


@contextmanager
def turn(environment: str, patience: float = 0.0) -> Iterator[tuple[Memory, Path] | None]:
    """The memory of an environment and its file, while no other process judges; None if one does for longer than `patience`."""
    file = private(FOLDER) / f"{environment}.json"
    with turn_of(home() / FOLDER / f"{environment}.lock", patience) as is_mine:
        yield (loaded(file), file) if is_mine else None


def loaded(file: Path) -> Memory:
    """The memory in a file. One that cannot be read is empty: then what lasts is told once more."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        written = json.loads(read(file))
        return Memory(
            incidents={alert: [TableIncident(**each) for each in of_alert] for alert, of_alert in written["incidents"].items()},
            samples={pipeline: [Sample(**each) for each in of_table] for pipeline, of_table in written["samples"].items()},
            lasting={name: (since, asked) for name, (since, asked) in written["lasting"].items()},
            pauses={notice: (until, failures) for notice, (until, failures) in written["pauses"].items()},
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
