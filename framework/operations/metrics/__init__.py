"""Metrics: the numbers of tables, of their batches and of streams, one file each. From these declarations follow the lines of batches,
Prometheus, `sluice status --json`, Dagster's metadata, OpenLineage's facets and `docs/metrics.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from framework.base.components import components_in
from framework.core.rules.work import Work
from framework.operations.observe.status import Status

if TYPE_CHECKING:
    from framework.core.publish.batch import Batch
    from framework.core.stream.health import Health

METRICS = components_in(__name__)
Value: TypeAlias = float | str | Mapping[str, float]
"""The value of a metric: a number, a word, or numbers by its label."""
Severity: TypeAlias = Literal["critical", "warning"]


@dataclass(frozen=True)
class Sample:
    """A number of a metric. `label` is the value of the metric's label."""

    value: float
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class AlertRule:
    """A rule by which Prometheus warns. `when` is its condition, in which `{metric}` is the name of the metric's samples; `lasts`: for how
    long it must hold. `says` is read by a person, with the labels of the samples in `{{ … }}`."""

    name: str
    when: str
    lasts: str = "0m"
    severity: Severity
    says: str


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that is shown. `label` names what tells its samples apart, such as `phase`. Dagster's name of it is `dagster`, or the
    file's name; `{label}` stands for the label's value, and without that Dagster has the sum."""

    doc: str
    unit: str = ""
    label: str = ""
    dagster: str = ""
    alerts: tuple[AlertRule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BatchMetric(Metric):
    """A sum over all batches of a table, which only grows. `words` says it in the line of a batch, in which it has a `place`. `lineage` is
    its field in OpenLineage's statistics of an output."""

    of: Callable[[Work], Iterable[Sample]]
    words: Callable[[Work], Iterable[str]] = lambda _: ()
    place: int = 0
    lineage: str = ""


@dataclass(frozen=True, kw_only=True)
class BatchHistogram(Metric):
    """How many batches have a number up to each of `bounds`. `of` gives the samples by the least bound that is not exceeded, and
    `total` the sum of the number over all batches."""

    of: Callable[[Work], Iterable[Sample]]
    total: Callable[[Work], float]
    bounds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class TableMetric(Metric):
    """A number of a table as it is now. Without samples it is unknown, or the table has none. `by_looks`: only a process that looks again
    and again knows it, such as one that answers Prometheus."""

    of: Callable[[Status], Iterable[Sample]]
    by_looks: bool = False


@dataclass(frozen=True, kw_only=True)
class TableState(Metric):
    """One word of several that says how a table is."""

    of: Callable[[Status], str]
    words: tuple[str, ...]


@dataclass(frozen=True)
class StreamNow:
    """A stream as it is now. `memory` are the bytes that its Java uses, and the most that it may use; None before Spark has started."""

    health: Health
    memory: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True)
class StreamMetric(Metric):
    """A number of the process of `sluice stream`."""

    of: Callable[[StreamNow], Iterable[Sample]]


_LAST = 100
_Kind = TypeVar("_Kind", bound=Metric)


def metrics() -> dict[str, Metric]:
    """All metrics by their names."""
    return of_kinds(Metric)


def of_kinds(*kinds: type[_Kind]) -> dict[str, _Kind]:
    """The metrics of these kinds by their names."""
    every = ((name, module.METRIC) for name, module in METRICS.load_all().items())
    return {name: metric for name, metric in every if isinstance(metric, kinds)}


def in_words(batch: Batch) -> Iterator[str]:
    """Says a batch in numbers."""
    for metric in sorted(of_kinds(BatchMetric).values(), key=_rank):
        yield from metric.words(batch.work)
    if still_bad := batch.bad - sum(batch.work.bad.values()):  # of a replay: they were counted when they were read first
        yield f"{still_bad:,} still bad"
    yield from (warning.words for warning in batch.warnings)


def values_of_work(work: Work) -> dict[str, Value]:
    """The values of the metrics of batches, by their names, what people ask for first."""
    values: dict[str, Value] = {}
    for name, metric in sorted(of_kinds(BatchMetric, BatchHistogram).items(), key=lambda item: _rank(item[1])):
        match metric:
            case BatchMetric() if samples := tuple(metric.of(work)):
                values[name] = _value(metric, samples)
            case BatchHistogram():
                values[name] = {sample.label: sample.value for sample in metric.of(work)} | {"total": metric.total(work)}
    return values


def _rank(metric: Metric) -> int:
    """The place of a metric among others: those that the line of a batch says come first, in its order."""
    return metric.place if isinstance(metric, BatchMetric) and metric.place else _LAST


def values_of_table(status: Status) -> dict[str, Value]:
    """The values of the metrics of a table as it is now, by their names."""
    values: dict[str, Value] = {}
    for name, metric in metrics().items():
        match metric:
            case TableMetric() if samples := tuple(metric.of(status)):
                values[name] = _value(metric, samples)
            case TableState():
                values[name] = metric.of(status)
    return values


def values_for_dagster(values: Mapping[str, Value]) -> dict[str, float | str]:
    """Values by the names that Dagster has for them."""
    declared, named = metrics(), dict[str, float | str]()
    for name, value in values.items():
        metric = declared[name]
        title = metric.dagster or name
        if isinstance(metric, BatchHistogram) and isinstance(value, Mapping):
            named[title] = value["total"]
        elif isinstance(value, Mapping) and "{label}" in title:
            named |= {title.format(label=label): number for label, number in value.items()}
        else:
            named[title] = sum(value.values()) if isinstance(value, Mapping) else value
    return {name: _rounded(value) for name, value in named.items()}


def lineage_of_work(work: Work) -> dict[str, int]:
    """The sums of batches by their fields in OpenLineage's statistics."""
    of_lineage = (metric for metric in of_kinds(BatchMetric).values() if metric.lineage)
    return {metric.lineage: int(sum(sample.value for sample in metric.of(work))) for metric in of_lineage}


def _value(metric: Metric, samples: Iterable[Sample]) -> Value:
    if metric.label:
        return {sample.label: sample.value for sample in samples}
    return sum(sample.value for sample in samples)


def _rounded(value: float | str) -> float | str:
    return value if isinstance(value, str) else int(value) if value == int(value) else round(value, 3)
