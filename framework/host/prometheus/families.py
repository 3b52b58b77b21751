"""The metrics in the words of Prometheus: a family of samples for each declaration.

*Limit* A label has a value for each table, partition, follower, code or expectation of the specs, none for what messages say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from framework.core.rules.work import ENDLESS, Work
from framework.operations.metrics import (
    BatchHistogram,
    BatchMetric,
    Metric,
    Sample,
    StreamMetric,
    StreamNow,
    TableMetric,
    TableState,
    metrics,
)
from framework.operations.observe.status import Status

PREFIX = "sluice_"
TABLE = ("pipeline", "table")  # the labels of all metrics of tables
_UNITS = {"second": "seconds", "byte": "bytes"}


def families(statuses: Sequence[Status], stream: StreamNow | None = None) -> Iterator[Family]:
    """All metrics of tables, and of a stream that is asked about itself."""
    works = [(_table(status), status.work) for status in statuses]
    for name, metric in metrics().items():
        match metric:
            case BatchMetric():
                samples = ((labels, sample) for labels, done in works if done is not None for sample in metric.of(done))
                yield _filled(CounterMetricFamily(*_named(name, metric), labels=labels_of(metric)), metric, samples)
            case BatchHistogram():
                yield _histogram(name, metric, works)
            case TableMetric():
                samples = ((_table(status), sample) for status in statuses for sample in metric.of(status))
                yield _filled(_gauge(name, metric), metric, samples)
            case TableState():
                yield _states(name, metric, statuses)
            case StreamMetric() if stream is not None:
                yield _filled(_gauge(name, metric), metric, (((), sample) for sample in metric.of(stream)))


def labels_of(metric: Metric) -> tuple[str, ...]:
    """The labels of a metric's samples."""
    own = () if isinstance(metric, StreamMetric) else TABLE
    return (*own, metric.label) if metric.label and not isinstance(metric, BatchHistogram) else own


def sample_name(name: str, metric: Metric) -> str:
    """The name by which a rule or a graph asks for a metric."""
    suffix = {BatchMetric: "_total", BatchHistogram: "_bucket"}.get(type(metric), "")
    return f"{PREFIX}{name}{suffix}"


def _table(status: Status) -> tuple[str, ...]:
    return (status.pipeline.name, status.pipeline.table.identifier)


def _named(name: str, metric: Metric) -> tuple[str, str]:
    return f"{PREFIX}{name}", metric.doc


def _gauge(name: str, metric: Metric) -> GaugeMetricFamily:
    unit = _UNITS.get(metric.unit, "") if name.endswith(f"_{_UNITS.get(metric.unit)}") else ""
    return GaugeMetricFamily(*_named(name, metric), labels=labels_of(metric), unit=unit)


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily, metric: Metric, samples: Iterable[tuple[tuple[str, ...], Sample]]
) -> Family:
    for labels, sample in samples:
        family.add_metric([*labels, sample.label] if metric.label else list(labels), sample.value)
    return family


def _histogram(name: str, metric: BatchHistogram, works: Iterable[tuple[tuple[str, ...], Work | None]]) -> Family:
    family = HistogramMetricFamily(*_named(name, metric), labels=labels_of(metric), unit=_UNITS.get(metric.unit, ""))
    for labels, done in works:
        if done is not None:
            counts = {sample.label: sample.value for sample in metric.of(done)}
            buckets, below = list[tuple[str, float]](), 0.0
            for bound in (*map(str, metric.bounds), ENDLESS):
                below += counts.get(bound, 0)
                buckets.append((bound, below))
            family.add_metric(labels, buckets, metric.total(done))
    return family


def _states(name: str, metric: TableState, statuses: Iterable[Status]) -> Family:
    family = GaugeMetricFamily(*_named(name, metric), labels=labels_of(metric))
    for status in statuses:
        current = metric.of(status)
        for word in metric.words:
            family.add_metric([*_table(status), word], float(word == current))
    return family
