"""Tests that every follower passes: Sluice's own, and the toy `tests/toys/followers/tally.py`, which nothing else names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from framework.base.errors import SluiceError
from framework.core.follow import follow
from framework.core.maintain import maintain
from framework.host.components import COMPONENTS
from framework.language.shapes import record_shape
from framework.language.words import example
from framework.operations.observe.status import status_of
from tests import toys
from tests.support.kill_points import Died
from tests.support.project import Project
from tests.support.runs import errors
from tests.support.selection import few

SPEC = """
topic: trades
kafka_name: {{topic}}
value: json
columns: {{{{id: bigint, price: double}}}}
---
pipeline: trades
from: {{{{topic: trades}}}}
into: {{{{table: {{namespace}}.trades, catalog: lake}}}}
{option}: [{also}]
---
catalog: open_catalog
type: sql
uri: sqlite:///open.db
warehouse: warehouse
"""
BESIDES = {"catalog": "publish"}  # options of a pipeline other than `also`


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


def every() -> list[str]:
    with toys.installed():
        return list(COMPONENTS.followers.names())


def project_of(project: Project, name: str) -> Project:
    written = example(record_shape(COMPONENTS.followers.load(name).Options)).replace("{", "{{").replace("}", "}}")
    written = written.replace("markets.", "seen_{namespace}.")
    project.template = SPEC.format(option=BESIDES.get(name, "also"), also=written)
    project.make_topic(1)
    return project


@pytest.mark.parametrize("name", every())
def test_each_is_declared(name: str) -> None:
    file = COMPONENTS.followers.load(name)
    assert file.__doc__
    assert file.Options.known_by == (None if name in BESIDES else name)
    assert record_shape(file.Options).slots[name].required


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("name", few(every(), "topic"))
def test_each_catches_up_whatever_dies_when(name: str, project: Project) -> None:
    """The table has its rows in each case, and the follower has them after the next run."""
    project_of(project, name)
    assert states(project) == [("pending", 0)]
    for point in follow.KILL_POINTS:
        project.send_good(2, partition=0)
        with suppress(Died):
            run(project, dies_at(point))
    assert len(project.rows()) == 2 * len(follow.KILL_POINTS)
    assert run(project) == []
    assert states(project) == [("connected", 0)]
    assert run(project) == []


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("name", few(every(), "delta"))
def test_each_fails_alone(name: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project_of(project, name)
    project.send_good(3, partition=0)

    def fails(_committed: Any) -> int:
        raise SluiceError("away", "nobody is there")

    with monkeypatch.context() as patched:
        # Each follower fails by other means from outside; here all fail alike.
        patched.setattr(COMPONENTS.followers.load(name), "follow", fails)
        (error,) = run(project)
    assert "has all rows" in str(error)
    assert len(project.rows()) == 3
    assert states(project) == [("failing", 1 if name == "catalog" else 3)]  # commits, or rows
    assert status_of(project.plan, project.pipeline).bad
    assert run(project) == []
    assert states(project) == [("connected", 0)]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_follower_that_the_spec_no_longer_has_keeps_no_snapshot(project: Project) -> None:
    project_of(project, "tally")
    project.send_good(1, partition=0)
    run(project)
    assert any(name.startswith("sluice-also-") for (name,) in project.sql("select name from {table}.refs"))
    project.template = project.template.replace("also:", "tests: []\n#")
    context = project.context()
    list(maintain.maintain(context, context.plan.pipelines[0]))
    assert not any(name.startswith("sluice-also-") for (name,) in project.sql("select name from {table}.refs"))


@pytest.mark.spark
@pytest.mark.kafka
def test_two_runs_at_once_show_rows_in_turn(project: Project) -> None:
    """The second run reports that the first is serving the follower, and leaves it to that."""
    project_of(project, "tally")
    project.send_good(1, partition=0)
    outcomes: list[Any] = []

    def meanwhile(point: str) -> None:
        if point == "shown":
            outcomes.extend(error.code for error in run(project))
            outcomes.append("ran")

    assert run(project, meanwhile) == []
    assert outcomes == ["turn-taken", "ran"]
    assert states(project) == [("connected", 0)]


def run(project: Project, on_point: Any = None) -> list[Any]:
    context = project.context(on_point)
    return errors(context, context.plan.pipelines)


def states(project: Project) -> list[tuple[str, int]]:
    return [(follower.state, follower.rows) for follower in status_of(project.plan, project.pipeline).followers]


def dies_at(point: str) -> Any:
    def die(reached: str) -> None:
        if reached == point:
            raise Died

    return die
