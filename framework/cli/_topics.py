"""Functions for the commands about topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from framework.errors import SluiceError

if TYPE_CHECKING:
    from framework.model import Plan, Topic


def topic(plan: Plan, name: str) -> Topic:
    """The topic of this name in the specs, or else the one with this name in Kafka."""
    called = [topic for topic in plan.topics if topic.name == name] + [topic for topic in plan.topics if topic.kafka_name == name]
    if called:
        return called[0]
    from framework.spelling import did_you_mean, listed

    topic_names = [topic.name for topic in plan.topics]
    there = f"there is {listed(topic_names)}" if topic_names else "write one, which begins with `topic: NAME`"
    meant = did_you_mean(name, [*topic_names, *(topic.kafka_name for topic in plan.topics)], there)
    raise SluiceError("unknown-topic", f"there is no topic `{name}`", meant)


def refuse_partition(topic: Topic, partition: int, partitions: Collection[int]) -> None:
    if partition not in partitions:
        has = "one partition, 0" if len(partitions) == 1 else f"{len(partitions):,} partitions, 0 to {max(partitions)}"
        raise SluiceError("no-partition", f"{topic.kafka_name} has no partition {partition}", f"it has {has}")


def feeders(plan: Plan, topic: Topic) -> list[str]:
    """The names of the pipelines whose `also` sends rows to a topic."""
    place = (topic.cluster, topic.kafka_name)
    return [pipeline.name for pipeline in plan.pipelines if any(follower.sends_to == place for follower in pipeline.also)]


def readers(plan: Plan, topic: Topic) -> list[str]:
    """The names of the pipelines that read a topic."""
    return [pipeline.name for pipeline in plan.pipelines if any(topic.name == read.name for read in pipeline.topics)]
