"""Side tables of a pipeline. Each batch appends to them, and its rows are published after the batch's commit."""

from __future__ import annotations

from dataclasses import dataclass

from framework.base.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, Array, Field, Struct
from framework.plan.topic import Column


@dataclass(frozen=True)
class SideTable:
    """A side table. Its first column is `batch`, the number of the batch that appended the row."""

    identifier: str
    columns: tuple[Column, ...]


OPEN, REPLAYED, DISCARDED = "open", "replayed", "discarded"  # states of a bad row
LOST_BYTES = "; Kafka compacted the message before its bytes were kept"  # the end of such a bad row's message
_HEADERS = Array(Struct((Field("key", STRING), Field("value", BINARY))))
WAITS = "waits"
"""The code of a row that waits: the row of another table with which it is joined may still come."""
BAD_ROW_COLUMNS = (
    Column("batch", INT, "The batch that found it"),
    Column("stage", STRING, "Where it failed: value, key, headers, or the step"),
    Column("code", STRING, "What is wrong, as a code"),
    Column("message", STRING, "What is wrong, in words"),
    Column("item", STRING, "Which row of the message, counted from 1, where a list was taken apart; else null"),
    Column("topic", STRING, "Kafka topic"),
    Column("partition", INT, "Kafka partition"),
    Column("offset", BIGINT, "Kafka offset"),
    Column("timestamp", TIMESTAMP, "Kafka timestamp"),
    Column("headers", _HEADERS, "Kafka headers"),
    Column("schema_id", INT, "The id of the message's schema in the registry"),
    Column("key", BINARY, "The message's key, as it is"),
    Column("value", BINARY, "The message's value, as it is"),
    Column("state", STRING, "open, replayed: its rows are in the table since, or discarded; null is open"),
    Column("replayed_in", INT, "The batch that last tried it again, by `sluice replay`"),
)
