"""The topics that `sluice topics delete` deletes, their messages, and what each pipeline that reads or fills one loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from framework.base.amounts import counted
from framework.base.errors import SluiceError
from framework.host.cli import _topics

if TYPE_CHECKING:
    from framework.core.kafka.topics import Listed
    from framework.operations.observe.progress import PipelineProgress
    from framework.plan import Plan, Topic


@dataclass(frozen=True)
class Deletion:
    """A topic that Kafka has, and the pipelines that need it."""

    listed: Listed
    readers: Mapping[str, PipelineProgress]
    feeders: tuple[str, ...]

    @property
    def topic(self) -> Topic:
        return self.listed.topic

    def lines(self) -> Iterator[str]:
        """Lines about the messages that are lost."""
        topic = self.topic
        yield f"topic {topic.kafka_name} at {topic.cluster.bootstrap}: {self._messages()}"
        for name, progress in self.readers.items():
            yield f"  {name} reads it: {self._unread(progress)}; its rows stay, and its next run is refused until `sluice accept {name}`"
        for name in self.feeders:
            yield f"  {name} fills it: rows that were sent are not sent again to a topic that is created later"

    def refusal(self) -> SluiceError | None:
        """The reason to delete the topic only by force; None if no pipeline needs it."""
        if not self.readers and not self.feeders:
            return None
        uses = [f"`{name}` reads it, {self._unread(progress)}" for name, progress in self.readers.items()]
        uses += [f"`{name}` fills it" for name in self.feeders]
        hint = f"`sluice topics delete {self.topic.name} --force` deletes it all the same; or remove what needs it from the specs"
        return SluiceError("topic-is-used", f"the topic {self.topic.kafka_name} has {self._messages()}: {'; '.join(uses)}", hint)

    def _messages(self) -> str:
        count = self.listed.messages
        number = "an unknown number of messages" if count is None else counted(count, "message")
        number = f"up to {number}" if self.feeders and count else number  # ends of transactions are counted, too
        return f"{number} in {counted(len(self.listed.partitions or ()), 'partition')}"

    def _unread(self, progress: PipelineProgress) -> str:
        """The number of the topic's messages that the pipeline has not loaded, in words."""
        prefix = f"{self.topic.kafka_name}/"
        waiting = [offsets.waiting for offsets in progress.offsets if offsets.partition.startswith(prefix)]
        if waiting and progress.lag is not None:
            return f"{counted(sum(waiting), 'message')} not loaded yet"
        return "nobody can say how many messages are not loaded yet" + (f" ({progress.trouble.code})" if progress.trouble else "")


def find(plan: Plan, names: Sequence[str]) -> tuple[list[Deletion], list[Topic]]:
    """The topics of these names, and those of them that Kafka does not have."""
    from framework.core.kafka.topics import listed
    from framework.operations.observe.progress import read_progress

    topics = list({topic.kafka_name: topic for topic in (_topics.topic(plan, name, filled=True) for name in names)}.values())
    deletions, missing_topics = [], []
    for topic in topics:
        (kafka_topic,) = listed(topic.cluster, plan.secrets, [topic])
        if kafka_topic.partitions is None:
            missing_topics.append(topic)
            continue
        reading_pipelines = [pipeline for pipeline in plan.pipelines if pipeline.name in _topics.readers(plan, topic)]
        progress = {state.pipeline: state for state in read_progress(plan, reading_pipelines)} if reading_pipelines else {}
        deletions.append(Deletion(kafka_topic, progress, tuple(_topics.feeders(plan, topic))))
    return deletions, missing_topics
