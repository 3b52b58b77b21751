"""Commits of other programs in Dagster: each is an observation of the table, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance, build_sensor_context

from framework.core.rules import refusals
from framework.host.assets import build_sluice_definitions, other_commits
from framework.plan import Plan
from tests.support.project import plan_for
from tests.support.shop import NOWHERE, append, catalog, made_by_hand, specs

pytestmark = pytest.mark.slow
KEY = AssetKey(["lake", "shop", "trades"])


@pytest.fixture
def plan(own_folder: Path) -> Plan:
    return plan_for(own_folder, NOWHERE, specs("n: bigint; price: double"))


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as ephemeral_instance:
        yield ephemeral_instance


def tick(instance: DagsterInstance, cursor: str | None) -> str | None:
    (folder,) = Path("specs").iterdir()
    (sensor,) = [sensor for sensor in build_sluice_definitions(folder).sensors or [] if sensor.name == "Table_states"]
    result: Any = sensor.evaluate_tick(build_sensor_context(instance, cursor=cursor))
    return str(result.cursor)


def observed(instance: DagsterInstance) -> list[tuple[Any, ...]]:
    """The commits that were observed, the oldest first."""
    events = [record.asset_observation for record in instance.fetch_observations(KEY, limit=50).records[::-1]]
    names = ("commit_of", "operation", "added_rows", "snapshot")
    return [tuple(event.metadata[name].value for name in names) for event in events if event and "commit_of" in event.metadata]


def snapshot() -> str:
    current = catalog().load_table("shop.trades").current_snapshot()
    assert current is not None
    return str(current.snapshot_id)


def test_each_commit_of_another_program_is_observed_once(plan: Plan, instance: DagsterInstance) -> None:
    cursor = tick(instance, None)
    made_by_hand(refusals.owner(plan.pipelines[0]))
    cursor = tick(instance, cursor)
    assert observed(instance) == [], "what was committed before the first look is old"
    append("trades")
    first = snapshot()
    append("trades")
    second = snapshot()
    cursor = tick(instance, cursor)
    expected = [("another program", "append", 1, first), ("another program", "append", 1, second)]
    assert observed(instance) == expected
    cursor = tick(instance, cursor)
    assert observed(instance) == expected
    catalog().load_table("shop.trades").delete("n = 1")
    tick(instance, cursor)
    assert [operation for _, operation, *_ in observed(instance)[2:]] == ["delete"]


def test_what_another_program_publishes_from_a_branch_is_observed(plan: Plan, instance: DagsterInstance) -> None:
    made_by_hand(refusals.owner(plan.pipelines[0]))
    table = catalog().load_table("shop.trades")
    main = table.current_snapshot()
    assert main is not None
    table.manage_snapshots().create_branch(snapshot_id=main.snapshot_id, branch_name="audit").commit()
    table.append(table.scan().to_arrow(), branch="audit")
    cursor = tick(instance, None)
    audited = catalog().load_table("shop.trades").metadata.refs["audit"].snapshot_id
    table = catalog().load_table("shop.trades")
    table.manage_snapshots().remove_branch("audit").create_branch(snapshot_id=audited, branch_name="main").commit()
    assert snapshot() == str(audited)
    tick(instance, cursor)
    assert [number for *_, number in observed(instance)] == [str(audited)]


def test_a_summary_that_cannot_be_read_ends_no_tick(plan: Plan, instance: DagsterInstance) -> None:
    made_by_hand(refusals.owner(plan.pipelines[0]))
    cursor = tick(instance, None)
    append("trades")
    with pytest.MonkeyPatch.context() as patch:
        # PyIceberg, which writes this table, counts rightly.
        patch.setattr(other_commits, "foreign_commits", lambda _table: iter([int("many")]))
        cursor = tick(instance, cursor)
    append("trades")
    tick(instance, cursor)
    assert [number for *_, number in observed(instance)] == [snapshot()]


def test_another_table_of_the_name_begins_anew(plan: Plan, instance: DagsterInstance) -> None:
    made_by_hand(refusals.owner(plan.pipelines[0]))
    append("trades")
    cursor = tick(instance, tick(instance, None))
    catalog().drop_table("shop.trades")
    made_by_hand(refusals.owner(plan.pipelines[0]))
    cursor = tick(instance, cursor)
    append("trades")
    tick(instance, cursor)
    assert [number for *_, number in observed(instance)] == [snapshot()]


def test_a_catalog_that_does_not_answer_forgets_nothing(plan: Plan, instance: DagsterInstance) -> None:
    made_by_hand(refusals.owner(plan.pipelines[0]))
    cursor = tick(instance, None)
    append("trades")
    database = Path("lake.db")
    database.rename("elsewhere.db")
    database.mkdir()
    cursor = tick(instance, cursor)
    database.rmdir()
    Path("elsewhere.db").rename(database)
    tick(instance, cursor)
    assert [number for *_, number in observed(instance)] == [snapshot()]


@pytest.mark.parametrize("cursor", ["no json", "[]", "3", '{"trades": 3}', '{"trades": ["a"]}'])
def test_a_cursor_that_cannot_be_read_is_that_of_a_first_look(plan: Plan, instance: DagsterInstance, cursor: str) -> None:
    made_by_hand(refusals.owner(plan.pipelines[0]))
    append("trades")
    assert tick(instance, cursor) == tick(instance, None) and observed(instance) == []
