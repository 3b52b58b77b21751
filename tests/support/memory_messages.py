"""Messages that a test gives to a batch in place of Kafka, in one partition."""

from __future__ import annotations

from datetime import datetime

from framework.plan import Message


def append(
    messages: list[Message], topic: str, value: bytes | None, *, at: datetime, key: bytes | None = None, batch: int | None = None
) -> None:
    """Adds the next message, in a batch of its own where none is named."""
    number = len(messages) + 1 if batch is None else batch
    messages.append(Message(batch=number, topic=topic, partition=0, offset=len(messages), timestamp=at, key=key, value=value))
