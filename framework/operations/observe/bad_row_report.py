"""A pipeline's open bad rows, counted by reason, with samples. Without Spark, and read-only.

Cost: reads codes, reasons and places of all bad rows, and the messages of the samples only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from framework.core.iceberg import metadata, table_state
from framework.core.rules.protocol import POSITION, Position
from framework.plan import OPEN, Pipeline

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

_PLACE = ("batch", "code", "message", "topic", "partition", "offset", "item")
_STEP = "cannot be computed for this row: "
_VALUES = (  # patterns of the values in messages of one kind, and their replacements
    (r"(?s)(, found | at byte |: it is cut off|: [^:]* is not expected).*", ""),
    (r"\[\d+\]", "[]"),
    (rf"(?s)({_STEP}.*) \([^()=]+ = .*\)$", r"\1"),  # the columns' values
    (rf"(?s)({_STEP})(?:'.*?'|-?[0-9][^ ]*) ", r"\1"),  # the value that does not fit
)
_COLUMNS = (*_PLACE, "stage", "timestamp", "key", "value")


@dataclass(frozen=True)
class Kind:
    """Bad rows with the same code and the same message, apart from the values in it."""

    code: str
    message: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class BadRow:
    """A bad row. Its place in Kafka is null where the pipeline reads a table without the Kafka columns."""

    batch: int
    stage: str
    code: str
    message: str
    topic: str | None
    partition: int | None
    offset: int | None
    item: str | None
    timestamp: datetime | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Quarantine:
    """Bad rows. `kinds` has the most frequent first, `samples` the newest of each kind; `waiting` counts those not published yet."""

    kinds: tuple[Kind, ...]
    samples: tuple[BadRow, ...]
    waiting: int
    settled: tuple[tuple[str, int], ...] = ()  # the numbers of replayed and of discarded ones, which are not in `kinds`

    @property
    def rows(self) -> int:
        return sum(kind.rows for kind in self.kinds)


def quarantine(pipeline: Pipeline, code: str | None, limit: int) -> Quarantine:
    """The open bad rows of a pipeline, with one code or with any."""
    waiting_count = _waiting(pipeline)
    table = table_state.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return Quarantine((), (), waiting_count)
    import pyarrow.compute as pc

    has_states = "state" in table.schema().column_names
    bad_rows = table.scan(selected_fields=(*_PLACE, "state") if has_states else _PLACE).to_arrow()
    if code:
        bad_rows = bad_rows.filter(pc.equal(bad_rows["code"], code))
    settled_groups: list[dict[str, Any]] = []
    if has_states:
        is_open = pc.equal(pc.coalesce(bad_rows["state"], OPEN), OPEN)
        settled_groups = bad_rows.filter(pc.invert(is_open)).group_by("state").aggregate([([], "count_all")]).to_pylist()
        bad_rows = bad_rows.filter(is_open).drop_columns("state")
    bad_rows = bad_rows.append_column("reason", _without_values(bad_rows["message"]))
    groups = bad_rows.group_by(["code", "reason"]).aggregate([([], "count_all")]).to_pylist()
    groups.sort(key=lambda group: (-group["count_all"], group["code"], group["reason"]))
    kinds = tuple(Kind(group["code"], group["reason"], group["count_all"]) for group in groups)
    sample_places = []
    for kind, share in zip(kinds, _shares(kinds, limit), strict=False):
        kind_rows = bad_rows.filter(pc.and_(pc.equal(bad_rows["code"], kind.code), pc.equal(bad_rows["reason"], kind.message)))
        ordered_rows = kind_rows.sort_by([("batch", "descending"), ("offset", "descending")])
        sample_places += ordered_rows.slice(0, share).to_pylist()
    by_state = tuple(sorted((group["state"], group["count_all"]) for group in settled_groups))
    return Quarantine(kinds, tuple(_samples(table, sample_places)), waiting_count, by_state)


def _without_values(messages: Any) -> Any:
    import pyarrow.compute as pc

    for pattern, replacement in _VALUES:
        messages = pc.replace_substring_regex(messages, pattern, replacement)
    return messages


def _shares(kinds: tuple[Kind, ...], limit: int) -> list[int]:
    """The number of samples of each kind to show: one each while the limit allows, then a second each, and so on."""
    shares = [0] * min(len(kinds), limit)
    while sum(shares) < limit:
        open_indexes = [index for index, share in enumerate(shares) if share < kinds[index].rows]
        if not open_indexes:
            break
        for index in open_indexes[: limit - sum(shares)]:
            shares[index] += 1
    return shares


def _samples(table: IcebergTable, places: list[dict[str, Any]]) -> Iterator[BadRow]:
    """The whole rows at these places."""
    if not places:
        return
    batches = ", ".join({str(place["batch"]) for place in places})
    offsets = {str(place["offset"]) for place in places if place["offset"] is not None}
    conditions = [f"offset in ({', '.join(offsets)})"] if offsets else []
    conditions += ["offset is null"] if any(place["offset"] is None for place in places) else []
    scan = table.scan(f"batch in ({batches}) and ({' or '.join(conditions)})", selected_fields=_COLUMNS)
    rows_by_place = defaultdict(list)
    for row in scan.to_arrow().to_pylist():
        rows_by_place[tuple(row[name] for name in _PLACE)].append(row)
    for place in places:
        matching_rows = rows_by_place[tuple(place[name] for name in _PLACE)]
        if matching_rows:
            yield BadRow(**matching_rows.pop())


def _waiting(pipeline: Pipeline) -> int:
    """The bad rows of the last batch that are not published yet."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    text = table.properties.get(POSITION) if table else None
    position = Position.read(text) if text else None
    return table_state.bad_waiting(pipeline, position)
