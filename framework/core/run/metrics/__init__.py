"""Metrics: the numbers of runs, one file each, from which all that shows numbers takes them: the line of a batch, Dagster's metadata and
OpenLineage's facets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from framework.base.components import components_in
from framework.core.run.events import Event

METRICS = components_in(__name__)


@dataclass(frozen=True)
class Sample:
    """A number that an event adds to a metric. `label` is the value of the metric's label, and `words` say the number in a line."""

    value: float
    label: str = ""
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of runs, summed up over their events.

    `of` gives an event's samples, none where the event says nothing of it. `place` orders those of a line. `label` names what tells the
    samples apart, such as `phase`. Dagster's name of the number is `dagster`, or the file's name; {label} stands for the label's value.
    `lineage` is its field in OpenLineage's statistics of an output.
    """

    doc: str
    unit: str
    of: Callable[[Event], Iterable[Sample]]
    place: int = 0
    label: str = ""
    dagster: str = ""
    lineage: str = ""


class Totals:
    """The sums of all metrics over events."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._sums: defaultdict[tuple[str, str], float] = defaultdict(float)
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        for name, metric in metrics().items():
            for sample in metric.of(event):
                self._sums[name, sample.label] += sample.value

    def of(self, name: str) -> int:
        """The sum of a metric that counts, over all labels."""
        return int(sum(value for (metric, _), value in self._sums.items() if metric == name))

    def named(self) -> dict[str, float]:
        """The sums by the names that Dagster has for them."""
        names = {name: metric.dagster or name for name, metric in metrics().items()}
        return {names[name].format(label=label): _rounded(value) for (name, label), value in self._sums.items()}

    def lineage(self) -> dict[str, Any]:
        """The sums by their fields in OpenLineage's statistics."""
        fields = {name: metric.lineage for name, metric in metrics().items() if metric.lineage}
        return {fields[name]: int(value) for (name, _), value in self._sums.items() if name in fields}


def metrics() -> dict[str, Metric]:
    """All metrics by their names, in the order of a line."""
    declared: dict[str, Metric] = {name: module.METRIC for name, module in METRICS.load_all().items()}
    return dict(sorted(declared.items(), key=lambda entry: entry[1].place))


def in_words(event: Event) -> Iterator[str]:
    """Says an event in numbers."""
    for metric in metrics().values():
        yield from (sample.words for sample in metric.of(event) if sample.words)


def _rounded(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)
