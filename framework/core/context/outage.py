"""Recognizes an outage of Kafka behind Spark's errors: pages of Java, or an error of a batch that names something else."""

from __future__ import annotations

from collections.abc import Iterable

from framework.base.errors import Paused, RefusedError, SetupError, SpecError, UnreachableError
from framework.base.patience import CONNECTING
from framework.core.kafka.cluster import listens, silent
from framework.plan import Cluster, Pipeline

_TIMEOUTS = {"org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.DisconnectException"}
_ABOUT_OTHER_THINGS = (RefusedError, UnreachableError, SetupError, SpecError, Paused)


def outage(pipeline: Pipeline, error: Exception) -> UnreachableError | None:
    """The error that Kafka does not answer, if that ended a run of the pipeline."""
    return outage_of([topic.cluster for topic in pipeline.topics], error)


def outage_of(clusters: Iterable[Cluster], error: Exception) -> UnreachableError | None:
    """The error that Kafka does not answer, if that ended work with one of these clusters."""
    if isinstance(error, _ABOUT_OTHER_THINGS):
        return None
    clusters_by_name = {cluster.name: cluster for cluster in clusters}
    silent_cluster = next((cluster for cluster in clusters_by_name.values() if not listens(cluster, CONNECTING)), None)
    if silent_cluster is None and clusters_by_name and _is_timeout(error):
        silent_cluster = next(iter(clusters_by_name.values()))
    return silent(silent_cluster) if silent_cluster else None


def _is_timeout(error: Exception) -> bool:
    from framework.core.spark.java_errors import java_classes

    return not _TIMEOUTS.isdisjoint(java_classes(error))
