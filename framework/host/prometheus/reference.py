"""The page `docs/metrics.md`: all metrics, made of their declarations."""

from __future__ import annotations

from collections.abc import Iterator

from framework.host.prometheus.families import labels_of, sample_name
from framework.operations.metrics import (
    BatchHistogram,
    BatchMetric,
    Metric,
    StreamMetric,
    TableMetric,
    TableState,
    metrics,
    of_kinds,
)
from framework.operations.reference.options import table

_PARTS: tuple[tuple[str, str, tuple[type[Metric], ...]], ...] = (
    (
        "Tables as they are now",
        "Read from the catalog and from Kafka at the moment when somebody asks. What is unknown has no sample.",
        (TableMetric, TableState),
    ),
    (
        "Sums over all batches of a table",
        "They only grow, and are kept in the table itself (the property `sluice.work`): the commit of a batch adds to them, so each batch\n"
        "counts once, whoever publishes it and whatever dies when. A rollback takes nothing back. In Dagster and in OpenLineage they are\n"
        "those of one run.",
        (BatchMetric, BatchHistogram),
    ),
    ("Streams", "Of the process of `sluice stream`, which answers for itself.", (StreamMetric,)),
)
_HEAD = """\
# Metrics

This page is made of the declarations in `framework/operations/metrics/`, one file each. From the same declarations follow Prometheus'
`/metrics`, its rules, the dashboard, `metrics` in `sluice status --json`, what Dagster plots on a table's page, and OpenLineage's facet
`sluice_metrics`. How to watch with them: [Watch tables with Prometheus](howto/prometheus.md).

All metrics of tables have the labels `pipeline` and `table`. In JSON and in OpenLineage a metric's name is without `sluice_`, `_total` and
`_bucket`; one with a label of its own is an object by the label's values."""


def page() -> str:
    """The page as a text."""
    return "\n\n".join((_HEAD, *_parts(), *_rules())) + "\n"


def _parts() -> Iterator[str]:
    for title, about, types in _PARTS:
        yield f"## {title}"
        yield about
        yield table(
            ("in Prometheus", "what it is", "label", "in Dagster"),
            (_row(name, metric) for name, metric in of_kinds(*types).items()),
        )


def _row(name: str, metric: Metric) -> tuple[str, str, str, str]:
    own = metric.label if metric.label in labels_of(metric) else "le" if isinstance(metric, BatchHistogram) else ""
    is_here_alone = isinstance(metric, StreamMetric) or (isinstance(metric, TableMetric) and metric.by_looks)
    in_dagster = "" if is_here_alone else f"`{metric.dagster or name}`"
    doc = (
        f"{metric.doc} One of {', '.join(f'`{word}`' for word in metric.words)}."
        if isinstance(metric, TableState)
        else metric.doc
    )
    return f"`{sample_name(name, metric)}`", doc, f"`{own}`" if own else "", in_dagster


def _rules() -> Iterator[str]:
    yield "## Alerts"
    yield "Of the rules that `sluice metrics --rules` prints, also in [deploy/prometheus](../deploy/prometheus/sluice.rules.yml)."
    alerts = ((alert, name, metric) for name, metric in metrics().items() for alert in metric.alerts)
    rows = ((f"`{alert.name}`", alert.severity, alert.lasts, f"`{sample_name(name, metric)}`") for alert, name, metric in alerts)
    yield table(("alert", "severity", "once it has lasted", "of"), rows)
