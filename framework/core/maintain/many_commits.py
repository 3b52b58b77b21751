"""Tables with many commits, which keep fewer snapshots than the rule for all tables says: each commit writes the list of all of them again.

Commits are many where they come faster than each ten seconds. Whatever the age, there is one snapshot about a quarter younger or older.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

from framework.core.iceberg import metadata
from framework.core.iceberg.main_line import number, own_batch, own_position
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import forgotten, protocol
from framework.plan import Maintain
from framework.plan.maintenance import MANY_EVERY

_PARTS = 4  # of each doubling of age, of which one snapshot each is kept
_LONGEST = timedelta(hours=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def kept(times: Sequence[datetime], maintain: Maintain, current_time: datetime) -> frozenset[int]:
    """The indexes of the times that are kept, about eighty."""
    indexes = set(range(min(maintain.keep_at_least, len(times))))
    intervals: set[tuple[float, int]] = set()
    for index, time in enumerate(times):
        age = (current_time - time).total_seconds()
        if age > maintain.keep_snapshots_for:
            break
        step = 2.0 ** math.floor(math.log2(max(age, 1.0))) / _PARTS
        seconds = (time - _EPOCH).total_seconds()
        if (step, int(seconds // step)) not in intervals:
            indexes.add(index)
        # An older one in the same longer interval, which is the first to be old enough for it, goes with this one.
        intervals |= {(step, int(seconds // step)), (2 * step, int(seconds // (2 * step)))}
    return frozenset(indexes)


def indexes(table: Metadata, line: Sequence[Mapping[str, Any]], times: Sequence[datetime], unread: float) -> Iterator[int]:
    """The indexes of the snapshots of a line behind and before which commits were many, by the numbers of batches: those that are gone had
    numbers, too. Later ones than the commit `unread` are left out."""
    batches = list(_batches(table, line))
    landmarks = [_is_landmark(snapshot) for snapshot in line]
    were_many = [
        (newer_time - older_time).total_seconds() < MANY_EVERY * max(1, newer_batch - older_batch)
        for (newer_time, older_time), (newer_batch, older_batch) in zip(pairwise(times), pairwise(batches), strict=True)
    ]
    for index, snapshot in enumerate(line):
        if all(were_many[max(0, index - 1) : index + 1]) and not landmarks[index] and index > 0 and number(snapshot) <= unread:
            yield index


def rewritten_since(
    table: Metadata, line: Sequence[Mapping[str, Any]], times: Sequence[datetime], current_time: datetime
) -> float:
    """The number of the commit since which `sluice forget` or a compaction rewrites files, if it began less than an hour ago: Iceberg
    refuses its commit unless all commits since then are there."""
    numbers = [
        number(snapshot)
        for snapshot, time in zip(line, times, strict=True)
        if forgotten.FORGETS in metadata.summary(snapshot) and current_time - time < _LONGEST
    ]
    with suppress(ValueError, OverflowError, OSError):
        compacted_number, began = map(int, table.properties.get(protocol.COMPACTING, "").split())
        if current_time - datetime.fromtimestamp(began, timezone.utc) < _LONGEST:
            numbers.append(compacted_number)
    return min(numbers, default=math.inf)


def _batches(table: Metadata, line: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """The number of the batch at each snapshot of a line; that of its commit for a table of bad rows, whose snapshots name no batches."""
    if protocol.OF in table.properties:
        yield from map(number, line)
        return
    newest_batch, batches = 0, []
    for snapshot in reversed(line):
        newest_batch = own_batch(snapshot) or newest_batch
        batches.append(newest_batch)
    yield from reversed(batches)


def _is_landmark(snapshot: Mapping[str, Any]) -> bool:
    """Whether a snapshot is more than one of many batches: of another program, the table's first one, of a rebuild or of `forget`."""
    summary = metadata.summary(snapshot)
    if not any(name.startswith("sluice.") for name in summary):
        return summary.get("operation") != "replace"
    if forgotten.FORGETS in summary or protocol.REBUILT in summary:
        return True
    position = own_position(snapshot)
    return position is not None and (position.is_rebuild or position.attempt == protocol.BORN)
