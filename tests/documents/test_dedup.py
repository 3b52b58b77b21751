"""`dedup`: of a row and its repeats one lands, whatever the batches and partitions are, and whenever a run dies."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from framework.core.staging import ranges
from framework.operations.undo import replay
from tests.support.kill_points import Died, dies_at
from tests.support.project import Project, ids
from tests.support.rebuilds import run_rebuild
from tests.support.refusals import accept_it
from tests.support.runs import published
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SPEC = """
topic: orders
kafka_name: {{topic}}
value: json
columns: {columns}
event_time: at
---
pipeline: trades
from: {{{{topic: orders}}}}
steps:
{before}  - dedup: {dedup}
{after}into: {{{{table: {{namespace}}.trades}}}}
"""
DEDUP = "{{keys: [id]}}"


def project_of(
    project: Project, dedup: str = DEDUP, columns: str = "{{id: bigint, at: timestamp}}", before: str = "", after: str = ""
) -> Project:
    project.template = SPEC.format(dedup=dedup, columns=columns, before=before, after=after)
    project.make_topic(3)
    return project


def order(id_: Any, minutes: int | None = 0, **columns: Any) -> bytes:
    time = None if minutes is None else f"2026-01-05T{minutes // 60:02}:{minutes % 60:02}:00Z"
    return json.dumps({"id": id_, "at": time, **columns}).encode()


def send(project: Project, *numbers: int) -> None:
    project.send(map(order, numbers))


def test_repeats_are_left_out_of_a_batch_and_of_later_ones(project: Project) -> None:
    project_of(project)
    send(project, 1, 2, 1, 1)
    (batch,) = project.run()
    assert (batch.read, batch.rows, batch.filtered, batch.bad) == (4, 2, 2, 0)
    send(project, 2, 3, 3, 1)
    (batch,) = project.run()
    assert ids(project) == [1, 2, 3]
    assert (batch.read, batch.rows, batch.filtered) == (4, 1, 3)
    send(project, 1, 2, 3)
    (batch,) = project.run()
    assert (ids(project), batch.rows, batch.filtered) == ([1, 2, 3], 0, 3)
    assert project.branches() == []


def test_the_first_of_a_batch_is_that_with_the_least_time_partition_and_offset(project: Project) -> None:
    project_of(project, columns="{{id: bigint, nth: int, at: timestamp}}")
    messages = [(2, 50), (0, 40), (1, 40), (2, 40), (0, 60)]  # partitions and Kafka's times
    project.produce(
        {"value": order(7, nth=index), "partition": partition, "timestamp": time}
        for index, (partition, time) in enumerate(messages)
    )
    project.run()
    assert [row["nth"] for row in project.rows()] == [1]


def test_a_null_key_and_a_row_that_is_bad_for_another_reason_have_no_repeats(project: Project) -> None:
    project_of(project, before="  - derive: {{share: 1 / (id - 5)}}\n")
    project.send([order(None), order(None), order(5), order(6), order(6)])
    (batch,) = project.run()
    assert (batch.rows, batch.bad, batch.filtered) == (1, 3, 1)
    reasons = [row["message"] for row in project.rows(bad=True)]
    assert reasons.count("`id` is null, and it is one of the keys") == 2


@pytest.mark.parametrize("point", few(["branched", "staged", "checked", "published"], "published"))
def test_a_batch_that_dies_neither_loses_a_row_nor_remembers_one(project: Project, point: str) -> None:
    project_of(project)
    send(project, 1)
    project.run()
    send(project, 1, 2, 2)
    with pytest.raises(Died):
        project.run(at=dies_at(point))
    send(project, 2, 3)
    project.run()
    assert ids(project) == [1, 2, 3]
    assert project.branches() == []


@pytest.mark.long
def test_rows_that_another_writer_adds_meanwhile_have_their_repeats_left_out(project: Project) -> None:
    project_of(project)
    send(project, 1)
    project.run()
    other_ids: list[int] = [7]

    def insert_meanwhile(point: str) -> None:
        if point == "checked" and other_ids:
            project.sql(f"INSERT INTO {{table}} (id, at) VALUES ({other_ids.pop()}, TIMESTAMP'2026-01-05 00:00:00')")

    send(project, 7, 8)
    project.run(at=insert_meanwhile)
    assert ids(project) == [1, 7, 8]


@pytest.mark.long
def test_a_rolled_back_row_is_no_longer_known(project: Project) -> None:
    project_of(project)
    send(project, 1)
    project.run()
    good_snapshot = project.sql("select snapshot_id from {table}.refs where name = 'main'")[0][0]
    send(project, 2)
    project.run()
    project.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {good_snapshot})")
    accept_it(project)
    project.run()
    send(project, 1, 2)
    project.run()
    assert ids(project) == [1, 2]


@pytest.mark.long
def test_a_table_that_has_rows_gets_the_step_without_a_rebuild_and_a_rebuild_goes_by_it(project: Project) -> None:
    project_of(project, before="")
    with_dedup = project.template
    project.template = with_dedup.replace(f"steps:\n  - dedup: {DEDUP}\n", "")
    assert "dedup" not in project.template
    send(project, 1, 1, 2)
    project.run()
    project.template = with_dedup
    send(project, 1, 3)
    (batch,) = project.run()
    assert (ids(project), batch.filtered) == ([1, 1, 2, 3], 1)
    run_rebuild(project)
    assert ids(project) == [1, 2, 3]
    send(project, 3)
    project.run()
    assert ids(project) == [1, 2, 3]


@pytest.mark.long
def test_a_replayed_bad_row_is_a_repeat_of_what_landed_meanwhile(project: Project) -> None:
    project_of(project, before="  - derive: {{share: 1 / (id - 5)}}\n")
    project.send([order(5), order(6)])
    project.run()
    assert ids(project) == [6]
    project.template = project.template.replace("id - 5", "id - 4")
    send(project, 5)
    project.run()
    context = project.context()
    trial = replay.tried(context, context.plan.pipelines[0], replay.condition(""))
    assert (trial.messages, trial.rows, trial.filtered, trial.bad) == (1, 0, 1, ())
    (batch,) = published(replay.replay(context, context.plan.pipelines[0], replay.condition(""), lambda: False))
    assert (batch.rows, batch.filtered) == (0, 1)
    assert ids(project) == [5, 6]
    assert [row["state"] for row in project.rows(bad=True)] == ["replayed"]


@pytest.mark.long
def test_keys_with_one_hash_are_no_repeats_of_each_other(project: Project) -> None:
    project_of(project, "{{keys: [id, line]}}", "{{id: bigint, line: bigint, at: timestamp}}")
    pairs = colliding_pairs(project)
    values = ", ".join(f"({a}L, {b}L)" for a, b in pairs)
    assert project.sql(f"SELECT count(DISTINCT xxhash64(a, b)) FROM VALUES {values} AS (a, b)") == [(1,)]
    project.send(order(a, line=b) for a, b in (*pairs[:2], *pairs[:2]))
    (batch,) = project.run()
    assert (batch.rows, batch.filtered) == (2, 2)
    project.send(order(a, line=b) for a, b in pairs)
    (batch,) = project.run()
    assert (batch.rows, batch.filtered) == (1, 2)
    assert sorted((row["id"], row["line"]) for row in project.rows()) == sorted(pairs)


def colliding_pairs(project: Project) -> list[tuple[int, int]]:
    """Three pairs of numbers with one `xxhash64`. The hash of each first number is the seed of the second one's, and is undone by it."""
    mask, p1, p2, p5 = 2**64 - 1, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x27D4EB2F165667C5

    def rotated(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (64 - bits))) & mask

    def divided(value: int, divisor: int) -> int:
        return value * pow(divisor, -1, 2**64) & mask

    seeds = [seed + p5 + 8 & mask for (seed,) in project.sql("SELECT xxhash64(a) FROM VALUES 1L, 2L, 3L AS (a) ORDER BY a")]
    mixed = seeds[0] ^ (rotated(12345 * p2 & mask, 31) * p1 & mask)
    seconds = [divided(rotated(divided(mixed ^ seed, p1), 64 - 31), p2) for seed in seeds]
    return [(number, second - 2**64 if second >= 2**63 else second) for number, second in enumerate(seconds, 1)]


KEYS: dict[str, list[Any]] = {
    "string": ["", " ", "a", "A", "é", "e\u0301", "${env:HOME}", "'", "\\", "`", "\u2028", "null"],
    "decimal(38,9)": ["1.5", "1.500000001", "99999999999999999999999999999.999999999", "-0.1"],
    "double": [0.5, -0.5, 1e300],
    "date": ["2026-01-05", "0001-01-01", "9999-12-31"],
    "boolean": [True, False],
    "int": [1, -1, 2**31 - 1],
}


@pytest.mark.parametrize("type_", few(KEYS, "string"))
def test_keys_of_each_type(project: Project, type_: str) -> None:
    project_of(project, columns=f'{{{{id: "{type_}", at: timestamp}}}}')
    if type_.startswith("decimal"):
        values = [f'{{"id": {value}}}'.encode() for value in KEYS[type_]]
    else:
        values = [json.dumps({"id": value}).encode() for value in KEYS[type_]]
    project.send([*values, *values[::2]])
    (batch,) = project.run()
    assert batch.rows == len(values)
    project.send([*values, *values])
    (batch,) = project.run()
    assert (batch.rows, batch.bad) == (0, 0)


def test_a_key_that_became_wider_is_still_known(project: Project) -> None:
    project_of(project, columns="{{id: int, at: timestamp}}")
    send(project, 1, 2)
    project.run()
    project.template = project.template.replace("id: int", "id: bigint")
    send(project, 2, 3)
    project.run()
    assert ids(project) == [1, 2, 3]


def landed(batches: Iterable[Iterable[tuple[int, int | None]]], within: int | None) -> list[tuple[int, int | None]]:
    """The keys and times of the rows that land: a row is a repeat of each one that landed before it and is close enough."""
    landed_rows: list[tuple[int, int | None]] = []
    for batch in batches:
        for key, time in batch:
            times = [landed_time for landed_key, landed_time in landed_rows if landed_key == key]
            if within is None or time is None or None in times:
                is_repeat = bool(times)
            else:
                is_repeat = any(abs(time - landed_time) <= within for landed_time in times if landed_time is not None)
            if not is_repeat:
                landed_rows.append((key, time))
    return landed_rows


@pytest.mark.parametrize(
    ("steps", "time"),
    [
        ("  - rename: {{at: ordered_at}}\n", "ordered_at"),
        ("  - derive: {{ordered_at: at, at: \"date_trunc('DAY', at)\"}}\n", "ordered_at"),
    ],
    ids=["renamed", "copied"],
)
def test_times_are_compared_as_dedup_saw_them_under_their_later_name(project: Project, steps: str, time: str) -> None:
    project_of(project, "{{keys: [id], within: 1h}}", after=steps)
    project.send([order(1, 600), order(1, 1200), order(2, 1439)])  # 10:00 and 20:00, and 23:59
    project.run()
    project.send([order(1, 659), order(1, 1300), order(2, 1441 - 1440)])  # repeats within the hour, one of them of the same day
    project.run()
    rows = sorted((row["id"], row[time].hour, row[time].minute) for row in project.rows())
    assert rows == [(1, 10, 0), (1, 20, 0), (1, 21, 40), (2, 0, 1), (2, 23, 59)]


@pytest.mark.parametrize(("within", "seed"), few([(within, seed) for within in (None, 7, 45) for seed in range(4)], (45, 1)))
def test_the_rows_that_land_are_those_of_the_model(
    project: Project, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, within: int | None, seed: int
) -> None:
    """The rows are those of the model also where only a part of the table's files is read."""
    request.getfixturevalue(["many_files", "large_tables"][seed // 2])
    monkeypatch.setattr(ranges, "_MOST_KEYS", [200_000, 0][seed % 2])  # more keys than that take minutes
    within_option = "" if within is None else f", within: {within}m"
    project_of(project, f"{{{{keys: [id]{within_option}}}}}")
    chance = random.Random(seed)
    times = [None, *range(0, 240, 3)] if seed % 2 else range(0, 240, 3)
    batches = [[(chance.randint(1, 6), chance.choice(times)) for _ in range(chance.randint(1, 12))] for _ in range(5)]
    clock = 1_000_000
    for batch in batches:
        messages = []
        for key, time in batch:
            clock += 1
            messages.append({"value": order(key, time), "partition": chance.randrange(3), "timestamp": clock})
        project.produce(messages)
        project.run()
    rows = [(row["id"], row["at"] and row["at"].hour * 60 + row["at"].minute) for row in project.rows()]
    assert sorted(rows, key=str) == sorted(landed(batches, within), key=str)


@pytest.mark.long
def test_many_rows_of_one_key_take_no_longer_than_others(project: Project) -> None:
    """There are a hundred thousand rows of one key, half of them further away than `within` from each other."""
    project_of(project, "{{keys: [id], within: 1s}}", "{{id: bigint, at: {{type: timestamp, format: epoch_millis}}}}")
    project.send(json.dumps({"id": 1, "at": index % 50_000 * 2000}).encode() for index in range(100_000))
    (batch,) = project.run()
    assert (batch.rows, batch.filtered) == (50_000, 50_000)


@pytest.mark.parametrize("tables", ["large_tables", "many_files"])
def test_only_files_that_can_have_a_key_of_the_batch_are_read(
    project: Project, tables: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(tables)
    project_of(project)
    for start in (0, 100, 200):
        send(project, *range(start, start + 50))
        project.run()
    from framework.core.rules.protocol import Range
    from framework.core.staging import StagingTarget
    from framework.core.staging.admission import Earlier

    context = project.context()
    pipeline = context.plan.pipelines[0]
    lake = context.lake(pipeline)
    table = lake.load(pipeline.table.identifier)
    target = StagingTarget(
        context=context,
        lake=lake,
        pipeline=pipeline,
        attempt="",
        table=table,
        reached=None,
        source=context.source(pipeline),
        range_=Range({}, {}, 60, rows=60),
    )
    batch = project.spark.range(240, 300).selectExpr("id")
    near_rows = Earlier(target, None, None).near(batch, ["id"])  # type: ignore[arg-type]
    assert near_rows is not None
    assert len(near_rows.inputFiles()) < len(project.files())
    assert sorted(row["id"] for row in near_rows.select("id").collect()) == list(range(240, 250))
