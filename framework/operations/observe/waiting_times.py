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

_MOST = 60  # growths of a partition that are kept; of more, those that are close together become one
_FORGOTTEN = 3600.0  # seconds after which a partition that nobody asks for is forgotten


@dataclass
class _Growth:
    """A partition that ended at `before` at one look, and at `after` at the next one."""

    earlier: float
    before: int
    later: float
    after: int


@dataclass
class _Ends:
    """How the end of a partition grew from look to look."""

    first_look: float
    last_look: float
    end: int
    earlier: float = field(init=False)  # the one before the last
    growths: list[_Growth] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.earlier = self.last_look

    def is_followed_by(self, time: float, end: int) -> bool:
        """Whether this end can follow: the partition is the same, and the clock did not go back. Another pipeline may see it earlier."""
        return time >= self.last_look and (end >= self.end or time == self.last_look)

    def note(self, time: float, end: int) -> None:
        if time > self.last_look:
            self.earlier, self.last_look = self.last_look, time
        if end <= self.end:
            return
        if self.growths and self.growths[-1].later == time:
            self.growths[-1].after = end
        else:
            self.growths.append(_Growth(self.earlier, self.end, time, end))
        self.end = end
        if len(self.growths) > _MOST:
            self._join_closest()

    def _join_closest(self) -> None:
        """Makes one of the two neighbours that took the least time together, so that a quiet time between others is kept."""
        pairs = range(len(self.growths) - 2)  # without the last one, which may still change
        index = min(pairs, key=lambda number: self.growths[number + 1].later - self.growths[number].earlier)
        former, latter = self.growths[index : index + 2]
        self.growths[index : index + 2] = [_Growth(former.earlier, former.before, latter.later, latter.after)]

    def since(self, position: int) -> float:
        """When the message at a position came, or the first look if it was there before."""
        index = bisect_right([growth.after for growth in self.growths], position)
        if index == len(self.growths):
            return self.last_look if self.growths else self.first_look
        growth = self.growths[index]
        if position < growth.before:
            return self.first_look
        return growth.earlier + (growth.later - growth.earlier) * (position + 1 - growth.before) / (growth.after - growth.before)


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
            key = (cluster, offsets.partition)
            ends = self._ends.get(key)
            if ends is None or not ends.is_followed_by(time, offsets.end):
                ends = self._ends[key] = _Ends(first_look=time, last_look=time, end=offsets.end)
            ends.note(time, offsets.end)
            waited[offsets.partition] = max(0.0, time - ends.since(offsets.next_offset)) if offsets.waiting else 0.0
        return replace(status, waited=waited)

    def forget(self, moment: datetime) -> None:
        """Forgets partitions that nobody has asked for in an hour."""
        time = moment.timestamp()
        self._ends = {key: ends for key, ends in self._ends.items() if time - ends.last_look < _FORGOTTEN}
