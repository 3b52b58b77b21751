"""Stories of runs: all that each tells its caller, in its order, as a golden text (`run_stories.txt`). With REWRITE=1 in the environment
the text is written again: read the diff."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from framework.base.clock import utc_now
from framework.base.errors import SparkEnded
from framework.core.context.context import Context
from framework.core.follow.follow import Followed
from framework.core.rules import journal
from framework.core.run import events, run as loop
from framework.operations.metrics import in_words
from framework.plan import Pipeline
from tests import toys
from tests.support.kill_points import once
from tests.support.project import Project, losing_answers

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
GOLDEN = Path(__file__).with_name("run_stories.txt")
KEEP = "maintain: {compact_every: 1m, keep_snapshots_for: 1h, keep_at_least: 1}"
COPY = """---
pipeline: copy
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.copy, write: replace}}
"""
WAITS = """---
topic: payments
kafka_name: {topic}_payments
value: json
columns: {{id: bigint}}
---
pipeline: missing
from: {{topic: payments}}
into: {{table: {namespace}.payments}}
"""


class Story:
    """A project whose runs write down what they tell."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.lines: list[str] = []
        self.tally = project.folder / "tally.txt"
        self.stops_after = 0  # batches; 0: it is not stopped
        self._batch_count = 0
        self._open = self._broke = False  # of the pipeline that runs

    def add(self, *parts: str) -> None:
        self.project.more = "\n".join([self.project.more, *parts]).strip()

    def shown(self) -> None:
        """Lets the table's rows be shown by the toy follower."""
        self.add(f'also: [{{tally: "{self.tally}"}}]')

    def run(self, reached: Callable[[str], None] | None = None, pipelines: int | None = None) -> None:
        context = self.project.context(reached)
        self.run_all(context, context.plan.pipelines[:pipelines])

    def run_all(self, context: Context, pipelines: tuple[Pipeline, ...]) -> None:
        self.lines.append("run")
        self._batch_count = 0
        failures = [line for event in loop.run_all(context, pipelines, self.is_stopped) for line in self.told(event)]
        self.lines += failures
        for pipeline in pipelines:
            self.journal(pipeline)

    def is_stopped(self) -> bool:
        return 0 < self.stops_after <= self._batch_count

    def told(self, event: events.Event) -> list[str]:
        """Writes down an event, and returns the line of a failure, which comes at the end."""
        name = event.pipeline.name
        if not self._open and not isinstance(event, events.LeftOut | events.Ended):
            self.lines.append(f"  begin {name}")
            self._open = True
        match event:
            case events.BatchDone(batch=batch):
                self._batch_count += 1
                counts = ", ".join(words for words in in_words(event.batch) if not words.endswith("stragglers"))  # those of a toy
                self.lines.append(f"  batch {batch.number} of {name}: {counts}, {batch.waiting} waiting")
            case events.Maintained(_, done):
                self.lines.append(f"  maintained {done.identifier.rpartition('.')[2]}: {'; '.join(done.says)}")
            case Followed():
                self.lines.append(f"  followed {name} by {event.follower.type}: {event.rows} rows")
            case events.Failed(_, error, follower):
                self._broke = self._broke or follower is None
                return [f"  failed {name}: {error.code}{' (a follower)' if follower else ''}"]
            case events.LeftOut(_, reason):
                self._broke = True
                return [f"  failed {name}: {reason.code}"]
            case events.Ended():
                if not self._broke:
                    self.lines.append(f"  end {name}")
                self._open = self._broke = False
        return []

    def journal(self, pipeline: Pipeline) -> None:
        record = journal.read(pipeline.journal_name)
        words = [
            *(["paused"] if record.paused else []),
            *([f"failed by {record.failed.code}"] if record.failed else []),
            *(f"a follower failed by {failure.code}" for failure in record.followers.values()),
        ]
        self.lines += [f"  journal of {pipeline.name}: {', '.join(words)}"] if words else []


def nothing_waits(story: Story) -> None:
    story.project.make_topic()
    story.run()


def one_batch_and_nothing_behind_it(story: Story) -> None:
    story.project.make_topic()
    story.project.send_good(6, bad_every=3)
    story.run()
    story.run()


def three_batches(story: Story) -> None:
    story.add("batch: {rows: 2}")
    story.project.make_topic(1)
    story.project.send_good(5, partition=0)
    story.run()


def paused_before_it_runs(story: Story) -> None:
    story.shown()
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    journal.pause(story.project.pipeline.journal_name)
    story.run()
    journal.resume(story.project.pipeline.journal_name)
    story.run()


def paused_while_it_runs(story: Story) -> None:
    story.add("batch: {rows: 2}")
    story.project.make_topic(1)
    story.project.send_good(5, partition=0)
    name = story.project.pipeline.journal_name
    story.run(once(lambda: journal.pause(name), "published"))
    journal.resume(name)
    story.run()


def without_its_topic(story: Story) -> None:
    story.run()
    story.project.make_topic()
    story.project.send_good(1, partition=0)
    story.run()


def stopped_behind_its_first_batch(story: Story) -> None:
    story.shown()
    story.add("batch: {rows: 2}")
    story.project.make_topic(1)
    story.project.send_good(5, partition=0)
    story.stops_after = 1
    story.run()
    story.stops_after = 0
    story.run()


def shown_by_a_follower(story: Story) -> None:
    story.shown()
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    story.run()
    story.run()


def a_follower_fails(story: Story) -> None:
    story.shown()
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    story.tally.mkdir()
    story.run()
    story.run()
    story.tally.rmdir()
    story.run()


def a_follower_catches_up_behind_a_failure(story: Story) -> None:
    story.shown()
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    story.tally.mkdir()
    story.run()
    story.tally.rmdir()
    story.project.delete_topic()
    story.run()


def maintained_behind_its_batches(story: Story) -> None:
    story.shown()
    story.add(KEEP)
    story.project.make_topic(1)
    for _ in range(5):
        story.project.send_good(2, partition=0)
        story.project.run()
    story.project.clock = lambda: utc_now() + timedelta(days=1)
    story.run()
    story.project.send_good(2, partition=0)
    story.run()


def the_first_of_two_fails(story: Story) -> None:
    story.add(WAITS.format(topic=story.project.topic, namespace=story.project.namespace))
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    story.run()


def a_table_is_read_by_the_next(story: Story) -> None:
    story.add(COPY.format(namespace=story.project.namespace))
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    story.run()
    story.run()


def a_table_that_is_not_there_is_read(story: Story) -> None:
    story.add(COPY.format(namespace=story.project.namespace))
    story.run()


def an_expectation_stops_it(story: Story) -> None:
    story.shown()
    story.add("expect: [{when: price < 2, else: stop}]")
    story.project.make_topic(1)
    story.project.send_good(2, partition=0)
    story.run()
    story.project.send_good(2, partition=0)
    story.run()


def an_answer_is_lost(story: Story) -> None:
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    commit, _ = losing_answers(1)
    context = story.project.context(commit=commit)
    story.run_all(context, context.plan.pipelines)


def a_defect(story: Story) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a defect")

    story.project.make_topic()
    story.project.send_good(3, partition=0)
    story.run(once(fail, "staged"))
    story.run()


def spark_ends(story: Story) -> None:
    def end() -> None:
        raise SparkEnded("spark-ended", "Spark ended while it worked", "run again")

    story.add("batch: {rows: 2}")
    story.project.make_topic(1)
    story.project.send_good(5, partition=0)
    story.run(once(end, "staged"))
    story.run()


def kept_up_over_a_failure(story: Story) -> None:
    story.project.make_topic()
    story.project.send_good(3, partition=0)
    context, stop, turns = story.project.context(once(lambda: 1 // 0, "staged")), threading.Event(), 0
    story.lines.append("keep up")
    for event in loop.keep_up(partial(loop.run_all, context), context.plan.pipelines, 0.01, stop):
        story.lines += story.told(event)
        turns += isinstance(event, events.Ended)
        if turns == 3:
            stop.set()
    story.journal(context.plan.pipelines[0])


STORIES: tuple[Callable[[Story], None], ...] = (
    nothing_waits, one_batch_and_nothing_behind_it, three_batches, paused_before_it_runs, paused_while_it_runs, without_its_topic,
    stopped_behind_its_first_batch, shown_by_a_follower, a_follower_fails, a_follower_catches_up_behind_a_failure,
    maintained_behind_its_batches, the_first_of_two_fails, a_table_is_read_by_the_next, a_table_that_is_not_there_is_read,
    an_expectation_stops_it, an_answer_is_lost, a_defect, spark_ends, kept_up_over_a_failure,
)  # fmt: skip


def _name(story: Callable[[Story], None]) -> str:
    return story.__name__


def golden_texts() -> dict[str, str]:
    """The golden text of each story by its name."""
    parts = GOLDEN.read_text(encoding="utf-8").split("\n# ") if GOLDEN.exists() else []
    return {name.removeprefix("# "): text.strip("\n") for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("story", STORIES, ids=_name)
def test_a_run_tells_each_step_in_its_order(story: Callable[[Story], None], project: Project) -> None:
    with toys.installed():
        recorded = Story(project)
        story(recorded)
    text = "\n".join(recorded.lines)
    if os.environ.get("REWRITE") == "1":
        texts = {**golden_texts(), _name(story): text}
        names = [name for name in map(_name, STORIES) if name in texts]
        GOLDEN.write_text("\n".join(f"# {name}\n{texts[name]}\n" for name in names), encoding="utf-8")
    assert text == golden_texts()[_name(story)]
