"""The rules for Prometheus, of the same declarations as the metrics: a rate of each sum, the time of most batches, and all alerts.

A stream and `sluice metrics` may both tell of a table: their greatest number counts, not the sum.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from framework.host.prometheus.families import PREFIX, labels_of, sample_name
from framework.operations.metrics import AlertRule, BatchHistogram, BatchMetric, Metric, metrics

HEAD = """\
# Made of the declarations of the metrics by `sluice metrics --rules`: change nothing here.
"""
_RATES = "5m"
_QUANTILE = 0.95


def text() -> str:
    """The rules as a file of Prometheus."""
    groups = [("sluice-rates", list(_rates())), ("sluice-alerts", list(_alerts()))]
    lines = [HEAD + "groups:"]
    for name, rules in groups:
        lines += [f"  - name: {name}", "    rules:", *rules]
    return "\n".join(lines) + "\n"


def recorded(name: str, metric: Metric) -> tuple[str, str] | None:
    """The name of a series that Prometheus records of a metric, and its expression."""
    samples = sample_name(name, metric)
    match metric:
        case BatchMetric():
            by = ", ".join(labels_of(metric))
            return f"table:{PREFIX}{name}:rate{_RATES}", f"max by ({by}) (rate({samples}[{_RATES}]))"
        case BatchHistogram():
            by = ", ".join((*labels_of(metric), "le"))
            quantile = f"histogram_quantile({_QUANTILE}, max by ({by}) (rate({samples}[{_RATES}])))"
            return f"table:{PREFIX}{name}:p{round(_QUANTILE * 100)}", quantile
    return None


def condition(name: str, metric: Metric, alert: AlertRule) -> str:
    """An alert's expression."""
    return alert.when.replace("{metric}", sample_name(name, metric))


def _rates() -> Iterator[str]:
    for name, metric in metrics().items():
        if rule := recorded(name, metric):
            yield f"      - record: {rule[0]}\n        expr: {json.dumps(rule[1])}"


def _alerts() -> Iterator[str]:
    for name, metric in metrics().items():
        for alert in metric.alerts:
            yield "\n".join(
                (
                    f"      - alert: {alert.name}",
                    f"        expr: {json.dumps(condition(name, metric, alert))}",
                    f"        for: {alert.lasts}",
                    f"        labels: {{severity: {alert.severity}}}",
                    f"        annotations: {{summary: {json.dumps(alert.says, ensure_ascii=False)}}}",
                )
            )
