"""Senders that stop and wake, and two homes on one catalog: no older row of a key comes behind a newer one in the topic."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from framework.core.follow import follow
from framework.core.run.run import batches
from tests.support import delta_followers
from tests.support.follower_parts import ran
from tests.support.onward_topics import keyed, messages, onward, send, upserts
from tests.support.project import Project
from tests.support.repository import ROOT
from tests.support.selection import few
from tests.support.victim import end_of
from tests.support.victims import PATIENCE
from tests.support.waiting import until

__all__ = ["onward"]
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
KEYS = 20_000


def changed(project: Project, price: int) -> None:
    send(project, *({"id": number, "price": price} for number in range(KEYS)))


@contextmanager
def sender(project: Project, point: str, number: signal.Signals, home: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, which got the signal at the point; its JVM has stopped if it was sending."""
    specs = Path(project.pipeline.where.file).parent
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"SLUICE_HOME": str(home)} if home else {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.victim", str(specs), point, number.name, "all"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert "reached\n" in iter(process.stdout.readline, ""), f"the run ended before it reached {point}"
        yield process
    finally:
        for final_signal in (signal.SIGCONT, signal.SIGKILL):
            if is_alive(process.pid):
                os.killpg(process.pid, final_signal)
        process.wait(PATIENCE)


def is_alive(group: int) -> bool:
    """Whether a process of the group runs, such as a JVM whose command was killed."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def assert_in_topic(project: Project) -> None:
    """Asserts that each key's last message has the price of the table's row."""
    table = {str(row["id"]): row["price"] for row in project.rows()}
    topic = keyed(messages(project))
    stale = {key for key, price in table.items() if topic.get(key) != price}
    assert len(table) == KEYS
    assert not stale, f"{len(stale)} keys are stale"


@pytest.mark.parametrize("seed", few(range(10), 3))
def test_a_jvm_that_wakes_after_its_command_was_killed_sends_nothing_behind_newer_rows(onward: Project, seed: int) -> None:
    project = upserts(onward)
    changed(project, 0)
    ran(project)
    changed(project, 1)
    reached = random.Random(seed).randrange(1, KEYS // 2)
    with sender(project, f"sending {reached}", signal.SIGKILL) as process:
        process.wait(PATIENCE)
        changed(project, 2)
        assert sum(ran(project)) >= KEYS
        os.killpg(process.pid, signal.SIGCONT)
        until(lambda: not is_alive(process.pid), "the JVM that woke up does not end", 60)
    assert_in_topic(project)


@pytest.mark.parametrize(
    ("point", "seed"), few([(point, 0) for point in ("begun", "shown")] + [("", seed) for seed in range(8)], ("", 5))
)
def test_a_sender_of_another_home_that_wakes_up_sends_nothing_behind_newer_rows(
    onward: Project, other_home: Path, point: str, seed: int
) -> None:
    project = upserts(onward)
    changed(project, 0)
    ran(project)
    changed(project, 1)
    point = point or f"sending {random.Random(seed).randrange(1, KEYS // 2)}"
    with sender(project, point, signal.SIGSTOP, other_home) as process:
        changed(project, 2)
        assert sum(ran(project)) >= KEYS
        os.killpg(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "turn-taken" in output
    assert_in_topic(project)


@pytest.mark.parametrize("point", few(("begun", "shown"), "begun"))
def test_a_delta_log_stays_at_the_later_commit_where_another_home_wakes_up(
    project: Project, other_home: Path, point: str
) -> None:
    delta_followers.prepare(project)
    send(project, {"id": 1, "price": 1})
    ran(project)
    send(project, {"id": 2, "price": 2})
    with sender(project, point, signal.SIGSTOP, other_home) as process:
        send(project, {"id": 3, "price": 3})
        ran(project)
        os.killpg(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "turn-taken" in output
    assert delta_followers.visible_rows(project) == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_run_whose_follower_is_shown_by_another_process_says_so(onward: Project) -> None:
    project = upserts(onward)
    send(project, {"id": 1, "price": 1})
    with sender(project, "begun", signal.SIGSTOP) as process:
        send(project, {"id": 1, "price": 2})
        context = project.context()
        pipeline = context.plan.pipelines[0]
        list(batches(context, pipeline))
        (followed,) = follow.after_run(context, pipeline)
        assert followed.trouble is not None
        assert followed.trouble.code == "turn-taken"
        assert end_of(project.bootstrap, f"{project.topic}_on") == 0
        os.killpg(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=PATIENCE)
    assert "turn-taken" not in output
    assert keyed(messages(project)) == {"1": 2}
