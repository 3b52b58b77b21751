"""`rollback`, `rewind` and `replay` undo or repeat the work of batches, and each message stays somewhere exactly once."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import pytest
from click.testing import CliRunner

from framework.base.errors import RefusedError, SluiceError
from framework.core.context.context import Context
from framework.core.iceberg.updates import commit_transaction
from framework.core.rules import read_again as conditions
from framework.core.rules.protocol import KILL_POINTS, Position
from framework.core.sources import diff
from framework.host.cli import main
from framework.operations.forget import forget
from framework.operations.observe.bad_row_report import quarantine
from framework.operations.observe.progress import read_progress
from framework.operations.undo import accept, read_again, replay, rewind, rollback
from tests.support.commands import without
from tests.support.project import BASE, Project, losing_answers
from tests.support.rollbacks import ORDERS, PLAIN, QUOTES, replayed, rolled_back, send, snapshots
from tests.support.runs import published
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class Died(BaseException):
    pass


@pytest.mark.long
def test_a_table_that_goes_back_reads_what_was_undone_again(project: Project) -> None:
    project.make_topic()
    counts = []
    for _ in range(3):
        project.send_good(30, bad_every=10)
        project.run()
        counts.append((len(project.rows()), len(project.rows(bad=True))))
    first_snapshot = snapshots(project)[1]
    meaning = rolled_back(project, first_snapshot)
    assert (meaning.undone, meaning.rows, meaning.rows_then) == (2, counts[2][0], counts[0][0])
    assert (meaning.messages, meaning.missing) == (60, 0)
    assert (len(project.rows()), len(project.rows(bad=True))) == counts[0]
    (batch,) = project.run()
    assert (batch.number, batch.read) == (5, 60)
    project.assert_exactly_once()
    assert (len(project.rows()), len(project.rows(bad=True))) == counts[2]


def test_a_rollback_that_dies_before_the_bad_rows_follow_is_ended_by_the_next_run(project: Project) -> None:
    project.make_topic()
    for _ in range(2):
        project.send_good(30, bad_every=10)
        project.run()

    def die(transaction: Any) -> None:
        commit_transaction(transaction)
        raise Died

    with pytest.raises(Died):
        rolled_back(project, snapshots(project)[1], project.context(commit=die))
    project.run()
    project.assert_exactly_once()


@pytest.mark.long
def test_a_rollback_takes_remembered_deletes_along(project: Project) -> None:
    project.template, project.more = QUOTES, "price"
    project.make_topic(1)
    send(project, {"a": 1, "b": 2})
    project.run()
    send(project, {"a": None, "b": 3})
    project.run()
    rolled_back(project, snapshots(project)[1])
    assert prices(project) == {"a": 1, "b": 2}
    project.run()
    assert prices(project) == {"b": 3}
    send(project, {"a": 4})
    project.run()
    assert prices(project) == {"a": 4, "b": 3}


def test_where_a_table_cannot_go_back(project: Project) -> None:
    project.make_topic(1)
    project.send_good(3, partition=0)
    project.run()
    context, (pipeline, *_) = project.context(), project.plan.pipelines
    with pytest.raises(SluiceError, match="has no snapshot 1"):
        rollback.judged(context, pipeline, 1)
    with pytest.raises(SluiceError, match=r"has no snapshot of 2020-01-01T00:00:00Z or before; the oldest one is \d+ of 2"):
        rollback.judged(context, pipeline, datetime(2020, 1, 1, tzinfo=timezone.utc))
    meaning = rollback.judged(context, pipeline, snapshots(project)[1])
    assert (meaning.undone, meaning.messages) == (0, 0)
    meaning = rollback.judged(context, pipeline, snapshots(project)[0])
    project.send_good(3, partition=0)
    project.run()
    with pytest.raises(SluiceError) as error:
        accept.move(context, pipeline, meaning.moves)
    assert error.value.code == "table-busy"


def prices(project: Project) -> dict[str, Any]:
    return {row["symbol"]: row["shown"] for row in project.rows()}


def test_a_rewind_reads_again_without_doubles(project: Project) -> None:
    project.template, project.more = QUOTES, "price"
    project.make_topic(1)
    send(project, {"a": 1, "gone": 5})
    project.run()
    begun = datetime.now(timezone.utc)
    send(project, {"b": 2, "gone": None})
    send(project, {"c": 3}, broken=True)
    project.run()
    project.more = "price * 10"
    context = project.context()
    meaning = rewind.judged(context, context.plan.pipelines[0], begun)
    assert meaning.messages == 3
    accept.move(context, context.plan.pipelines[0], meaning.moves)
    assert [row["offset"] for row in project.rows(bad=True)] == []
    (batch,) = project.run()
    assert batch.read == 3
    assert prices(project) == {"a": 1, "b": 20}
    assert [row["offset"] for row in project.rows(bad=True)] == [4]
    first_snapshot = snapshots(project)[1]
    with pytest.raises(RefusedError, match="says no offsets to return to"):
        rollback.judged(project.context(), project.pipeline, first_snapshot)


def test_what_cannot_be_rewound_says_what_can_be_done(project: Project) -> None:
    with pytest.raises(RefusedError) as error:
        rewind.judged(project.context(), project.pipeline, datetime(2026, 1, 5, tzinfo=timezone.utc))
    assert error.value.code == "cannot-rewind"
    assert "second row" in error.value.message
    assert "`sluice rollback trades --to 2026-01-05T00:00:00Z`" in (error.value.hint or "")


@pytest.mark.long
def test_bad_rows_are_replayed_by_the_spec_of_now(project: Project) -> None:
    project.template = PLAIN
    project.more = "10 / id"
    project.make_topic(1)
    project.send([json.dumps({"id": number % 3}).encode() for number in range(9)] + [b"{"], partition=0)
    project.run()
    assert Counter(row["code"] for row in project.rows(bad=True)) == {"step_failed": 3, "undecodable": 1}
    project.more = "10 / nullif(id, 0)"
    context = project.context()
    trial = replay.tried(context, context.plan.pipelines[0], replay.condition(""))
    assert (trial.messages, trial.rows, [(code, count) for code, _, count in trial.bad]) == (4, 3, [("undecodable", 1)])
    (batch,) = replayed(project)
    assert (batch.read, batch.rows, batch.bad) == (4, 3, 1)
    project.assert_exactly_once()
    assert Counter(row["state"] for row in project.rows(bad=True)) == {"replayed": 3, "open": 1}
    assert [row["_kafka_offset"] for row in project.rows() if row["id"] == 0] == [0, 3, 6]
    assert project.branches() == []
    assert [batch.read for batch in replayed(project)] == [1]  # only this message is tried again
    assert len(project.rows()) == 9


@pytest.mark.long
@pytest.mark.parametrize("point", KILL_POINTS)
def test_a_replay_dies_at(project: Project, point: str) -> None:
    _with_bad_rows(project)

    def die(reached: str) -> None:
        if reached == point:
            raise Died

    with suppress(Died):
        replayed(project, context=project.context(die))
    project.send([json.dumps({"id": 1}).encode()], partition=0)
    project.run()
    project.assert_exactly_once()
    replayed(project)
    project.assert_exactly_once()
    assert Counter(row["state"] for row in project.rows(bad=True)) == {"replayed": 3}


@pytest.mark.long
def test_a_rollback_opens_what_was_replayed_since(project: Project) -> None:
    project.template = PLAIN
    project.more = "10 / id"
    project.make_topic(1)
    project.send([json.dumps({"id": number % 3}).encode() for number in range(9)], partition=0)
    project.run()
    before = snapshots(project)[-1]
    project.more = "10 / nullif(id, 0)"
    replayed(project)
    project.send([json.dumps({"id": 1}).encode()], partition=0)
    project.run()
    rolled_back(project, before)
    assert Counter(row["state"] for row in project.rows(bad=True)) == {"open": 3}
    assert len(project.rows()) == 6
    project.run()
    replayed(project)
    project.assert_exactly_once()


@pytest.mark.long
def test_only_items_that_were_bad_land(project: Project) -> None:
    project.template, project.more = ORDERS, "cast(item.amount as int)"
    project.make_topic(1)
    amounts = [["1", "x", "3"], ["y", "5"], ["6"]]
    orders = [{"id": number, "items": [{"sku": "s", "amount": amount} for amount in row]} for number, row in enumerate(amounts)]
    project.send([json.dumps(order).encode() for order in orders] + [b"{"], partition=0)
    project.run()
    assert sorted(row["amount"] for row in project.rows()) == [1, 3, 5, 6]
    project.more = "cast(nullif(item.amount, 'x') as int)"
    (batch,) = replayed(project)
    assert (batch.rows, batch.bad) == (1, 2)
    assert sorted((row["id"], row["amount"] or 0) for row in project.rows()) == [(0, 0), (0, 1), (0, 3), (1, 5), (2, 6)]
    states = {(row["offset"], row["item"]): row["state"] for row in project.rows(bad=True)}
    assert states == {(0, "2"): "replayed", (1, "1"): "open", (3, None): "open"}


@pytest.mark.long
def test_discarded_rows_are_not_tried_unless_they_are_named(project: Project) -> None:
    project.template = PLAIN
    project.more = "10 / id"
    project.make_topic(1)
    project.send([json.dumps({"id": 0}).encode()] * 2 + [b"{"], partition=0)
    project.run()
    context = project.context()
    assert replay.discard(context, project.pipeline, replay.condition("code = 'undecodable'")) == 1
    project.more = "10 / nullif(id, 0)"
    assert [batch.read for batch in replayed(project, "offset = 0")] == [1]
    assert Counter(row["state"] for row in project.rows(bad=True)) == {"discarded": 1, "replayed": 1, "open": 1}
    (watched,) = read_progress(project.plan)
    report = quarantine(project.pipeline, None, 5)
    assert (watched.bad_rows, report.rows, report.settled) == (1, 1, (("discarded", 1), ("replayed", 1)))
    assert [(batch.rows, batch.bad) for batch in replayed(project)] == [(1, 0)]
    assert [(batch.rows, batch.bad) for batch in replayed(project, "state = 'discarded'")] == [(0, 1)]


@pytest.mark.parametrize(
    ("where", "message"), [("codes = 'x'", "--where: there is no column"), ("code", "is string, not true or false")]
)
def test_what_a_condition_must_be(where: str, message: str) -> None:
    with pytest.raises(SluiceError, match=message):
        replay.condition(where)


@pytest.mark.long
def test_what_differs_between_two_snapshots(project: Project) -> None:
    project.template, project.more = QUOTES, "price"
    project.make_topic(1)
    send(project, {"a": 1, "b": 2, "c": 3})
    project.run()
    send(project, {"a": 5, "b": None, "d": 4})
    project.run()
    lake, pipeline = project.context().lake(project.pipeline), project.pipeline
    _, first_snapshot, second_snapshot = snapshots(project)
    assert diff.snapshots(pipeline, first_snapshot, None) == (first_snapshot, second_snapshot)
    difference = diff.diff(lake, pipeline, first_snapshot, second_snapshot, 10)
    assert difference.counts == {"added": 1, "changed": 1, "deleted": 1}
    names = [column.name for column in difference.columns]
    changes = [(row[0], row[names.index("symbol")], row[names.index("price")]) for row in difference.rows]
    assert sorted(changes) == [("added", "d", 4), ("after", "a", 5), ("before", "a", 1), ("deleted", "b", 2)]
    assert diff.diff(lake, pipeline, second_snapshot, second_snapshot, 10).rows == ()
    assert len(diff.diff(lake, pipeline, first_snapshot, second_snapshot, 2).rows) == 2


def _with_bad_rows(project: Project) -> None:
    project.template, project.more = PLAIN, "10 / id"
    project.make_topic(1)
    project.send([json.dumps({"id": number % 3}).encode() for number in range(9)], partition=0)
    project.run()
    project.more = "10 / nullif(id, 0)"


@pytest.mark.long
def test_a_replay_lets_rows_stay_bad_whatever_stops_a_run(project: Project) -> None:
    _with_bad_rows(project)
    project.send([b"{"], partition=0)
    project.run()
    project.template = PLAIN + "bad_rows: stop\n"
    (batch,) = replayed(project)
    assert (batch.read, batch.rows, batch.bad) == (4, 3, 1)
    project.assert_exactly_once()


def test_a_rewind_undoes_no_replay() -> None:
    """A rewind deletes bad rows of the messages that it reads again; rows of older messages stay in the table."""
    position = Position(attempt="a", batch=3, cluster="main", topics={"t": "id"}, ends={"t/0": 5}, forget=(-1, 3), rewound=True)
    assert conditions.replay_undone(position) == "false"
    assert "offset >= 5" in conditions.read_again(position)


@pytest.mark.long
@pytest.mark.parametrize("writer", few(["run", "replay"], "run"))
def test_a_replay_meets_another_writer(project: Project, writer: str) -> None:
    _with_bad_rows(project)
    project.send([json.dumps({"id": 1}).encode()], partition=0)
    met_points: list[Any] = []

    def meet(reached: str) -> None:
        if reached == "checked" and not met_points:
            met_points.append(reached)
            met_points.extend(project.run() if writer == "run" else replayed(project))

    batches = replayed(project, context=project.context(meet))
    assert [batch.rows for batch in batches] == ([3] if writer == "run" else [])
    project.run()
    project.assert_exactly_once()
    assert Counter(row["state"] for row in project.rows(bad=True)) == {"replayed": 3}


def test_a_lost_answer_does_not_roll_back_twice(project: Project) -> None:
    project.make_topic()
    for _ in range(2):
        project.send_good(30, bad_every=10)
        project.run()
    first_snapshot = snapshots(project)[1]
    commit, lost = losing_answers(1)
    context = project.context(commit=commit)
    (pipeline,) = context.plan.pipelines
    meaning = rollback.judged(context, pipeline, first_snapshot)
    with pytest.raises(SluiceError) as error:
        accept.move(context, pipeline, meaning.moves)
    assert (error.value.code, len(lost)) == ("table-busy", 1)
    assert rollback.judged(context, pipeline, first_snapshot).undone == 0
    project.run()
    project.assert_exactly_once()


@pytest.mark.long
@pytest.mark.usefixtures("lent_spark")
def test_commands_say_what_they_will_do(project: Project) -> None:
    """Each command asks first, and does nothing if the answer is no."""
    _with_bad_rows(project)
    project.send([json.dumps({"id": 1}).encode()], partition=0)
    project.run()
    rows = len(project.rows())

    def typed(*words: str, answer: str = "") -> str:
        specs = project.lake / "specs" / "typed"
        specs.mkdir(exist_ok=True)
        text = (
            BASE.format(bootstrap=project.bootstrap)
            + "---\n"
            + project.template.format(topic=project.topic, namespace=project.namespace, more=project.more, topic_more="")
        )
        (specs / "main.yaml").write_text(text)
        return without(CliRunner().invoke(main, [*words, "--specs", str(specs)], input=answer), "--specs", str(specs)).output

    output = typed("rollback", "trades", "--to", "batch:1", answer="n\n")
    assert "\n  1 commit undone: 7 rows now, 6 then\n" in output
    assert "the next run reads 1 message again" in output
    assert len(project.rows()) == rows
    assert "batch:9" not in typed("rollback", "trades", "--to", "batch:9")
    assert "has no batch 9" in typed("rollback", "trades", "--to", "batch:9")
    assert "cannot-rewind" in typed("rewind", "trades", "--to", "2026-01-05")
    assert typed("replay", "trades", "--dry-run") == "trades: 3 messages with bad rows: 3 rows would land, 0 stay bad\n"
    assert typed("replay", "trades").startswith("trades: batch 3, 3 rows, ")
    assert typed("replay", "trades") == "trades: no bad row to replay\n"
    output = typed("diff", "trades", "--from", "batch:2", "--limit", "2")
    assert ": 3 added, 0 changed, 0 deleted\n" in output
    assert "2 of 3 rows; --limit 3 shows all" in output
    output = typed("rollback", "trades", "--to", "batch:1", "--yes")
    assert output.endswith("again; `sluice run trades` reads on from there\n")
    assert len(project.rows()) == 6


def test_bad_rows_that_were_accepted_stop_no_second_reading(project: Project) -> None:
    project.template, project.more = PLAIN + "bad_rows: stop\n", "id"
    project.make_topic(1)
    begun = datetime.now(timezone.utc)
    project.send([b"broken"], partition=0)
    context = project.context()
    (pipeline,) = context.plan.pipelines
    refusal = accept.refusal(context, pipeline)
    assert refusal is not None
    accept.accept(context, pipeline, refusal)
    project.run()
    context = project.context()
    meaning = read_again.judged(context, context.plan.pipelines[0], begun, f"{project.namespace}.again")
    assert published(read_again.read(context, meaning, lambda: False))
    assert project.spark.table(f"lake.{project.namespace}.again__bad_rows").count() == 1


@pytest.mark.long
@pytest.mark.parametrize("dies", ["", "staged", "published"])
def test_messages_since_a_time_are_read_into_another_table(project: Project, dies: str) -> None:
    """Messages are read once by the current spec, up to the table's position; forgotten keys stay forgotten."""
    project.template, project.more = QUOTES, "price"
    project.make_topic(1)
    send(project, {"a": 1})
    project.run()
    begun = datetime.now(timezone.utc)
    send(project, {"b": 2, "gone": 3})
    send(project, {"c": 3}, broken=True)
    project.run()
    context = project.context()
    list(
        forget.forget(
            context, context.plan.pipelines[0], forget.judged(context, context.plan.pipelines[0], {"symbol": "gone"}).key
        )
    )
    send(project, {"d": 4})  # no run has read this message
    project.more = "price * 10"
    other_table, before = f"{project.namespace}.again", prices(project)

    def reads(context: Context, messages: int) -> list[int]:
        meaning = read_again.judged(context, context.plan.pipelines[0], begun, other_table)
        assert meaning.messages == messages
        return [batch.read for batch in published(read_again.read(context, meaning, lambda: False))]

    def die(point: str) -> None:
        if point == dies:
            raise Died

    if dies:
        with pytest.raises(Died):
            reads(project.context(at=die), 3)
        assert sum(reads(project.context(), 0 if dies == "published" else 3)) == (0 if dies == "published" else 3)
    else:
        assert reads(project.context(), 3) == [3]
    assert reads(project.context(), 0) == []
    rows = project.spark.sql(f"SELECT symbol, shown FROM lake.{other_table} ORDER BY symbol").collect()
    assert [tuple(row) for row in rows] == [("b", 20)]
    assert project.spark.table(f"lake.{other_table}__bad_rows").count() == 1
    assert prices(project) == before

    context = project.context()
    pipeline = context.plan.pipelines[0]
    for start, name, message in (
        (datetime(2026, 1, 5, tzinfo=timezone.utc), other_table, "is there already: it was begun for"),
        (begun, pipeline.table.identifier, "is the table of the pipeline"),
        (begun, pipeline.table.bad_rows, "is the table of the pipeline"),
    ):
        with pytest.raises(RefusedError, match=message):
            read_again.judged(context, pipeline, start, name)
