"""`sluice history` beside real tables: a line for each commit and for each move of the position, and where `rollback --to TIME` goes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from framework.base import iso_times
from framework.base.errors import SluiceError
from framework.core.iceberg import metadata
from framework.core.maintain.maintain import maintain
from framework.operations.forget import forget
from framework.operations.undo import accept, rewind, rollback
from tests.support.commands import sluice
from tests.support.project import Project
from tests.support.rollbacks import PLAIN, QUOTES, replayed, rolled_back, send, snapshots

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def commits(project: Project) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(sluice(project, "history", "trades", "--json").output)["commits"]
    return listed


def operations(project: Project) -> list[tuple[str, int | None]]:
    """Operation and batch of each line, the oldest first."""
    return [(commit["operation"], commit["batch"]) for commit in reversed(commits(project))]


def spans(project: Project) -> list[list[tuple[int | None, int]]]:
    return [[(part["from"], part["to"]) for part in commit["offsets"]] for commit in reversed(commits(project))]


def times(project: Project) -> dict[int, datetime]:
    """The time at which each of main's snapshots was published."""
    table = metadata.read(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    return {snapshot["snapshot-id"]: table.published(snapshot) for snapshot in table.ancestors()}


def three_batches(project: Project) -> None:
    project.make_topic(1)
    for _ in range(3):
        project.send_good(5, partition=0)
        project.run()


def test_a_rollback_is_a_line_and_each_snapshot_keeps_its_own_time(project: Project) -> None:
    three_batches(project)
    before = {commit["snapshot_id"]: commit["at"] for commit in commits(project)}
    first_snapshot = snapshots(project)[1]
    rolled_back(project, first_snapshot)
    project.run()
    project.assert_exactly_once()
    after = commits(project)
    ids = [commit["snapshot_id"] for commit in after if commit["snapshot_id"]]
    assert len(ids) == len(set(ids))
    assert all(before.get(commit["snapshot_id"], commit["at"]) == commit["at"] for commit in after)
    assert operations(project) == [("append", 0), ("append", 1), ("rollback", 4), ("append", 5)]
    assert spans(project) == [[], [(0, 5)], [(None, 5)], [(5, 15)]]
    line = after[1]
    assert (line["rows_added"], line["rows_deleted"], line["position_moved"]) == (0, 10, False)
    assert line["undone"] == {
        "from_snapshot": next(iter(before)), "to_snapshot": str(first_snapshot), "commits": 2, "batches": [2, 3],
    }  # fmt: skip
    text = sluice(project, "history", "trades").output
    assert "?" not in text
    assert f"back to snapshot {first_snapshot}, batches 2 – 3 undone" in " ".join(text.split())


def test_a_rollback_by_another_program_is_a_line_until_and_after_it_is_accepted(project: Project) -> None:
    three_batches(project)
    project.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {snapshots(project)[1]})")
    assert operations(project) == [("append", 0), ("append", 1), ("rollback", None)]
    assert "not Sluice's" in sluice(project, "history", "trades").output
    context = project.context()
    refused = accept.refusal(context, context.plan.pipelines[0])
    assert refused is not None
    accept.accept(context, context.plan.pipelines[0], refused)
    project.run()
    assert operations(project)[2:] == [("rollback", None), ("accept", 4), ("append", 5)]
    assert spans(project)[3:] == [[(None, 5)], [(5, 15)]]


def test_each_operation_that_is_no_batch_has_its_name(project: Project) -> None:
    project.template, project.more = QUOTES, "price"
    project.make_topic(1)
    send(project, {"a": 1, "b": 2})
    project.run()
    begun = datetime.now(timezone.utc)
    send(project, {"a": 3})
    project.run()
    context = project.context()
    assert list(maintain(context, context.plan.pipelines[0]))
    context = project.context()
    accept.move(context, context.plan.pipelines[0], rewind.judged(context, context.plan.pipelines[0], begun).moves)
    project.run()
    assert [name for name, _ in operations(project)][3:5] == ["compaction", "rewind"]
    assert [batch for _, batch in operations(project)] == [0, 1, 2, None, 3, 4]
    assert spans(project)[-2:] == [[(None, 2)], [(2, 3)]]
    context = project.context()
    pipeline = context.plan.pipelines[0]
    list(forget.forget(context, pipeline, forget.judged(context, pipeline, {"symbol": "b"}).key))
    send(project, {"c": 4})
    project.run()
    assert {name for name, batch in operations(project) if batch is None} == {"forget"}
    assert spans(project)[-1] == [(3, 4)]


def test_a_replay_has_its_name_and_no_offsets(project: Project) -> None:
    project.template, project.more = PLAIN, "10 / id"
    project.make_topic(1)
    project.send([json.dumps({"id": number % 3}).encode() for number in range(9)], partition=0)
    project.run()
    project.more = "10 / nullif(id, 0)"
    replayed(project)
    assert operations(project)[1:] == [("append", 1), ("replay", 2)]
    assert "9 – 9" not in sluice(project, "history", "trades").output


def test_a_rollback_to_a_time_takes_the_newest_snapshot_that_was_not_after_it(project: Project) -> None:
    three_batches(project)
    context, (pipeline, *_) = project.context(), project.plan.pipelines
    born, first_batch, second_batch, third_batch = snapshots(project)
    published = times(project)

    def chosen(moment: datetime) -> int:
        return rollback.judged(context, pipeline, moment).snapshot

    assert [chosen(published[snapshot]) for snapshot in (born, first_batch, second_batch, third_batch)] == [
        born,
        first_batch,
        second_batch,
        third_batch,
    ]
    almost = timedelta(microseconds=1)
    assert [chosen(published[snapshot] - almost) for snapshot in (first_batch, second_batch, third_batch)] == [
        born,
        first_batch,
        second_batch,
    ]
    assert chosen(published[third_batch] + timedelta(days=1)) == third_batch
    for commit in commits(project):  # a time that `history` prints is the time of that snapshot
        assert str(chosen(datetime.fromisoformat(commit["at"].replace("Z", "+00:00")))) == commit["snapshot_id"]

    rolled_back(project, first_batch)
    third_time = published[third_batch]
    meaning = rollback.judged(project.context(), pipeline, third_time)
    assert (meaning.snapshot, meaning.time, meaning.undone_before) == (first_batch, published[first_batch], third_batch)
    with pytest.raises(SluiceError) as refused:
        rollback.judged(context, pipeline, published[born] - almost)
    assert refused.value.code == "no-snapshot-then"
    assert f"the oldest one is {born} of {iso_times.text(published[born])}" in refused.value.message
    assert f"`sluice rollback trades --to {iso_times.text(published[born])}`" in (refused.value.hint or "")
    assert chosen(published[born]) == born
