"""Clusters that do not answer. The error of the first request is raised again at once for later ones, so that only the first waits."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from framework.base.errors import KafkaAway
from framework.core.kafka.cluster import refuse_silent
from framework.plan import Cluster, Pipeline

_FOR = 20.0  # seconds


class Outages:
    """The outages of one process, whose sensors ask at the same time."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._errors: dict[str, tuple[float, KafkaAway]] = {}

    @contextmanager
    def asking(self, pipeline: Pipeline) -> Iterator[None]:
        """A scope around requests to the cluster that the pipeline reads."""
        clusters = {topic.cluster.name: topic.cluster for topic in pipeline.topics}
        try:
            for cluster in clusters.values():
                with self._locks[cluster.name]:
                    self._refuse(cluster)
            yield
        except KafkaAway as error:
            for name in clusters:
                self._errors.setdefault(name, (time.monotonic(), error))
            raise

    def _refuse(self, cluster: Cluster) -> None:
        since, error = self._errors.get(cluster.name, (0.0, None))
        if error and time.monotonic() - since < _FOR:
            raise KafkaAway(error.code, error.message, error.hint)
        self._errors.pop(cluster.name, None)
        refuse_silent(cluster)
