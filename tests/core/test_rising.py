"""Kafka's clock may step back: in one partition, a key's later message is the newer one, whatever the timestamps say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import pytest

from framework.core.publish.batch import next_batch
from tests.support.project import Project
from tests.support.refusals import accept_it
from tests.support.rollbacks import replayed

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
TOPIC = """
topic: people
kafka_name: {topic}
key: {{format: long, as: id}}
value: json
columns: {{name: string, size: int}}
---
"""
SPEC = (
    TOPIC
    + """
pipeline: people
from: {{topic: people}}
{topic_more}
into: {{table: {namespace}.trades, write: upsert, keys: [id]{more}}}
"""
)
Sent = tuple[int, str | None, int, int]  # key, name, second of Kafka's clock, partition


@pytest.fixture
def people(project: Project) -> Project:
    project.template = SPEC
    project.make_topic(2)
    return project


def send(project: Project, *messages: Sent) -> None:
    project.produce(
        {
            "key": key.to_bytes(8, "big"),
            "value": None if name is None else json.dumps({"name": name, "size": len(name)}).encode(),
            "timestamp": second * 1000,
            "partition": partition,
        }
        for key, name, second, partition in messages
    )


def loaded(project: Project, messages: Sequence[Sent], cuts: Sequence[int]) -> None:
    """Sends and loads the messages in batches that begin at the cuts."""
    for start, end in pairwise((0, *cuts, len(messages))):
        send(project, *messages[start:end])
        project.run()


def names(project: Project) -> dict[int, str]:
    return {row["id"]: row["name"] for row in project.rows() if row.get("is_current", True)}


def second(number: int) -> datetime:
    return datetime.fromtimestamp(number, timezone.utc)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)])
def test_a_change_at_a_later_offset_is_newer(people: Project, cuts: Sequence[int]) -> None:
    """A message of another partition is newer only if its time is after all of theirs, in any batches."""
    loaded(people, [(1, "first", 50, 0), (1, "second", 30, 0), (1, "other", 40, 1), (2, "alone", 35, 1)], cuts)
    assert names(people) == {1: "second", 2: "alone"}
    (row,) = (row for row in people.rows() if row["id"] == 1)
    assert row["_kafka_timestamp"] == second(50)
    loaded(people, [(1, "later", 51, 1), (1, "third", 20, 0)], [1])
    assert names(people)[1] == "later"


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2), (1, 2, 3)])
def test_a_delete_at_a_later_offset_deletes(people: Project, cuts: Sequence[int]) -> None:
    """A row of another partition that is older than the deleted row does not bring its key back."""
    people.more = ", deletes: tombstones"
    loaded(people, [(1, "first", 50, 0), (1, None, 30, 0), (1, "older", 40, 1), (1, "too old", 49, 1)], cuts)
    assert names(people) == {}
    loaded(people, [(1, "back", 20, 0), (1, "older still", 45, 1)], [1])
    assert names(people) == {1: "back"}


def test_versions_follow_each_other_without_a_gap(people: Project) -> None:
    people.template = SPEC.replace("write: upsert", "write: history")
    people.more = ", deletes: tombstones"
    loaded(
        people, [(1, "first", 50, 0), (1, "second", 30, 0), (1, None, 40, 0), (1, "third", 60, 0), (1, "fourth", 55, 0)], [1, 3]
    )
    versions = sorted((row["valid_from"], str(row["valid_to"]), row["name"]) for row in people.rows())
    assert names(people) == {1: "fourth"}
    for name, begin, end in (("first", 50, 50), ("second", 50, 50), ("third", 60, 60)):
        assert (second(begin), str(second(end)), name) in versions


def test_an_order_that_the_spec_names_decides_alone(people: Project) -> None:
    people.more = ", order_by: _kafka_timestamp"
    loaded(people, [(1, "first", 50, 0), (1, "second", 30, 0)], [1])
    assert names(people) == {1: "first"}


def test_rows_of_one_event_time_are_in_the_order_of_their_offsets(people: Project) -> None:
    people.template = SPEC.replace("value: json", "value: json\nevent_time: noon").replace(
        "size: int", "size: int, noon: timestamp"
    )
    noon = {"noon": "2026-01-05T12:00:00Z"}
    for name, clock in (("first", 50), ("second", 30)):
        value = json.dumps({"name": name, **noon}).encode()
        people.produce([{"key": (1).to_bytes(8, "big"), "value": value, "timestamp": clock * 1000, "partition": 0}])
        people.run()
    assert names(people) == {1: "second"}


@pytest.mark.parametrize("write", ["upsert", "history"])
def test_a_row_that_is_replayed_stays_before_those_that_came_meanwhile(people: Project, write: str) -> None:
    people.template = SPEC.replace("write: upsert", f"write: {write}")
    people.topic_more = "steps: [{derive: {part: '10 div (size - 5)'}}]"  # no name of five letters
    loaded(people, [(1, "wrong", 50, 0), (1, "right now", 30, 0), (2, "before", 50, 0), (2, "later", 30, 0)], [3])
    assert names(people) == {1: "right now", 2: "before"}
    people.topic_more = "steps: [{derive: {part: '10 div nullif(size - 5, 0)'}}]"
    replayed(people)
    assert names(people) == {1: "right now", 2: "later"}


def test_a_topic_that_was_made_again_goes_on_by_kafkas_time(people: Project) -> None:
    """The new topic's offsets begin again at 0."""
    loaded(people, [(2, "other", 10, 0), (1, "first", 50, 0)], [])
    people.delete_topic()
    people.make_topic(2)
    send(people, (1, "second", 60, 0))
    accept_it(people)
    people.run()
    assert names(people) == {1: "second", 2: "other"}


FROM_TABLE = (
    TOPIC
    + """
pipeline: changes
from: {{topic: people}}
into: {{table: {namespace}.changes}}
---
pipeline: people
from: {{table: {namespace}.changes}}
into: {{table: {namespace}.trades, write: upsert, keys: [id]}}
"""
)


@pytest.mark.parametrize("cuts", [(), (1,)])
def test_rows_of_a_table_keep_the_order_of_their_messages(people: Project, cuts: Sequence[int]) -> None:
    people.template = FROM_TABLE
    messages: list[Sent] = [(1, "first", 50, 0), (1, "second", 30, 0)]
    for start, end in pairwise((0, *cuts, len(messages))):
        send(people, *messages[start:end])
        context: Any = people.context()
        for pipeline in context.plan.pipelines:
            while next_batch(context, pipeline):
                pass
    assert names(people) == {1: "second"}
