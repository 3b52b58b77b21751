"""How long messages have waited, from the ends of partitions at earlier looks: Kafka is asked nothing more.

The message at a table's position came between the look at which the partition ended at it and the next one. In between the time is
interpolated.
*Limit* Of what waited before the first look, only the time since then is known. A message that was sent late counts from when it came.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from datetime import datetime

from framework.operations.observe.status import Status

_MOST = 60  # looks of a partition that are kept, the rarer the older
_FORGOTTEN = 3600.0  # seconds after which a partition that nobody asks for is forgotten


@dataclass
class _Ends:
    """The ends of a partition at earlier looks: where an end stays the same, at the first and the last of them."""

    times: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def note(self, time: float, end: int) -> None:
        if self.times and time == self.times[-1]:  # of another pipeline, which saw the partition a moment earlier or later
            self.ends[-1] = max(self.ends[-1], end)
            return
        if self.times and (time < self.times[-1] or end < self.ends[-1]):  # the clock went back; another topic of the name
            self.times.clear()
            self.ends.clear()
        if self.ends[-2:] == [end, end]:
            self.times[-1] = time
        else:
            self.times.append(time)
            self.ends.append(end)
        if len(self.ends) > _MOST:
            del self.times[1 : _MOST // 2 : 2], self.ends[1 : _MOST // 2 : 2]

    def since(self, position: int) -> float:
        """When the message at a position came, or the first look if it was there before."""
        index = bisect_right(self.ends, position)  # the first look at which it was there
        if index in (0, len(self.ends)):
            return self.times[max(0, index - 1)]
        (before, earlier), (after, later) = ((self.ends[each], self.times[each]) for each in (index - 1, index))
        return earlier + (later - earlier) * (position + 1 - before) / (after - before)


class WaitingTimes:
    """The looks of one process at the partitions of topics."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], _Ends] = {}  # by cluster and partition

    def noted(self, status: Status) -> Status:
        """The status with how long messages have waited in each partition."""
        if not status.progress.offsets:
            return status
        cluster, time = status.pipeline.topic.cluster.name, status.time.timestamp()
        waited: dict[str, float] = {}
        for offsets in status.progress.offsets:
            ends = self._ends.setdefault((cluster, offsets.partition), _Ends())
            ends.note(time, offsets.end)
            waited[offsets.partition] = max(0.0, time - ends.since(offsets.next_offset)) if offsets.waiting else 0.0
        return replace(status, waited=waited)

    def forget(self, moment: datetime) -> None:
        """Forgets partitions that nobody has asked for in an hour."""
        time = moment.timestamp()
        self._ends = {key: ends for key, ends in self._ends.items() if time - ends.times[-1] < _FORGOTTEN}
