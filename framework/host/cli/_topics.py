"""Functions for the commands about topics."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from framework.base.errors import SluiceError

if TYPE_CHECKING:
    from framework.plan import Plan, Topic


def topic(plan: Plan, name: str, filled: bool = False) -> Topic:
    """The topic of this name in the specs, or else the one with this name in Kafka; with `filled`, also one that only `also` names."""
    topics = (*plan.topics, *filled_topics(plan)) if filled else plan.topics
    matches = [topic for topic in topics if topic.name == name] + [topic for topic in topics if topic.kafka_name == name]
    if matches:
        return matches[0]
    from framework.base.spelling import did_you_mean, the_names

    for only_filled in filled_topics(plan):
        if only_filled.name == name:
            feeder_names = ", ".join(f"`{feeder}`" for feeder in feeders(plan, only_filled))
            message = f"the topic `{name}` is filled by `also` of {feeder_names}, and the specs have no document `topic: {name}`"
            raise SluiceError("unknown-topic", message, f"`sluice peek {name}` shows its messages; add that document to do more")
    topic_names = [topic.name for topic in topics]
    fallback = the_names("topic", topic_names) if topic_names else "write one, which begins with `topic: NAME`"
    hint = did_you_mean(name, [*topic_names, *(topic.kafka_name for topic in topics)], fallback)
    raise SluiceError("unknown-topic", f"there is no topic `{name}`", hint)


def refuse_partition(topic: Topic, partition: int, partitions: Collection[int]) -> None:
    if partition not in partitions:
        range_text = "one partition, 0" if len(partitions) == 1 else f"{len(partitions):,} partitions, 0 to {max(partitions)}"
        raise SluiceError("no-partition", f"{topic.kafka_name} has no partition {partition}", f"it has {range_text}")


def filled_topics(plan: Plan) -> tuple[Topic, ...]:
    """The topics to which `also` sends rows and that are no topics of the specs."""
    spec_places = {(topic.cluster, topic.kafka_name) for topic in plan.topics}
    followers = (follower for pipeline in plan.pipelines for follower in pipeline.also)
    sent = {follower.sends_to: follower.topic for follower in followers if follower.sends_to and follower.topic}
    return tuple(topic for place, topic in sent.items() if place not in spec_places)


def feeders(plan: Plan, topic: Topic) -> list[str]:
    """The names of the pipelines whose `also` sends rows to a topic."""
    place = (topic.cluster, topic.kafka_name)
    return [pipeline.name for pipeline in plan.pipelines if any(follower.sends_to == place for follower in pipeline.also)]


def readers(plan: Plan, topic: Topic) -> list[str]:
    """The names of the pipelines that read a topic."""
    return [pipeline.name for pipeline in plan.pipelines if any(topic.name == read.name for read in pipeline.topics)]
