"""Our own source of messages against Spark's: the same messages of the same offsets, whatever producers did."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from framework.base.errors import Transient
from framework.core.kafka import spark_reader
from framework.core.kafka.cluster import Kafka
from framework.core.kafka.spark_reader import Slice, divided
from framework.core.rules.protocol import Range, parted, partition
from framework.core.spark.reading_errors import named_errors
from framework.plan import SecretStore
from tests.support.project import Project
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
HEADERS: tuple[list[tuple[str, str | bytes | None]] | None, ...] = (
    None,
    [("one", b"1"), ("two", None), ("one", b"\xff")],
    [("grün", b"")],
)


def test_few_messages_of_many_partitions_are_one_task() -> None:
    slices: list[Slice] = [("t", number, 0, 10) for number in range(6)]
    assert divided(slices, 2) == [slices]
    assert divided(slices, 2, together=False) == [[each] for each in slices]


def test_many_messages_are_a_task_for_each_partition() -> None:
    slices: list[Slice] = [("t", number, 0, 500_000) for number in range(6)]
    assert divided(slices, 2) == [[each] for each in slices]


def test_a_partition_with_most_messages_is_cut() -> None:
    large: Slice = ("t", 0, 7, 1_000_007)
    assert divided([large], 2) == [[("t", 0, 7, 500_007)], [("t", 0, 500_007, 1_000_007)]]
    assert divided([large, ("t", 1, 0, 9)], 2) == [[("t", 0, 7, 500_007)], [("t", 0, 500_007, 1_000_007)], [("t", 1, 0, 9)]]
    assert divided([("t", 0, 0, 150_000)], 64) == [[("t", 0, 0, 75_000)], [("t", 0, 75_000, 150_000)]]


@pytest.mark.parametrize("seed", range(50))
def test_each_offset_is_in_one_task(seed: int) -> None:
    chance = random.Random(seed)
    slices: list[Slice] = []
    for number in range(chance.randint(0, 30)):
        start = chance.randrange(1_000)
        slices.append(("t", number, start, start + chance.choice((1, 50, 3_000, 400_000, 2_000_001))))
    parts = sorted(itertools.chain.from_iterable(divided(slices, chance.choice((1, 2, 16)))))
    merged: list[Slice] = []
    for part in parts:
        if merged and merged[-1][1] == part[1] and merged[-1][3] == part[2]:
            merged[-1] = (*merged[-1][:3], part[3])
        else:
            merged.append(part)
    assert merged == slices
    assert all(start < end for _, _, start, end in parts)


def of_spark(project: Project, starts: Mapping[str, int], ends: Mapping[str, int]) -> DataFrame:
    """The messages as Spark's own source reads them."""
    first, last = ({parted(name)[1]: offset for name, offset in offsets.items()} for offsets in (starts, ends))
    options = {
        "kafka.bootstrap.servers": project.bootstrap, "kafka.isolation.level": "read_committed", "includeHeaders": "true",
        "assign": json.dumps({project.topic: sorted(first)}),
        "startingOffsets": json.dumps({project.topic: first}), "endingOffsets": json.dumps({project.topic: last}),
    }  # fmt: skip
    return project.spark.read.format("kafka").options(**options).load()


def printed(frame: DataFrame) -> list[tuple[Any, ...]]:
    columns = ("topic", "partition", "offset", "CAST(timestamp AS DOUBLE)", "key", "value", "headers")
    return sorted((tuple(row) for row in frame.selectExpr(*columns).collect()), key=lambda row: row[:3])


def range_of(project: Project, starts: Mapping[str, int], ends: Mapping[str, int]) -> Range:
    return Range(dict(starts), dict(ends), 0, topics={project.topic: "id"})


def of_ours(project: Project, starts: Mapping[str, int], ends: Mapping[str, int]) -> DataFrame:
    return spark_reader.read(project.spark, project.pipeline, range_of(project, starts, ends), SecretStore())


def assert_equal(project: Project, starts: Mapping[str, int], ends: Mapping[str, int]) -> int:
    frame = of_ours(project, starts, ends)
    rows = printed(frame)
    assert rows == printed(of_spark(project, starts, ends))
    return len(rows)


def extent(project: Project) -> tuple[dict[str, int], dict[str, int]]:
    return Kafka(project.pipeline.topic.cluster, SecretStore()).extent(project.topic)


def newest(project: Project, partitions: int) -> dict[str, int]:
    """The offsets behind everything that was written, whether it is committed or not."""
    wanted = {TopicPartition(project.topic, number): OffsetSpec.latest() for number in range(partitions)}
    answers = project.admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    return {partition(project.topic, each.partition): answer.result().offset for each, answer in answers.items()}


def ranges(starts: Mapping[str, int], ends: Mapping[str, int], seed: int) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Everything, and some parts that begin and end anywhere, also between the messages of a transaction and its marker."""
    yield dict(starts), dict(ends)
    chance = random.Random(seed)
    for _ in range(5):
        pairs = {name: sorted(chance.choices(range(starts[name], ends[name] + 1), k=2)) for name in starts}
        yield {name: low for name, (low, _) in pairs.items()}, {name: high for name, (_, high) in pairs.items()}
    for name in starts:
        for last in range(max(starts[name], ends[name] - 3), ends[name]):
            yield {name: last}, {name: last + 1}


@pytest.mark.spark
@pytest.mark.kafka
def test_messages_of_transactions_codecs_headers_and_nulls(project: Project) -> None:
    project.make_topic(2, **ANY_TIME)
    chance = random.Random(1)
    for number, codec in enumerate(CODECS):
        plain = Producer({"bootstrap.servers": project.bootstrap, "compression.type": codec, "linger.ms": 20})
        sender = Producer(
            {"bootstrap.servers": project.bootstrap, "compression.type": codec, "transactional.id": f"{project.topic}{codec}"}
        )
        sender.init_transactions(30)
        for is_kept in (True, False, True, False):
            for producer in (plain, sender):
                if producer is sender:
                    sender.begin_transaction()
                for nth in range(chance.randint(1, 40)):
                    producer.produce(
                        project.topic,
                        key=chance.choice((None, b"", b"k%d" % nth)),
                        value=chance.choice((None, b"", b"not json", b'{"id": %d}' % (number * 1000 + nth))),
                        headers=HEADERS[nth % 3],
                        partition=chance.randrange(2),
                        timestamp=chance.choice((-1, -5, 0, 1, 1_700_000_000_123, 4_102_444_800_000)),
                    )
                producer.flush(30)
                if producer is sender and is_kept:
                    sender.commit_transaction(30)
                elif producer is sender:
                    sender.abort_transaction(30)
    until(lambda: extent(project)[1] == newest(project, 2), "Kafka has not written the marker of each transaction", 30)
    counts = [assert_equal(project, *each) for each in ranges(*extent(project), seed=2)]
    assert counts[0] > 300
    assert 0 in counts, "no range had only markers or aborted messages"


@pytest.mark.spark
@pytest.mark.kafka
def test_a_time_that_no_clock_shows_is_a_time_at_the_end_of_all_times(project: Project) -> None:
    """Spark's own source fails with it, and so would each batch."""
    project.make_topic(1, **ANY_TIME)
    project.produce({"value": b"{}", "timestamp": time, "partition": 0} for time in (2**62, 1))
    frame = of_ours(project, *extent(project))
    assert [row[0] for row in frame.selectExpr("CAST(timestamp AS STRING)").collect()] == [
        "+294247-01-10 04:00:54.775",
        "1970-01-01 00:00:00.001",
    ]


@pytest.mark.spark
@pytest.mark.kafka
def test_the_time_of_the_broker_counts_where_the_topic_says_so(project: Project) -> None:
    project.make_topic(1, **{"message.timestamp.type": "LogAppendTime"})
    project.produce({"value": b"{}", "timestamp": 1} for _ in range(2))
    assert assert_equal(project, *extent(project)) == 2
    (first, _) = printed(of_ours(project, *extent(project)))
    assert first[3] > 1_700_000_000


COLUMNS = """
topic: trades
kafka_name: {topic}
key: {{format: json, columns: {{who: string, nth: bigint}}}}
value: json
columns:
  id: bigint
  small: int
  share: double
  real: float
  is_old: boolean
  day: date
  at: timestamp
  bytes: binary
  price: decimal(20,4)
  tags: array<string>
  amounts: array<decimal(6,2)>
  scores: map<string,double>
  place: struct<floor:bigint,room:struct<name:string,beds:array<int>>>
  lines: array<struct<sku:string,count:int>>
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades}}
"""
VALUES: Mapping[str, tuple[Any, ...]] = {
    "id": (1, -(2**63), "x"), "small": (1, 2**31), "share": (0.5, -0.0, 1e308), "real": (1.5, 1e39), "is_old": (True, "true"),
    "day": ("2026-01-02", "never"), "at": ("2026-01-02T03:04:05.678901Z", 7), "bytes": ("AAEC", "?"), "price": (1.25, "1.25"),
    "tags": ([], ["a", None, "grün"]), "amounts": ([1.5, None], [1.555]), "scores": ({}, {"a": 1.5, "b": None}, {"a": "b"}),
    "place": ({}, {"floor": 3, "room": {"name": "a", "beds": [1, None]}}, {"room": None}, [1]),
    "lines": ([{"sku": "a", "count": 1}, None, {}], [{"count": "x"}]),
}  # fmt: skip


# Spark reads no more of a struct than is asked for, and copies lists that have nulls.
PARTS = (
    "_sluice_decoded.place.room.name AS room", "_sluice_decoded.lines.count AS counts", "_sluice_decoded.lines[0].sku AS sku",
    "transform(_sluice_decoded.place.room.beds, bed -> bed) AS beds",
    "map_from_arrays(transform(_sluice_decoded.place.room.beds, (bed, nth) -> nth), _sluice_decoded.place.room.beds) AS by_nth",
    "map_values(_sluice_decoded.scores) AS scores",
)  # fmt: skip


@pytest.mark.spark
@pytest.mark.kafka
def test_each_type_comes_out_of_columns_as_out_of_rows(project: Project) -> None:
    project.template = COLUMNS
    project.make_topic(2)
    chance = random.Random(3)
    keys = (None, b'{"who": "a", "nth": 1}', b'{"who": null}', b'{"nth": "x"}', b"no json")
    messages = []
    for number in range(3_000):
        # Most have one value that may not fit its column; a message with two is as bad as one with one.
        value = {name: values[0] for name, values in VALUES.items() if chance.random() < 0.8}
        name = chance.choice(list(VALUES))
        value[name] = chance.choice((None, *VALUES[name]))
        messages.append({"key": chance.choice(keys), "value": json.dumps(value).encode(), "partition": number % 2})
    project.produce(messages)
    pipeline, whole = project.pipeline, range_of(project, *extent(project))

    frame = spark_reader.read(project.spark, pipeline, whole, SecretStore())
    calls = dict(pipeline.decoding.structs)
    assert set(calls) == {"_sluice_decoded", "_sluice_decoded_key"}
    of_rows = frame.selectExpr("partition", "offset", "key AS _sluice_key", "value AS _sluice_value").selectExpr(
        "partition", "offset", *(f"{sql} AS {name}" for name, sql in calls.items())
    )
    of_columns = frame.selectExpr("partition", "offset", *calls)

    read, decoded = (sorted(each.collect()) for each in (of_columns, of_rows))
    assert len(read) == 3_000
    assert read == decoded
    parts = ("partition", "offset", *PARTS)
    read_parts, decoded_parts = (sorted(each.selectExpr(*parts).collect(), key=str) for each in (of_columns, of_rows))
    assert read_parts == decoded_parts
    assert 500 < sum(row["_sluice_decoded"]["_sluice_code"] is None for row in read) < 2_500


MASKED = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, customer: 'struct<email:string,name:string,card:string>'}}
---
pipeline: trades
from: {{topic: trades}}
steps:
{steps}
into: {{table: {namespace}.trades}}
"""


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize(
    "steps",
    [
        "  - mask: {{key: '${{secret:pii}}', columns: {{customer.email: 'null', customer.card: drop}}}}",
        "  - derive: {{name: customer.name}}\n  - drop: [customer]",
        "  - sql: select id, customer.name from input",
    ],
)
def test_what_is_left_out_of_a_struct_is_nowhere(project: Project, monkeypatch: pytest.MonkeyPatch, steps: str) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PII", "a key of a test that nobody guesses")
    project.template = MASKED.replace("{steps}", steps)
    project.make_topic(1)
    customer = {"email": "eve@example.org", "name": "Eve", "card": "4111"}
    project.produce([{"value": json.dumps({"id": 1, "customer": customer}).encode(), "partition": 0}])
    project.run()
    (row,) = project.rows()
    assert "eve@example.org" not in str(row) and "4111" not in str(row)
    assert row.get("name") == "Eve" or row["customer"]["name"] == "Eve"


@pytest.mark.spark
@pytest.mark.kafka
def test_messages_that_kafka_deleted_are_never_passed_over(project: Project) -> None:
    project.make_topic(1)
    project.send([b"{}"] * 10, partition=0)
    starts, ends = extent(project)
    (deleted,) = project.admin.delete_records([TopicPartition(project.topic, 0, 4)]).values()
    deleted.result()
    frame = of_ours(project, starts, ends)
    with pytest.raises(Transient, match="Kafka lost messages of") as caught, named_errors(project.pipeline):
        frame.collect()
    assert caught.value.code == "messages-gone"
    assert assert_equal(project, {f"{project.topic}/0": 4}, ends) == 6


@pytest.mark.spark
@pytest.mark.kafka
def test_consumers_serve_again_whoever_has_the_same_login_and_topic(project: Project) -> None:
    project.make_topic(1)
    project.send([b"{}"] * 3, partition=0)
    starts, ends = extent(project)
    jvm: Any = project.spark._jvm
    consumers = jvm.java.lang.Class.forName("sluice.Consumers").getDeclaredField("ALL_IDLE")
    consumers.setAccessible(True)

    def used(id_: str) -> int:
        """The consumer that was used last, which is the last one that is idle. Those of other tests may be closed meanwhile."""
        read = replace(range_of(project, starts, ends), topics={project.topic: id_})
        assert spark_reader.read(project.spark, project.pipeline, read, SecretStore()).count() == 3
        idle = consumers.get(None).peekLast()
        consumer = idle.getClass().getDeclaredMethod("consumer", None)
        consumer.setAccessible(True)
        return int(jvm.System.identityHashCode(consumer.invoke(idle, None)))

    first = used("1")
    assert used("1") == first
    other = used("2")
    assert other != first
    assert used("1") == first
    project.bootstrap = f"localhost:{project.bootstrap.rpartition(':')[2]}"
    assert used("2") not in (first, other)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.kafka
def test_gaps_that_compaction_left_are_passed(project: Project) -> None:
    compacted = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    project.make_topic(1, **compacted, **{"max.compaction.lag.ms": "1"})
    for number in range(60):
        project.produce({"key": b"k%d" % (nth % 7), "value": b"%d" % (number * 20 + nth), "partition": 0} for nth in range(20))
    starts, ends = extent(project)
    name = f"{project.topic}/0"

    def left() -> int:
        return len(printed(of_ours(project, starts, ends)))

    until(lambda: left() < 200, "Kafka compacted nothing", 120)
    for each in ranges(starts, ends, seed=4):
        assert_equal(project, *each)
    for first in range(starts[name], ends[name], 97):
        assert_equal(project, {name: first}, {name: min(first + 97, ends[name])})
    assert left() >= 7


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.kafka
def test_messages_of_a_megabyte_fit_into_memory(project: Project) -> None:
    """A thousand of them are one megabyte on their way, since they are compressed."""
    project.make_topic(1, **{"max.message.bytes": "10000000"})
    large = b'{"id": 1, "text": "%s"}' % (b"a" * 1_000_000)
    for _ in range(10):
        project.produce(
            ({"value": large, "partition": 0} for _ in range(400)),
            **{"compression.type": "zstd", "batch.size": 5_000_000, "linger.ms": 200, "queue.buffering.max.kbytes": 2_000_000},
        )
    frame = of_ours(project, *extent(project))
    assert frame.selectExpr("sum(octet_length(value))").collect()[0][0] > 4_000_000_000
