"""Topics of Debezium: whether messages are its envelopes, the rows that these hold, and the columns that name a row.

Limit: of an envelope in JSON that is beside a `schema` only the `payload` is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.engine.kafka.newest_messages import Sample
from framework.init import infer
from framework.init.infer import Column
from framework.init.lines import Line, of_column, scalar, shown

MOSTLY = 0.9  # of the messages with a value
_OPS = tuple("cudrtm")  # no set: messages can have anything in its place, also what cannot be hashed
_NOT_SENT = "__debezium_unavailable_value"
_UNSENT: tuple[Any, ...] = (_NOT_SENT, [_NOT_SENT], list(_NOT_SENT.encode()))

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Changes:
    """Those of one table: its rows, and the fields of the messages' keys."""

    rows: tuple[Object, ...]
    key_fields: tuple[str, ...]


def changes(sample: Sample) -> Changes | None:
    """None where the topic has other messages, or envelopes without rows of fields, as of MongoDB."""
    values = [message.value for message in sample.messages if message.value is not None]
    envelopes = [found for value in values if (found := _envelope(value)) is not None]
    rows = tuple(_sent(row) for each in envelopes for row in _rows(each))
    if not rows or len(envelopes) < MOSTLY * len(values):
        return None
    keys = [_payload(infer.one_object(message.key)) for message in sample.messages if message.key is not None]
    fields = list(dict.fromkeys(name for key in keys if key is not None for name in key))
    whole = bool(keys) and all(key is not None and set(key) == set(fields) for key in keys)
    return Changes(rows, tuple(fields) if whole else ())


def keys(found: Changes, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns that the messages' keys name; none where they do not, or where not all of them are columns."""
    names = {column.name for column in columns}
    return found.key_fields if names.issuperset(found.key_fields) else ()


def lines(columns: Sequence[Column], out: Mapping[str, str], sample: Sample) -> Iterator[Line]:
    of = len(sample.messages)
    values = [message.value for message in sample.messages if message.value is not None]
    other = sum(_envelope(value) is None for value in values)
    tombstones = of - len(values)
    yield Line("value: debezium_json", [
        *([f"{tombstones:,} of {of:,} messages are tombstones, which are left out"] if tombstones else []),
        *([f"{other:,} of {of:,} messages are no envelopes, which makes bad rows"] if other else []),
    ])  # fmt: skip
    yield Line("# The columns are those of the table's rows; `_op` and `_source_at` come behind them.")
    yield Line("columns:")
    yield from map(of_column, columns)
    yield from (Line(f"  # {shown(name)} is left out: {why}") for name, why in out.items())


def write_options(row_keys: Sequence[str]) -> str:
    """How the table is written, as options of `into`."""
    return f", write: upsert, keys: [{', '.join(map(scalar, row_keys))}]" if row_keys else ""


def pipeline_lines(row_keys: Sequence[str]) -> Iterator[Line]:
    if not row_keys:
        yield Line("# A row for each change. One row per key: `write: upsert, keys: […]` with the columns that name a row;")
        yield Line("# the messages' keys do not say which these are.")


def _envelope(value: bytes) -> Object | None:
    found = _payload(infer.one_object(value))
    if found is None or found.get("op") not in _OPS or not isinstance(found.get("source"), dict):
        return None
    images = [found.get("before"), found.get("after")]
    return found if all(image is None or isinstance(image, dict) for image in images) else None


def _payload(found: Object | None) -> Object | None:
    """What stands beside a `schema`, or the whole."""
    if found is not None and found.keys() == {"schema", "payload"}:
        inner = found["payload"]
        return inner if isinstance(inner, dict) else None
    return found


def _rows(envelope: Object) -> Iterable[Object]:
    return [image for name in ("before", "after") if (image := envelope.get(name))]


def _sent(row: Object) -> Object:
    """Without the values that the database did not send."""
    return {name: value for name, value in row.items() if value not in _UNSENT}
