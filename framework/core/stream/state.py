"""The memory that a stream has of one pipeline."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from framework.base.errors import SluiceError
from framework.core.publish.batch import Batch
from framework.core.rules.journal import RunRecord
from framework.core.stream.marks import sources
from framework.plan import Pipeline

_FIRST, _LEAST = 20_000, 1_000  # messages of a batch
_TIMES = 3.0  # a batch may take so many times what the smallest one takes
_FULL = 0.9  # of the most messages: only such a batch says whether there could be more


@dataclass(kw_only=True)
class Memory:
    """A pipeline as its turns left it. `marks`: what was seen of its sources last, and `begun` what the last turn began with."""

    marks: Mapping[str, Hashable] = field(default_factory=dict)
    begun: Mapping[str, Hashable] = field(default_factory=dict)
    size: int = _FIRST  # the most messages of the next batch
    size_now: int = _FIRST  # of the turn that is under way
    full: tuple[int, float] = (0, 0.0)  # the messages and the seconds of the last batch that could have had more
    fixed: float = 0.0  # seconds that a batch takes however small it is, by two of different sizes
    waiting: int = 0  # messages, behind the last batch
    error: SluiceError | None = None  # of the turn that is under way
    told: str = ""  # the reason that was told last
    record: RunRecord | None = None  # as it was seen last
    owner: str = ""  # another process that streams it

    def saw(self, source: str, mark: Hashable) -> None:
        self.marks = {**self.marks, source: mark}

    def has_seen(self, pipeline: Pipeline) -> bool:
        """Whether all that the pipeline reads was looked at."""
        return sources(pipeline) <= self.marks.keys()

    def has_news(self, pipeline: Pipeline) -> bool:
        return self.has_seen(pipeline) and self.marks != self.begun

    @property
    def is_own(self) -> bool:
        """Whether this process runs the pipeline. Before its record was seen, nobody knows."""
        return self.record is not None and not self.owner

    @property
    def paused(self) -> str | None:
        """Since when it is paused."""
        return self.record.paused if self.record else None

    def begin(self, pipeline: Pipeline) -> int:
        """A turn begins. Returns the most messages of its batches."""
        self.begun, self.error, self.waiting = self.marks, None, 0
        self.size = self.size_now = min(self.size, pipeline.batch_rows)
        return self.size

    def took(self, batch: Batch, seconds: float) -> None:
        """Makes the next batches larger or smaller, so that one takes about so many seconds; longer where most of it would be what each
        batch costs, however small it is."""
        self.waiting = batch.waiting
        if batch.read < _FULL * self.size_now or batch.seconds <= 0:
            return
        read, earlier_seconds = self.full
        if read and not 0.67 < batch.read / read < 1.5:
            line = (batch.seconds * read - earlier_seconds * batch.read) / (read - batch.read)
            self.fixed = min(max(0.0, line), 0.9 * min(earlier_seconds, batch.seconds))
        self.full = (batch.read, batch.seconds)
        for_one = max(batch.seconds - self.fixed, 0.1 * batch.seconds) / batch.read
        size = (max(seconds, _TIMES * self.fixed) - self.fixed) / for_one
        self.size = max(_LEAST, int(min(2.0 * self.size_now, max(0.5 * self.size_now, size))))
