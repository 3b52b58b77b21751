"""Prometheus: the metrics of `framework/operations/metrics` as it reads them, and rules and a dashboard of the same declarations."""
