"""The ends of many topics at once: one request a look, however many topics there are."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from framework.core.kafka.cluster import Kafka
from framework.core.rules.protocol import Partition, parted
from framework.plan import Topic

_PARTITIONS_FOR = 30.0  # seconds after which new partitions are found

Ends: TypeAlias = Mapping[str, Mapping[Partition, int]]  # by topics as Kafka calls them


class TopicEnds:
    """The ends of some topics of one cluster, with the partitions that they had a moment ago."""

    def __init__(self) -> None:
        self._partitions: tuple[Partition, ...] = ()
        self._topics: frozenset[str] = frozenset()
        self._until = 0.0
        self._kafka: Kafka | None = None

    def now(self, kafka: Kafka, topics: Iterable[Topic]) -> Ends:
        """The last stable offsets. A topic that does not exist is left out."""
        by_name = {topic.kafka_name: topic for topic in topics}
        if self._kafka is not kafka or self._topics != by_name.keys() or time.monotonic() >= self._until:
            self._partitions = kafka.partitions(by_name.values())
            self._kafka, self._topics, self._until = kafka, frozenset(by_name), time.monotonic() + _PARTITIONS_FOR
        ends: defaultdict[str, dict[Partition, int]] = defaultdict(dict)
        try:
            for partition, end in kafka.ends(self._partitions).items():
                ends[parted(partition)[0]][partition] = end
        except BaseException:
            self._until = 0.0  # a topic may be gone
            raise
        return ends
