"""Tells when so much waits that a batch begins before its time.

Cost: one request for offsets. The size of messages is estimated from a sample, which is taken again after some minutes.
"""

from __future__ import annotations

import time

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.kafka.backlog import message_size
from framework.core.kafka.cluster import Kafka
from framework.core.rules import protocol
from framework.plan import Pipeline

_SAMPLED = 300  # seconds that a sample is used


class WaitingSize:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._sizes: dict[str, tuple[float, float]] = {}  # of a message, and until when it is used

    def full(self, pipeline: Pipeline) -> bool:
        """Whether messages of about the size `batch: {after: …}` wait."""
        threshold = pipeline.run.after
        state = table_state.state(pipeline.table) if threshold else None
        if not threshold or state is None or state.position is None:
            return False
        source = self._context.kafka(pipeline)
        topic = source.topic_state(*pipeline.topics)
        range_ = protocol.next_range(state.position, topic, 1)
        if range_ is None or not isinstance(source, Kafka):
            return False
        size, expiry = self._sizes.get(pipeline.name, (0.0, 0.0))
        if time.monotonic() >= expiry:
            size = message_size(source, range_.starts, topic) or 0.0
            self._sizes[pipeline.name] = (size, time.monotonic() + (_SAMPLED if size else 0))
        return size * range_.waiting >= threshold
