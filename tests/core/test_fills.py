"""`batch: {after: …}`: a batch begins before its time once that much is waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from framework.base.errors import SluiceError
from framework.core.run import run as loop
from framework.core.run.events import Event
from framework.core.run.fills import WaitingSize
from framework.plan import Pipeline, Run
from tests.support.project import Project
from tests.support.shop import planned


@pytest.mark.spark
@pytest.mark.kafka
def test_what_waits_is_measured_from_the_position_on(project: Project) -> None:
    project.more = "batch: {after: 2KB}"
    project.make_topic()
    project.send_good(200)
    context = project.context()
    (pipeline,) = context.plan.pipelines
    fills = WaitingSize(context)
    assert not fills.full(pipeline)  # without a position the first run begins in its time
    project.run()
    assert not fills.full(pipeline)
    project.send_good(20)
    assert not fills.full(pipeline)
    project.send_good(200)
    assert fills.full(pipeline)
    assert not fills.full(replace(pipeline, run=Run(every=60)))


def test_between_two_turns_only_what_is_full_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = planned(tmp_path, "id: bigint")
    full, other_pipeline = (
        replace(pipeline, name=name, run=Run(every=60, after=after)) for name, after in (("full", 1), ("other", None))
    )
    stop = threading.Event()
    ran: list[list[str]] = []

    def runs(pipelines: Sequence[Pipeline], _stopped: Callable[[], bool]) -> Iterator[Event]:
        if pipelines:
            ran.append([pipeline.name for pipeline in pipelines])
        if len(ran) == 3:
            stop.set()
        yield from ()

    answers = iter((SluiceError("kafka-unreachable", "away", ""), False, True, True))

    def is_full(_pipeline: Pipeline) -> bool:
        answer = next(answers)
        if isinstance(answer, SluiceError):
            raise answer
        return answer

    # Runs need Spark and Kafka; here only their turns count.
    monkeypatch.setattr(loop, "_INTERVAL", 0.01)  # seconds that the test would wait
    list(loop.keep_up(runs, [full, other_pipeline], 3600, stop, is_full))
    assert ran == [["full", "other"], ["full"], ["full"]]
