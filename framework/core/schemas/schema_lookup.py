"""Looks up schemas while pipelines run: before each batch, and for each unknown id that a message names.

Guarantee: while the registry does not answer, batches continue with the schemas loaded before, and a message with another id waits; it
becomes a bad row only if the registry answers that it has no such schema.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace

from framework.base.errors import BatchError, SpecError, UnreachableError
from framework.base.patience import REGISTRY, REGISTRY_FOR_BATCH
from framework.messages.encoding.confluent_frame import ALL
from framework.messages.registry.client import Registry
from framework.plan import Pipeline, Plan, PlannedSubject, Topic
from framework.plan.schema import Schema

_ABSENT_FOR = 60.0  # seconds until an id that the registry does not have is asked for again
_MOST_IDS = 1000  # the most ids that a batch asks for; messages that name more are not of this registry


class UnknownSchemas(Exception):
    """Messages name schemas that are not loaded yet."""

    def __init__(self, ids: frozenset[int]) -> None:
        super().__init__()
        self.ids = ids


@dataclass
class LiveSchemas:
    """The schemas of one process, for all of its threads, one at a time. `also` has schemas outside the topic's subject, by topic and id;
    None: the registry has none. `patience`: seconds for a registry without which no batch can be; `rest`: seconds for which the answer
    holds that a subject has no other schemas."""

    plan: Plan
    also: dict[str, dict[int, Schema | None]] = field(default_factory=dict)
    _: KW_ONLY
    patience: float = REGISTRY_FOR_BATCH
    rest: float = 0.0
    _unmoved: dict[tuple[str, str, tuple[int, ...]], float] = field(
        default_factory=dict
    )  # since when; by cluster, subject and versions
    _absent: dict[tuple[str, int], float] = field(default_factory=dict)
    _registries: dict[str, Registry] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def current(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the registry's current schemas, planned again if these have changed."""
        if not any(topic.registered for topic in pipeline.topics):
            return pipeline
        with self._lock:
            return self._current(pipeline)

    def _current(self, pipeline: Pipeline) -> Pipeline:
        pipeline = _aimed(self.plan.pipeline(pipeline.name) or pipeline, pipeline)
        # A list: each subject is asked for, even after one that moved.
        moves = [self._moved(topic, registered) for topic in pipeline.topics for registered in topic.registered]
        if any(moves) or self._forget():
            pipeline = self._replanned(pipeline)
        for registered in (registered for topic in pipeline.topics for registered in topic.registered):
            if registered.trouble and not registered.numbers:
                raise registered.trouble
        return pipeline

    def learn(self, pipeline: Pipeline, ids: Iterable[int]) -> Pipeline:
        """The pipeline, planned again with the schemas of these ids, which messages name."""
        with self._lock:
            return self._learned(pipeline, ids)

    def _learned(self, pipeline: Pipeline, ids: Iterable[int]) -> Pipeline:
        sorted_ids = sorted(ids)
        for topic in pipeline.topics:
            registry = self._registry(topic, self.patience)
            schemas = self.also.setdefault(topic.name, {})
            for id_ in [schema_id for schema_id in sorted_ids if schemas.get(schema_id) is None][:_MOST_IDS]:
                schemas[id_] = registry.schema(id_)
                if schemas[id_] is None:
                    self._absent[topic.name, id_] = time.monotonic()
            if len(sorted_ids) > _MOST_IDS:
                schemas[ALL] = None
                self._absent[topic.name, ALL] = time.monotonic()
        return self._replanned(pipeline)

    def _moved(self, topic: Topic, registered: PlannedSubject) -> bool:
        key = (topic.cluster.name, registered.subject, registered.numbers)
        if time.monotonic() < self._unmoved.get(key, -math.inf) + self.rest:
            return False
        is_moved = self._asked(topic, registered)
        if not is_moved:
            self._unmoved[key] = time.monotonic()
        return is_moved

    def _asked(self, topic: Topic, registered: PlannedSubject) -> bool:
        try:
            numbers = self._registry(topic, REGISTRY if registered.numbers else self.patience).numbers(registered.subject)
        except UnreachableError:
            if registered.numbers:
                return False
            raise
        return numbers != registered.numbers

    def _registry(self, topic: Topic, patience: float) -> Registry:
        name = topic.cluster.name
        if name not in self._registries:
            self._registries[name] = Registry(topic.cluster, self.plan.secrets)
        self._registries[name].patience = patience
        return self._registries[name]

    def _forget(self) -> bool:
        """Forgets ids that were missing long ago: the registry may have them by now. Returns whether there were any."""
        current_time = time.monotonic()
        old_keys = [key for key, since in self._absent.items() if current_time - since > _ABSENT_FOR or key[1] == ALL]
        for topic, id_ in old_keys:
            del self._absent[topic, id_]
            self.also[topic].pop(id_, None)
        return bool(old_keys)

    def _replanned(self, pipeline: Pipeline) -> Pipeline:
        assert self.plan.again is not None
        result = self.plan.again(self.also)
        runnable = {new_pipeline.name: new_pipeline for new_pipeline in result.runnable}
        if pipeline.name not in runnable:
            hint = "`sluice check` shows the same; no message is lost: they wait until the specs or the schemas are corrected"
            message = f"the specs do not fit what the registry has now: {SpecError(result.problems)}"
            raise BatchError("specs-broken", message, hint)
        # Other pipelines keep their plans: each raises its own problems when it runs, and stops no other.
        pipelines = tuple(runnable.get(old_pipeline.name, old_pipeline) for old_pipeline in self.plan.pipelines)
        self.plan = replace(result.plan, pipelines=pipelines)
        return _aimed(runnable[pipeline.name], pipeline)


def _aimed(new_pipeline: Pipeline, pipeline: Pipeline) -> Pipeline:
    """Returns `new_pipeline` with the table of `pipeline`: a rebuild writes to a second table. Its batches are as large as those of
    `pipeline`: a stream makes them smaller."""
    table = replace(new_pipeline.table, namespace=pipeline.table.namespace, name=pipeline.table.name)
    return replace(new_pipeline, table=table, batch_rows=pipeline.batch_rows)
