"""An outage of Kafka behind whatever Spark made of it: pages of Java, or an error of a batch that names something else."""

from __future__ import annotations

from collections.abc import Iterable

from framework.base.errors import Paused, RefusedError, SetupError, SpecError, UnreachableError
from framework.base.patience import CONNECTING
from framework.core.kafka.cluster import listens, silent
from framework.plan import Cluster, Pipeline

_TIMEOUTS = {"org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.DisconnectException"}
_NOTHING_CAME = "Cannot fetch record"  # Spark's reader says so by an exception of Java's own
_ABOUT_OTHER_THINGS = (RefusedError, UnreachableError, SetupError, SpecError, Paused)


def outage(pipeline: Pipeline, error: Exception) -> UnreachableError | None:
    """The error that Kafka does not answer, if this ended a run."""
    return outage_of([topic.cluster for topic in pipeline.topics], error)


def outage_of(asked: Iterable[Cluster], error: Exception) -> UnreachableError | None:
    """The same of work with these clusters."""
    if isinstance(error, _ABOUT_OTHER_THINGS):
        return None
    clusters = {each.name: each for each in asked}
    away = next((each for each in clusters.values() if not listens(each, CONNECTING)), None)
    if away is None and clusters and _is_timeout(error):
        away = next(iter(clusters.values()))
    return silent(away) if away else None


def _is_timeout(error: Exception) -> bool:
    from framework.core.spark.java_errors import java_classes, text

    return not _TIMEOUTS.isdisjoint(java_classes(error)) or _NOTHING_CAME in text(error)
