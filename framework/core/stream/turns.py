"""The turns of a stream: whose it is, what the end of one means, and which events tell it.

*Guarantee* What goes wrong again and again for one reason is told once, and once more when it is over.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from framework.base.errors import Paused, RefusedError, SluiceError, SourceMissing, UnreachableError
from framework.core.rules import journal
from framework.core.rules.journal import RunRecord
from framework.core.run.crew import Done
from framework.core.run.events import BatchDone, LeftOut
from framework.core.run.failures import named
from framework.core.stream import health
from framework.core.stream.events import Away, Back, Changed, Recovered, Rests, StandsBy, StreamEvent, TookOver
from framework.core.stream.health import PipelineHealth
from framework.core.stream.marks import PipelineRecords, SourceMarks, sources
from framework.core.stream.outages import Outage, Outages
from framework.core.stream.schedule import LONGEST_PAUSE, Schedule, Slot
from framework.core.stream.state import Memory
from framework.plan import Pipeline
from framework.plan.same import same

_LONGEST_TRY = 10.0  # seconds between two tries of a system that does not answer, or of a topic that is missing
_NUMBER = re.compile(r"\d+")
TURN = 1.0  # seconds of a batch, and behind which a turn ends


class Turns:
    """The pipelines of a stream with all that is known of them. For one thread; `pipelines` and `health` may be asked by others."""

    def __init__(self, pipelines: Iterable[Pipeline]) -> None:
        self.schedule, self.outages = Schedule(pipelines), Outages()
        self._states: defaultdict[str, Memory] = defaultdict(Memory)

    def pipelines(self) -> list[Pipeline]:
        return [slot.pipeline for slot in self.schedule]

    def ready(self, most_doubtful: int = 1) -> list[Pipeline]:
        """The pipelines for which there is something to do, in the order of their turns. At its time, one with a cron schedule always has
        a turn. At once at most so many are under way whose last turns failed: each may wait long for what does not answer."""
        wanting = [pipeline for pipeline in self.schedule.ready() if self._wants(pipeline)]
        wanting = wanting or [pipeline for pipeline in self.schedule.alone() if self._wants(pipeline)]
        doubtful_names = [pipeline.name for pipeline in wanting if self.schedule[pipeline.name].failures]
        under_way = sum(name in self.schedule and self.schedule[name].failures > 0 for name in self.schedule.under_way)
        left_out = set(doubtful_names[max(0, most_doubtful - under_way) :])
        ready = [pipeline for pipeline in wanting if pipeline.name not in left_out]
        names = {pipeline.name for pipeline in ready} | self.schedule.under_way
        return [pipeline for pipeline in ready if not any(self._precedes(name, pipeline, names) for name in pipeline.made_of)]

    def _precedes(self, name: str, pipeline: Pipeline, busy_names: Container[str]) -> bool:
        """Whether a turn of this name comes before that of a pipeline that reads its table: its first one, or at the time of a schedule."""
        if name not in self.schedule:
            return False
        slot, state = self.schedule[name], self._states[name]
        if slot.pipeline.run.cron:
            return pipeline.run.cron is not None and name in busy_names
        is_held = not state.is_own or bool(state.paused) or self.is_away(slot.pipeline)
        return slot.ended == -math.inf and not is_held

    def _wants(self, pipeline: Pipeline) -> bool:
        slot, state = self.schedule[pipeline.name], self._states[pipeline.name]
        if not state.is_own or state.paused or self.outages.holds(pipeline.name):
            return False
        return bool(slot.has_rest or slot.has_news or pipeline.run.cron or state.has_news(pipeline))

    def begin(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline's turn begins. Returns it with the size of its next batch."""
        self.schedule.began(pipeline.name)
        return replace(pipeline, batch_rows=self._states[pipeline.name].begin(pipeline))

    def took(self, done: BatchDone) -> Iterator[StreamEvent]:
        """A batch was published: what it needed answers again, and those that read its table have news."""
        name = done.pipeline.name
        if name in self.schedule:
            self._states[name].took(done.batch, TURN)
            self.schedule.proved(name)
            yield from self._back(self.outages.went_well(name))
        for slot in self.schedule:
            if name in slot.pipeline.made_of:
                self.schedule.note(slot.pipeline.name)
                if isinstance(slot.error, SourceMissing):
                    self.schedule.wake(slot.pipeline.name)

    def failed(self, pipeline: Pipeline, error: SluiceError) -> None:
        """A turn that is under way failed, or was left out."""
        if pipeline.name in self.schedule:
            self._states[pipeline.name].error = error

    def ended(self, done: Done) -> Iterator[StreamEvent]:
        """A turn ended."""
        if done.name not in self.schedule:
            self.schedule.under_way.discard(done.name)
            return
        if done.error is not None and not isinstance(done.error, Exception):
            raise done.error
        pipeline, state = self.schedule[done.name].pipeline, self._states[done.name]
        error = named(pipeline, done.error) if done.error else state.error
        if state.paused:
            error = journal.paused(pipeline, state.paused)
        if error is None:
            yield from self._went_well(pipeline, state)
        elif isinstance(error, Paused):
            yield from self._paused(pipeline, error)
        elif isinstance(error, UnreachableError) and error.system:
            is_new, successors = self.outages.failed(pipeline.name, error)
            self.schedule.failed(pipeline.name, error, _LONGEST_TRY)
            self.wake(successors)
            if is_new:
                yield Away(error)
        else:
            self.wake(self.outages.left(pipeline.name))
            longest = _LONGEST_TRY if isinstance(error, UnreachableError) else LONGEST_PAUSE
            seconds = self.schedule.failed(pipeline.name, error, longest)
            if self.tells(pipeline, error):
                yield Rests(pipeline, error, seconds)

    def _went_well(self, pipeline: Pipeline, state: Memory) -> Iterator[StreamEvent]:
        self.schedule.ended(pipeline.name, has_rest=state.waiting > 0)
        yield from self._back(self.outages.went_well(pipeline.name))
        if state.told:
            state.told = ""
            yield Recovered(pipeline)

    def _paused(self, pipeline: Pipeline, reason: Paused) -> Iterator[StreamEvent]:
        self.schedule.paused(pipeline.name, reason)
        self.wake(self.outages.left(pipeline.name))
        if self.tells(pipeline, reason):
            yield LeftOut(pipeline, reason)

    def tells(self, pipeline: Pipeline, error: SluiceError) -> bool:
        """Whether an error is another one than was told last, not only with other numbers. It counts as told then."""
        state, text = self._states[pipeline.name], _NUMBER.sub("0", str(error))
        is_new, state.told = state.told != text, text
        return is_new

    def saw(self, source_marks: SourceMarks) -> Iterator[StreamEvent]:
        """A source was looked at."""
        if source_marks.away is None:
            yield from self._back(self.outages.went_well(source_marks.source))
        else:
            is_new, successors = self.outages.failed(source_marks.source, source_marks.away)
            self.wake(successors)
            if is_new:
                yield Away(source_marks.away)
        for name, mark in source_marks.marks.items():
            if name in self.schedule:
                self._states[name].saw(source_marks.source, mark)

    def noted(self, changed: PipelineRecords) -> Iterator[StreamEvent]:
        """A pause, its end, and that a person moved the position count at once, whoever noted them. So does the end of another process
        that streamed a pipeline."""
        yield from self._of_others(changed.owners)
        for slot in self.schedule:
            if (record := changed.records.get(slot.pipeline.name)) is not None:
                state = self._states[slot.pipeline.name]
                before, state.record = state.record or RunRecord(moved=record.moved), record
                yield from self._noted(slot, before, record)

    def own(self) -> list[Pipeline]:
        """The pipelines that no other process streams, and that are not paused."""
        states = ((pipeline, self._states[pipeline.name]) for pipeline in self.pipelines())
        return [pipeline for pipeline, state in states if state.is_own and not state.paused]

    def _of_others(self, owners: Mapping[str, str]) -> Iterator[StreamEvent]:
        before = {pipeline.name: self._states[pipeline.name].owner for pipeline in self.pipelines()}
        for name in before:
            self._states[name].owner = owners.get(name, "")
        for owner in sorted(set(owners.values())):
            if names := tuple(name for name in before if owners.get(name) == owner != before[name]):
                yield StandsBy(names, owner)
        if names := tuple(name for name in before if before[name] and name not in owners):
            yield TookOver(names)

    def _noted(self, slot: Slot, before: RunRecord, record: RunRecord) -> Iterator[StreamEvent]:
        name = slot.pipeline.name
        runs = self.schedule.runs(name)
        if record.paused and not before.paused and not runs:
            yield from self._paused(slot.pipeline, journal.paused(slot.pipeline, record.paused))
        is_settled = isinstance(slot.error, RefusedError) and before.failed is not None and record.failed is None and not runs
        if (before.paused and not record.paused) or before.moved != record.moved or is_settled:
            self.schedule.wake(name)

    def changed(self, pipelines: Sequence[Pipeline]) -> Changed:
        """Takes over the pipelines of another plan. What failed by the former one is tried at once."""
        before = {slot.pipeline.name: slot.pipeline for slot in self.schedule}
        after = {pipeline.name: pipeline for pipeline in pipelines}
        self.schedule.take(pipelines)
        new, gone = after.keys() - before.keys(), before.keys() - after.keys()
        changed = {name for name in after if name in before and not same(after[name], before[name])}
        former_sources = {source for pipeline in before.values() for source in sources(pipeline)}
        now_sources = {source for pipeline in pipelines for source in sources(pipeline)}
        for name in gone | changed | (former_sources - now_sources):
            self.wake(self.outages.left(name))
        for name in gone:
            self._states.pop(name, None)
        for name in changed | new:
            self._states[name].marks = {}
            self.schedule.note(name)
            if self.schedule[name].error is not None:
                self.schedule.wake(name)
        return Changed(tuple(sorted(new)), tuple(sorted(changed)), tuple(sorted(gone)))

    def filled(self, names: Iterable[str]) -> None:
        """Much waits for these pipelines: they do not wait for their times, but for the ends of their pauses."""
        for name in names:
            if name in self.schedule and not self.schedule[name].failures:
                self.schedule.fill(name)

    def is_away(self, pipeline: Pipeline) -> bool:
        """Whether something that the pipeline needs does not answer."""
        return self.outages.concern({pipeline.name, *sources(pipeline)})

    def health(self) -> dict[str, PipelineHealth]:
        return {slot.pipeline.name: self._health(slot, slot.pipeline) for slot in self.schedule}

    def _health(self, slot: Slot, pipeline: Pipeline) -> PipelineHealth:
        state, runs = self._states.get(pipeline.name, Memory()), self.schedule.runs(pipeline.name)
        return health.of(slot, state, runs, self.is_away(pipeline))

    def _back(self, outages: Sequence[Outage]) -> Iterator[Back]:
        for outage in outages:
            yield Back(outage.error, self.outages.seconds(outage))
            self.wake(outage.held)

    def wake(self, names: Iterable[str]) -> None:
        for name in names:
            self.schedule.wake(name)
