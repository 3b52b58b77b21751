"""Debezium's change events in JSON, bare or as the `payload` next to a `schema`.

Guarantee: an envelope that lacks what its `op` needs is a bad row, and so is one in which a field has another type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework.messages.encoding import debezium, decoder, json_text
from framework.messages.encoding.fields import MessageField
from framework.messages.formats import Guess, json
from framework.plan import Decoding

_UNSENT: tuple[Any, ...] = (debezium.MARKER, [debezium.MARKER], list(debezium.MARKER.encode()))


def decoding(fields: Sequence[MessageField], _only_columns: bool) -> Decoding:
    """Returns the decoding of envelopes. Columns are required where a row was made or changed: a delete may have the key alone."""
    description = {**json.description(fields), "root": "payload", **debezium.ENVELOPE}
    decoded = decoder.decoding("value", description, ["too_large", "undecodable"], debezium.NOT_ONE)
    own_columns = tuple((column.name, decoder.column_sql("value", column.name)) for column in debezium.CHANGES.columns)
    return replace(decoded, columns=(*decoded.columns, *own_columns), keep=debezium.KEEP)


def rows(data: bytes) -> Sequence[Mapping[str, Any]] | None:
    """Returns the row before and after a change, without unsent values; None if the message is no envelope of such rows."""
    envelope = payload(json_text.one_object(data))
    if envelope is None or envelope.get("op") not in debezium.OPS or not isinstance(envelope.get("source"), dict):
        return None
    images = [envelope.get("before"), envelope.get("after")]
    if not all(image is None or isinstance(image, dict) for image in images):
        return None
    return [{name: value for name, value in image.items() if value not in _UNSENT} for image in images if image]


def payload(document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Returns the `payload` of a document that has a `schema` next to it, else the whole document."""
    if document is not None and document.keys() == {"schema", "payload"}:
        inner = document["payload"]
        return inner if isinstance(inner, dict) else None
    return document


VALUE = replace(
    json.VALUE,
    decoding=decoding,
    takes_unknown_fields=False,
    changes=debezium.CHANGES,
    guess=Guess(rows=rows, key=lambda data: payload(json_text.one_object(data)), are_not="no envelopes"),
)
