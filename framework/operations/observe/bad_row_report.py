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
_GIVEN = (  # what differs between bad rows of one kind, and what is left of it
    (r"(?s)(, found | at byte |: it is cut off|: [^:]* is not expected).*", ""),
    (r"\[\d+\]", "[]"),
    (rf"(?s)({_STEP}.*) \([^()=]+ = .*\)$", r"\1"),  # the columns' values
    (rf"(?s)({_STEP})(?:'.*?'|-?[0-9][^ ]*) ", r"\1"),  # the value that does not fit
)
_COLUMNS = (*_PLACE, "stage", "timestamp", "key", "value")


@dataclass(frozen=True)
class Kind:
    """Bad rows with the same code and the same message, apart from the values that were found."""

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
    settled: tuple[tuple[str, int], ...] = ()  # how many were replayed or discarded: they are not among the others

    @property
    def rows(self) -> int:
        return sum(kind.rows for kind in self.kinds)


def quarantine(pipeline: Pipeline, code: str | None, limit: int) -> Quarantine:
    """The bad rows of one code, or all."""
    waiting = _waiting(pipeline)
    table = table_state.table(pipeline.table.catalog, pipeline.table.bad_rows)
    if table is None:
        return Quarantine((), (), waiting)
    import pyarrow.compute as pc

    has_states = "state" in table.schema().column_names
    bad_rows = table.scan(selected_fields=(*_PLACE, "state") if has_states else _PLACE).to_arrow()
    if code:
        bad_rows = bad_rows.filter(pc.equal(bad_rows["code"], code))
    settled: list[dict[str, Any]] = []
    if has_states:
        is_open = pc.equal(pc.coalesce(bad_rows["state"], OPEN), OPEN)
        settled = bad_rows.filter(pc.invert(is_open)).group_by("state").aggregate([([], "count_all")]).to_pylist()
        bad_rows = bad_rows.filter(is_open).drop_columns("state")
    bad_rows = bad_rows.append_column("reason", _without_values(bad_rows["message"]))
    counted = bad_rows.group_by(["code", "reason"]).aggregate([([], "count_all")]).to_pylist()
    counted.sort(key=lambda each: (-each["count_all"], each["code"], each["reason"]))
    kinds = tuple(Kind(each["code"], each["reason"], each["count_all"]) for each in counted)
    sample_places = []
    for kind, share in zip(kinds, _shares(kinds, limit), strict=False):
        of_kind = bad_rows.filter(pc.and_(pc.equal(bad_rows["code"], kind.code), pc.equal(bad_rows["reason"], kind.message)))
        ordered = of_kind.sort_by([("batch", "descending"), ("offset", "descending")])
        sample_places += ordered.slice(0, share).to_pylist()
    by_state = tuple(sorted((each["state"], each["count_all"]) for each in settled))
    return Quarantine(kinds, tuple(_samples(table, sample_places)), waiting, by_state)


def _without_values(messages: Any) -> Any:
    import pyarrow.compute as pc

    for pattern, left in _GIVEN:
        messages = pc.replace_substring_regex(messages, pattern, left)
    return messages


def _shares(kinds: tuple[Kind, ...], limit: int) -> list[int]:
    """The number of samples of each kind to show: one each while the limit allows, then a second each, and so on."""
    shares = [0] * min(len(kinds), limit)
    while sum(shares) < limit:
        more = [at for at, share in enumerate(shares) if share < kinds[at].rows]
        if not more:
            break
        for at in more[: limit - sum(shares)]:
            shares[at] += 1
    return shares


def _samples(table: IcebergTable, places: list[dict[str, Any]]) -> Iterator[BadRow]:
    """The whole rows at these places."""
    if not places:
        return
    batches = ", ".join({str(each["batch"]) for each in places})
    offsets = {str(each["offset"]) for each in places if each["offset"] is not None}
    conditions = [f"offset in ({', '.join(offsets)})"] if offsets else []
    conditions += ["offset is null"] if any(each["offset"] is None for each in places) else []
    scan = table.scan(f"batch in ({batches}) and ({' or '.join(conditions)})", selected_fields=_COLUMNS)
    rows_by_place = defaultdict(list)
    for row in scan.to_arrow().to_pylist():
        rows_by_place[tuple(row[name] for name in _PLACE)].append(row)
    for each in places:
        same = rows_by_place[tuple(each[name] for name in _PLACE)]
        if same:
            yield BadRow(**same.pop())


def _waiting(pipeline: Pipeline) -> int:
    """The bad rows of the last batch that are not published yet."""
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    text = table.properties.get(POSITION) if table else None
    position = Position.read(text) if text else None
    return table_state.bad_waiting(pipeline, position)
