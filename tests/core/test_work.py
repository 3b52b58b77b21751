"""The sums of all batches of a table: each batch counts once, and nothing is taken back."""

from __future__ import annotations

import pytest

from framework.core.rules import work
from framework.core.rules.work import OTHERS, PROPERTY, Work
from tests.support.project import Project, losing_answers
from tests.support.rebuilds import run_rebuild
from tests.support.rollbacks import rolled_back, snapshots

DONE = Work(batches=1, read=5, rows=3, bad={"undecodable": 2}, seconds={"stage": 0.1234}, lasted={"0.25": 1})


def test_sums_are_read_as_they_were_written() -> None:
    total = DONE + DONE + Work(batches=1, bad={"too-old": 1})
    assert work.read({PROPERTY: total.text()}) == total
    assert (total.batches, total.rows, dict(total.bad)) == (3, 6, {"undecodable": 4, "too-old": 1})
    assert total.seconds["stage"] == pytest.approx(0.247)


NO_SUMS = [
    "", "no json", "[]", "null", "[" * 100_000, '{"rows": "many"}', '{"rows": [1]}', '{"rows": true}', '{"rows": -1}', '{"rows": 1.5}',
    '{"rows": 1' + 400 * "0" + "}", '{"bad": 3}', '{"bad": {"a": "b"}}', '{"bad": {"\\ud800": 1}}', '{"seconds": {"stage": NaN}}',
    '{"seconds": {"stage": Infinity}}', '{"seconds": {"stage": 1' + 400 * "0" + "}}",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_SUMS, ids=range(len(NO_SUMS)))
def test_what_cannot_be_read_counts_as_none(text: str) -> None:
    assert work.read({PROPERTY: text}) == Work()
    assert work.read({}) == Work()


def test_what_a_later_version_counts_is_left_out() -> None:
    assert work.read({PROPERTY: '{"rows": 3, "watts": {"a": 1}}'}) == Work(rows=3)


def test_many_names_become_one() -> None:
    total = sum((Work(unmet={f"rule{number}": 1}) for number in range(100)), Work())
    assert len(total.unmet) == 51 and sum(total.unmet.values()) == 100 and total.unmet[OTHERS] == 50


@pytest.mark.parametrize(("seconds", "name"), [(0.0, "0.25"), (0.25, "0.25"), (0.26, "0.5"), (300.0, "300.0"), (301.0, "+Inf")])
def test_a_batch_is_counted_at_the_least_bound(seconds: float, name: str) -> None:
    assert work.bound(seconds) == name


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_each_batch_counts_once_whatever_the_catalog_answers(project: Project) -> None:
    project.make_topic()
    project.send_good(30, bad_every=10)
    commit, lost = losing_answers(1)
    project.run(commit=commit)
    assert len(lost) == 1
    project.send_good(20)
    project.run()
    project.assert_counted_once()
    done = project.work()
    assert (done.batches, dict(done.bad)) == (2, {"undecodable": 3})
    assert done.seconds["stage"] > 0 and sum(done.lasted.values()) == 2
    assert done.files == len(project.files()) and done.bytes > 0
    rolled_back(project, snapshots(project)[1])
    assert project.work() == done, "the work was done, though its rows are gone"
    run_rebuild(project)
    assert project.work().read == done.read + 50, "a rebuild reads all once more"
