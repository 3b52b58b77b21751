"""The options of a run that is started from the launchpad."""

# Without `from __future__ import annotations`: Dagster reads the types of a step's configuration.
from collections.abc import Mapping, Sequence
from datetime import datetime

from dagster import Config
from pydantic import Field

from framework.base.errors import SluiceError
from framework.plan import Pipeline


class Launch(Config):
    """The options of one run."""

    until: str | None = Field(None, description="Read no further than this Kafka timestamp, such as 2026-01-05T10:00:00Z.")
    until_offsets: dict[str, int] = Field(
        {}, description="Read no further than these offsets, by topic/partition: {trades/0: 500}."
    )


def until(pipeline: Pipeline, config: Launch) -> datetime | Mapping[str, int] | None:
    """The time or the offsets at which the run stops reading."""
    topics = [topic.kafka_name for topic in pipeline.topics]
    if config.until and config.until_offsets:
        raise SluiceError("bad-limit", "there are both `until` and `until_offsets`", "leave one of them out")
    unknown = [partition for partition in config.until_offsets if not _is_partition(partition, topics)]
    if unknown or (config.until and not topics):
        message = f"`{unknown[0]}` is no partition that {pipeline.name} reads" if unknown else f"{pipeline.name} reads no topic"
        hint = f"write a topic, / and a number, such as {topics[0]}/0" if topics else "leave `until` out"
        raise SluiceError("bad-limit", message, hint)
    negative = [f"{partition}: {offset}" for partition, offset in config.until_offsets.items() if offset < 0]
    if negative:
        raise SluiceError("bad-limit", f"`{negative[0]}` is not an offset", "offsets begin at 0")
    if config.until is None:
        return config.until_offsets or None
    from framework.language.scalars import read_time

    try:
        return read_time(config.until)
    except ValueError:
        raise SluiceError("bad-time", f"`until: {config.until}` is not a time", "write it as 2026-01-05T10:00:00Z") from None


def _is_partition(partition: str, topics: Sequence[str]) -> bool:
    topic, _, number = partition.rpartition("/")
    return topic in topics and number.isdecimal() and number == str(int(number))
