"""Every write mode, and every step that remembers rows: Sluice's own, and a toy of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.core.rules import protocol
from framework.documents.pipeline.written_into import WRITES
from framework.documents.write_mode import WriteMode, write_mode
from framework.host.components import COMPONENTS
from framework.operations.reference import examples
from framework.operations.trials.trial import Trials
from framework.plan import compare
from tests import toys
from tests.support.kill_points import Died, dies_at
from tests.support.project import Project, ids, plan_for
from tests.support.rebuilds import run_rebuild
from tests.support.refusals import accept_it

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APART = ("cli", "metrics", "targets", "watchers")  # what adds nothing to the language
SPEC = """
topic: orders
kafka_name: {{topic}}
value: json
columns: {{{{id: {{{{type: bigint, required: true}}}}, price: double}}}}
---
pipeline: trades
from: {{{{topic: orders}}}}
{steps}
into: {{{{table: {{namespace}}.trades, {into}}}}}
"""


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


def every_mode() -> list[str]:
    with toys.installed():
        return list(COMPONENTS.writes.names())


def of_topics() -> list[str]:
    with toys.installed():
        return [name for name in every_mode() if not write_mode(name).whole]


def project_of(project: Project, steps: str = "", into: str = "write: append") -> Project:
    project.template = SPEC.format(steps=steps, into=into)
    project.make_topic(3)
    return project


@pytest.mark.parametrize("name", every_mode())
def test_each_mode_is_declared(name: str) -> None:
    write = write_mode(name)
    assert isinstance(write, WriteMode)
    assert write.does[0].islower()
    assert not write.does.endswith(".")
    assert f"`{name}` {write.does}" in WRITES.help("How rows are written to the table.")
    assert COMPONENTS.writes.load(name).__doc__


def test_a_toy_needs_no_second_file() -> None:
    """The folder of each toy is installed, with its one file and its case."""
    for kind in toys.FOLDER.iterdir():
        if kind.is_dir() and not kind.name.startswith("_"):
            assert {path.suffix for path in kind.iterdir() if path.is_file()} <= {".py", ".case"}
            toys_of_kind = {path.stem for path in kind.glob("*.py")}
            assert toys_of_kind, f"no toy of {kind.name}"
            cases = {path.stem for path in kind.glob("*.case")}
            assert cases == (set() if kind.name in APART else toys_of_kind)
    text = "".join(path.read_text(encoding="utf-8") for path in (toys.FOLDER.parent.parent / "framework").rglob("*.py"))
    assert not [toy.stem for toy in toys.FOLDER.glob("*/*.py") if re.search(rf"\b{toy.stem}\b", text)]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("name", of_topics())
def test_a_mode_lands_each_message_once(name: str, project: Project) -> None:
    """A batch that dies after its staging, and one that dies after its commit, lose no row and double none."""
    keys = ", keys: [id]" if write_mode(name).by_key else ""
    adds_up = (
        "steps:\n  - aggregate:\n      by: [id]\n      measures:\n        price: sum(price)" if write_mode(name).groups else ""
    )
    project_of(project, adds_up, f"write: {name}{keys}")
    project.send_good(3)
    project.run()
    assert ids(project) == [0, 1, 2]
    project.send([b'{"id": 7, "price": 1}', b"not json"])
    for point in ("staged", "published"):
        with pytest.raises(Died):
            project.run(at=dies_at(point))
    project.run()
    assert ids(project) == [0, 1, 2, 7]
    assert len(project.rows(bad=True)) == 1
    assert project.branches() == []


def every_step() -> list[str]:
    with toys.installed():
        return list(COMPONENTS.steps.names())


@pytest.mark.spark
@pytest.mark.parametrize("name", every_step())
def test_the_example_of_a_step_holds(name: str, lake: Path, spark: SparkSession) -> None:
    plan = plan_for(lake, "127.0.0.1:1", examples.spec(COMPONENTS.steps.load(name).EXAMPLE, f"the_{name}"))
    pipeline = plan.pipeline(f"the_{name}")
    assert pipeline is not None
    (example,) = pipeline.examples
    outcome = Trials(spark, plan).run(pipeline, example)
    assert outcome.error is None
    assert compare.differences(example, pipeline.table.columns, outcome.rows, outcome.bad) == ()


@pytest.fixture
def memory_project(project: Project) -> Project:
    return project_of(project, "steps: [{{first_of: [id]}}]")


def orders(project: Project, *numbers: int) -> None:
    project.send([b'{"id": %d, "price": 1}' % number for number in numbers])


@pytest.mark.spark
@pytest.mark.kafka
def test_a_step_remembers_rows_across_batches(memory_project: Project) -> None:
    orders(memory_project, 1, 2, 1)
    (batch,) = memory_project.run()
    assert (batch.read, batch.rows, batch.filtered) == (3, 2, 1)
    orders(memory_project, 2, 3)
    (batch,) = memory_project.run()
    assert ids(memory_project) == [1, 2, 3]
    assert (batch.read, batch.rows, batch.filtered) == (2, 1, 1)


@pytest.mark.spark
@pytest.mark.kafka
def test_what_a_step_remembers_is_published_with_the_batch_or_not_at_all(memory_project: Project) -> None:
    orders(memory_project, 1)
    memory_project.run()
    orders(memory_project, 1, 2)
    for point in ("staged_state", "checked", "published"):
        with pytest.raises(Died):
            memory_project.run(at=dies_at(point))
    orders(memory_project, 2, 3)
    memory_project.run()
    assert ids(memory_project) == [1, 2, 3]
    assert memory_project.branches() == []


@pytest.mark.spark
@pytest.mark.kafka
def test_a_rollback_restores_the_rows_that_a_step_remembers(memory_project: Project) -> None:
    orders(memory_project, 1)
    memory_project.run()
    good_snapshot = memory_project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    orders(memory_project, 2)
    memory_project.run()
    memory_project.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {good_snapshot})")
    accept_it(memory_project)
    memory_project.run()
    orders(memory_project, 1, 2)
    memory_project.run()
    assert ids(memory_project) == [1, 2]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_rebuild_remembers_the_rows_that_it_read(memory_project: Project) -> None:
    orders(memory_project, 1, 2, 1)
    memory_project.run()
    memory_project.template = SPEC.format(steps="steps: [{{filter: id <> 2}}, {{first_of: [id]}}]", into="write: append")
    run_rebuild(memory_project)
    orders(memory_project, 1, 3)
    memory_project.run()
    assert ids(memory_project) == [1, 3]
    assert protocol.state_branch("firstof", "all") in [ref for (ref,) in memory_project.sql("select name from {table}.refs")]


@pytest.mark.spark
@pytest.mark.kafka
def test_a_table_that_remembers_nothing_is_rebuilt_first(project: Project) -> None:
    """The table does not know which rows came before."""
    from framework.base.errors import ColumnsChanged

    project_of(project)
    orders(project, 1)
    project.run()
    project.template = SPEC.format(steps="steps: [{{first_of: [id]}}]", into="write: append")
    orders(project, 1)
    with pytest.raises(ColumnsChanged, match="the first row of each id"):
        project.run()
