"""Tags and branches of other programs in a table, whatever their names: nothing changes them but `sluice forget`, which names them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from framework.core.iceberg import metadata
from framework.core.maintain.maintain import maintain
from framework.core.rules import protocol
from framework.operations.drop import drop
from framework.operations.forget import forget
from framework.plan.follower import is_follower_tag
from tests.support.people import ANN, BOB, UPSERT, emails, files_with, forgotten, orders, trades
from tests.support.project import Project
from tests.support.rebuilds import rebuilt
from tests.support.rollbacks import rolled_back, snapshots

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DEAD = f"0190a0b1c2d3{20 * 'a'}"  # the name of an attempt of long ago
TAGS = (
    "sluice-backup-2026-11-28", "sluice-deletes-all", "sluice_empty2", f"sluice_{DEAD}", "sluice-also-mine", "nightly/2026.11 ü 'x' \"y\"",
    "with\x1b[31m\nlines",
)  # fmt: skip
BRANCHES = (
    "sluice_pin", "sluice_empty", "sluice-backup-all", "sluice-backup-2026-11-27", "sluice_backup", "sluice-also-delta-mine",
    "sluice-also-b", "etl`s",
)  # fmt: skip


@pytest.fixture
def shared(project: Project) -> Project:
    """A table of two batches, with tags and branches of another program. Each branch has a row of its own."""
    project.template = UPSERT
    project.more = "maintain: {compact_every: 1m, keep_snapshots_for: 1h, keep_at_least: 1}"
    project.make_topic(1)
    project.produce([*orders(ANN, BOB), {"key": ANN, "value": None, "partition": 0}])
    project.run()
    project.produce(orders(ANN))
    project.run()
    table = loaded(project)
    snapshot = table.currentSnapshot().snapshotId()
    for name in TAGS:
        table.manageSnapshots().createTag(name, snapshot).commit()
    for name in BRANCHES:
        table.manageSnapshots().createBranch(name, snapshot).commit()
        if "`" not in name:
            project.sql(f"INSERT INTO {{table}}.`branch_{name}` SELECT * FROM {{table}} WHERE email = '{ANN}'")
    return project


def loaded(project: Project, bad: bool = False) -> Any:
    context = project.context()
    table = trades(context).table
    return context.lake(trades(context)).load(table.bad_rows if bad else table.identifier)


def foreign_refs(project: Project) -> Mapping[str, int]:
    table = metadata.read(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    return {name: snapshot for name, snapshot in table.refs.items() if name in (*TAGS, *BRANCHES)}


def test_tags_and_branches_of_others_survive_all_that_changes_a_table(shared: Project) -> None:
    before = foreign_refs(shared)
    assert len(before) == len(TAGS) + len(BRANCHES)
    shared.produce([*orders("carl"), {"key": BOB, "value": None, "partition": 0}])
    shared.run()
    assert foreign_refs(shared) == before
    rolled_back(shared, snapshots(shared)[1])
    assert foreign_refs(shared) == before
    shared.run()
    shared.clock = lambda: datetime.now(timezone.utc) + timedelta(days=1)
    for _ in range(2):
        list(maintain(shared.context(), shared.pipeline))
    assert foreign_refs(shared) == before
    shared.more += "\nsteps: [{derive: {twice: amount * 2}}]"
    context = shared.context()
    rebuilt(context, trades(context))
    assert foreign_refs(shared) == before
    assert emails(shared) == [ANN, "carl"]
    for name in BRANCHES[:-1]:
        assert shared.sql(f"SELECT count(*) FROM {{table}}.`branch_{name}`") == [(3,)]
    table = metadata.read(shared.pipeline.table.catalog, shared.pipeline.table.identifier)
    assert table is not None and dict(table.diverged) == dict.fromkeys(BRANCHES[:-1], 1)
    assert drop.of_pipeline(shared.pipeline)[-1].diverged == table.diverged
    for name in TAGS[:5]:
        assert shared.sql(f"SELECT count(*) FROM {{table}}.`tag_{name}`") == [(2,)]


def test_forgetting_removes_and_names_tags_and_branches_of_others_whatever_their_names(shared: Project) -> None:
    shared.produce([{"key": ANN, "value": b"not json", "partition": 0}])
    shared.run()
    bad_rows = loaded(shared, bad=True)
    snapshot = bad_rows.currentSnapshot().snapshotId()
    bad_rows.manageSnapshots().createBranch("sluice-backup-all", snapshot).createTag("audit", snapshot).commit()
    meaning = forget.judged(shared.context(), shared.pipeline, {"email": ANN})
    assert set(meaning.pins) == {*TAGS, *BRANCHES, "audit"}
    assert dict(meaning.diverged) == dict.fromkeys(BRANCHES[:-1], 1)
    lines = forgotten(shared)
    assert files_with(shared) == set()
    assert foreign_refs(shared) == {}
    assert len([line for line in lines if "which kept an older snapshot" in line]) == len(TAGS) + len(BRANCHES) + 2
    assert set(loaded(shared, bad=True).refs()) == {"main"}
    assert all(line.isprintable() for line in lines)
    assert emails(shared) == [BOB]


def test_a_branch_with_the_person_that_began_after_forgetting_goes_with_the_next(project: Project) -> None:
    project.template = UPSERT
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    forgotten(project)
    table = loaded(project)
    for name in ("clean", "with_the_person", "sluice-etl-all"):
        table.manageSnapshots().createBranch(name, table.currentSnapshot().snapshotId()).commit()
        email = BOB if name == "clean" else ANN
        columns = ", ".join(
            f"'{email}' AS email" if column == "email" else column for column in project.spark.table(project.table).columns
        )
        project.sql(f"INSERT INTO {{table}}.`branch_{name}` SELECT {columns} FROM {{table}}")
    assert files_with(project)
    lines = forgotten(project)
    assert [line for line in lines if "with_the_person" in line] == ["`with_the_person`, which kept an older snapshot, is gone"]
    assert files_with(project) == set()
    assert "clean" in loaded(project).refs()


def test_only_the_own_names_of_tags_are_a_followers() -> None:
    follower_tags = (
        "sluice-also-topic-0123456789ab",
        "sluice-also-delta-0123456789ab-showing",
        "sluice-also-catalog-nightly-before",
    )
    assert all(map(is_follower_tag, follower_tags))
    assert not any(map(is_follower_tag, ("sluice-also-mine", "sluice-also-delta-x", "sluice-also-topic-0123456789", "sluice")))
    assert is_follower_tag(follower_tags[1], "delta") and not is_follower_tag(follower_tags[0], "delta")


@pytest.mark.parametrize(
    ("line", "is_state"),
    [
        ([({"sluice.attempt": "a"}, 1)], True),
        ([({}, 2), ({"sluice.rebuilt": "b"}, 1)], True),
        ([({"sluice.position": "{}", "total-records": "0"}, None)], True),
        ([({}, 1)], True),
        ([({}, 1), ({"sluice.attempt": "a", "sluice.position": "{}"}, 0)], False),
        ([({"total-records": "3"}, None)], False),
    ],
    ids=["of an attempt", "of a rebuild", "empty", "expired", "of a batch", "of an adopted table"],
)  # fmt: skip
def test_a_branch_is_a_states_by_the_snapshots_that_it_has(line: list[tuple[dict[str, str], int | None]], is_state: bool) -> None:
    assert protocol.is_state_line(line) is is_state
