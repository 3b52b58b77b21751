"""Topics in Dagster: how many messages they have had, how fast these come, and how far each reader lags behind.

*Cost* A topic is observed each time that the sensor of all tables looks, if something has changed since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dagster import AssetKey, AssetObservation, DagsterInstance, MetadataValue

from framework.core.rules.protocol import parted
from framework.host.assets.keys import AssetKeys
from framework.operations.observe.status import Status

_ENDS = "ends"
_LAG = "lag_of_{}"  # a pipeline


@dataclass
class _Topic:
    ends: dict[str, int] = field(default_factory=dict)  # by partition
    lags: dict[str, int] = field(default_factory=dict)  # by pipeline


def observe(instance: DagsterInstance, keys: AssetKeys, statuses: Iterable[Status]) -> None:
    """Observes the topics whose messages, or whose readers, have moved since the last time."""
    for key, (topic, time) in _topics(keys, statuses).items():
        last, last_time = _last(instance, key)
        lags = {_LAG.format(name): lag for name, lag in topic.lags.items()}
        last_ends = last.get(_ENDS) or {}
        if last_ends == topic.ends and all(last.get(name) == lag for name, lag in lags.items()):
            continue
        entries: dict[str, Any] = {"messages": sum(topic.ends.values()), **lags, _ENDS: MetadataValue.json(topic.ends)}
        if last_ends and time > last_time:
            new_messages = sum(end - last_ends.get(name, 0) for name, end in topic.ends.items())
            entries["messages_per_second"] = round(max(0.0, new_messages / (time - last_time)), 3)
        instance.report_runless_asset_event(AssetObservation(key, metadata=entries))


def _last(instance: DagsterInstance, key: AssetKey) -> tuple[Mapping[str, Any], float]:
    """The metadata of the last observation, and its time."""
    for record in instance.fetch_observations(key, limit=1).records:
        if record.asset_observation is not None:
            return {name: entry.value for name, entry in record.asset_observation.metadata.items()}, record.timestamp
    return {}, 0.0


def _topics(keys: AssetKeys, statuses: Iterable[Status]) -> Mapping[AssetKey, tuple[_Topic, float]]:
    topics: defaultdict[AssetKey, _Topic] = defaultdict(_Topic)
    times: dict[AssetKey, float] = {}
    for status in statuses:
        for topic in status.pipeline.topics:
            offsets = [each for each in status.progress.offsets if parted(each.partition)[0] == topic.kafka_name]
            if offsets:
                observed = topics[keys.topic(topic)]
                observed.ends.update({each.partition: max(each.end, observed.ends.get(each.partition, 0)) for each in offsets})
                observed.lags[status.pipeline.name] = sum(each.waiting for each in offsets)
                times[keys.topic(topic)] = status.time.timestamp()
    return {key: (topic, times[key]) for key, topic in topics.items()}
