"""Debezium's change events, however they are written: an envelope of `op`, `before`, `after` and `source`.

The columns are those of `after`, of a delete those of `before`; then `_op` and `_source_at`. Tombstones, messages of the log
(`m`) and changes of the schema are left out. A truncate (`t`) is a row in which only `_op` and `_source_at` are set.
Limit: for a value that the database did not send, a `string` column gets Debezium's `__debezium_unavailable_value`. Another
`unavailable.value.placeholder` of the connector is taken as a value.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from framework.base.types import BIGINT, BINARY, INT, STRING, TIMESTAMP, Array, Map, Type
from framework.messages.encoding import decoder
from framework.plan import ChangeFormat, Column
from framework.sql.quote import literal

OP = Column("_op", STRING, "What was done: c create, u update, d delete, r read in a snapshot, t truncate")
SOURCE_AT = Column("_source_at", TIMESTAMP, "When the database did it")
OPS = tuple("cudrtm")  # m: a message of the database's log
ENVELOPE = {"envelope": "debezium", "absent": "null"}  # of a description
NOT_ONE = "is not an envelope of Debezium with these columns"
# Without a value, or of the database's log or schema, a message is left out; one that is not an envelope is a bad row.
KEEP = f"_sluice_value IS NOT NULL AND coalesce({decoder.struct('value')}._op <> 'm', {decoder.code_sql('value')} IS NOT NULL)"
MARKER = "__debezium_unavailable_value"


def _unsent(type_: Type) -> str:
    condition = f"? IN ({', '.join(_markers(type_))})"
    if isinstance(type_, Map) and (type_.key, type_.value) == (STRING, STRING):
        condition = f"map_keys(?) = array({literal(MARKER)})"
    return "" if condition == "? IN ()" else f"coalesce({condition}, false)"


def _markers(type_: Type) -> Iterator[str]:
    """Yields SQL of Debezium's placeholders in a column of the type: the text, its bytes, a list of either or
    of its digest, or its bytes as a list of numbers."""
    if type_ == STRING:
        yield from (literal(MARKER), literal(json.dumps({MARKER: MARKER}, separators=(",", ":"))))
    elif type_ == BINARY:
        yield f"CAST({literal(MARKER)} AS BINARY)"
    elif isinstance(type_, Array) and type_.element == STRING:
        digest = uuid.UUID(bytes=hashlib.md5(MARKER.encode()).digest(), version=3)
        yield from (f"array({literal(MARKER)})", f"array('{digest}')")
    elif isinstance(type_, Array) and type_.element == BINARY:
        yield f"array(CAST({literal(MARKER)} AS BINARY))"
    elif isinstance(type_, Array) and type_.element in (INT, BIGINT):
        numbers = ", ".join(f"CAST({byte} AS {type_.element.sql})" for byte in MARKER.encode())
        yield f"array({numbers})"


def _created(row: Mapping[str, Any], moment: datetime) -> Mapping[str, Any]:
    millis = int(moment.replace(tzinfo=timezone.utc).timestamp() * 1000)
    return {"op": "c", "before": None, "after": row, "source": {"ts_ms": millis}}


CHANGES = ChangeFormat(
    op=OP, at=SOURCE_AT, writes=("c", "u", "r"), deletes=("d",), truncates=("t",), unsent=_unsent, created=_created
)  # fmt: skip
