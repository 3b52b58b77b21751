"""A dashboard for Grafana, of the same declarations as the metrics: a graph for each, for the tables that are chosen above."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from framework.host.prometheus.families import TABLE, labels_of, sample_name
from framework.host.prometheus.rules import recorded
from framework.operations.metrics import BatchHistogram, BatchMetric, Metric, StreamMetric, TableMetric, TableState, of_kinds

_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3
_UNITS = {"second": "s", "byte": "bytes"}
_SOURCE = {"type": "prometheus", "uid": "${source}"}
_ROWS: tuple[tuple[str, tuple[type[Metric], ...]], ...] = (
    ("Tables", (TableMetric, TableState)),
    ("Batches", (BatchMetric, BatchHistogram)),
    ("Streams", (StreamMetric,)),
)


def text() -> str:
    """The dashboard as a file of Grafana."""
    return json.dumps(
        {
            "title": "Sluice", "uid": "sluice", "tags": ["sluice"], "schemaVersion": 39, "editable": True, "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"}, "templating": {"list": list(_variables())}, "panels": list(_panels()),
        },
        indent=1, ensure_ascii=False,
    ) + "\n"  # fmt: skip


def expression(name: str, metric: Metric) -> str:
    """The expression that a graph shows of a metric."""
    rule = recorded(name, metric)
    chosen = "" if isinstance(metric, StreamMetric) else '{table=~"$table"}'
    return f"{rule[0] if rule else sample_name(name, metric)}{chosen}"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    yield {
        "name": "table", "label": "Table", "type": "query", "datasource": _SOURCE, "includeAll": True, "multi": True, "allValue": ".*",
        "query": {"query": "label_values(sluice_state, table)", "refId": "table"}, "refresh": 2,
    }  # fmt: skip


def _panels() -> Iterator[dict[str, Any]]:
    id_, line = 0, 0
    for title, types in _ROWS:
        id_ += 1
        yield {
            "id": id_,
            "type": "row",
            "title": title,
            "gridPos": {"x": 0, "y": line, "w": _WIDTH * _COLUMNS, "h": 1},
            "panels": [],
        }
        line += 1
        chosen = of_kinds(*types)
        for index, (name, metric) in enumerate(chosen.items()):
            id_ += 1
            place = {"x": index % _COLUMNS * _WIDTH, "y": line + index // _COLUMNS * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield {**_panel(name, metric), "id": id_, "gridPos": place}
        line += -(-len(chosen) // _COLUMNS) * _HEIGHT


def _panel(name: str, metric: Metric) -> dict[str, Any]:
    labels = [label for label in labels_of(metric) if label not in TABLE[:1]] or ["instance"]
    unit = _UNITS.get(metric.unit, "short")
    title = name.replace("_", " ").capitalize()
    if isinstance(metric, BatchMetric):
        title, unit = f"{title} per second", {"bytes": "Bps", "s": "percentunit"}.get(unit, unit)
    elif isinstance(metric, BatchHistogram):
        title = f"{title}, 95 of 100 batches"
    return {
        "type": "timeseries", "title": title, "description": metric.doc, "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": "A", "datasource": _SOURCE, "expr": expression(name, metric),
                "legendFormat": " ".join(f"{{{{{label}}}}}" for label in labels),
            }
        ],
    }  # fmt: skip
