"""A project in a folder of its own: specs, a topic with messages, and a ledger of where each message went."""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from framework.base.clock import Clock, utc_now
from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.updates import CommitCall, commit_transaction
from framework.core.publish.batch import Batch
from framework.core.rules import daily_work, journal, protocol, work
from framework.core.rules.daily_work import DayWork
from framework.core.rules.protocol import parted
from framework.core.rules.work import Work
from framework.core.run.run import batches
from framework.host.plans import make
from framework.plan import Pipeline, Plan
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BASE = """
cluster: main
bootstrap: "{bootstrap}"
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
---
engine: spark
master: local[2]
memory: 2g
conf: {{spark.driver.extraJavaOptions: "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}}
"""

TRADES = """
topic: trades
kafka_name: {topic}
value: json
columns:
  id: {{type: bigint, required: true}}
  price: double
{topic_more}
---
pipeline: trades
from: {{topic: trades}}
steps:
  - flag: {{into: size, rules: [{{when: price > 900, label: LARGE}}], otherwise: NORMAL}}
into: {{table: {namespace}.trades}}
{more}
"""


def plan_for(lake: Path, bootstrap: str, specs: str = "") -> Plan:
    folder = lake / "specs" / uuid.uuid4().hex
    folder.mkdir(parents=True)
    (folder / "main.yaml").write_text(BASE.format(bootstrap=bootstrap) + (f"---\n{specs}" if specs else ""))
    return make(folder)


def good(number: int) -> bytes:
    return json.dumps({"id": number, "price": number % 1000}).encode()


def wait_for_partitions(admin: AdminClient, topic: str, count: int) -> None:
    """The controller answers a moment before the broker knows of a topic, of more partitions, or that a topic is gone."""

    def are_there() -> bool:
        topics = admin.list_topics(timeout=10).topics
        return (len(topics[topic].partitions) if topic in topics else 0) == count

    until(are_there, f"the broker does not know {count} partitions of {topic}", 30)


class Project:
    """One pipeline, `trades`, from one topic into one table."""

    def __init__(self, folder: Path, lake: Path, bootstrap: str, spark: SparkSession) -> None:
        journal.forget("trades")  # the failure of another test, which has the same home
        self.folder = folder
        self.lake = lake
        self.bootstrap = bootstrap
        self.spark = spark
        name = uuid.uuid4().hex[:10]
        self.topic = f"topic_{name}"
        self.namespace = f"n{name}"
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.numbers = itertools.count()
        self.sent_bytes = 0  # of keys and values
        self.more = self.topic_more = ""
        self.template = TRADES
        self.clock: Clock = utc_now

    def close(self) -> None:
        self.delete_topic()

    def make_topic(self, partitions: int = 3, **config: str) -> None:
        self.admin.create_topics([NewTopic(self.topic, partitions, 1, config=config)])[self.topic].result()
        wait_for_partitions(self.admin, self.topic, partitions)

    def delete_topic(self) -> None:
        for future in self.admin.delete_topics([self.topic]).values():
            future.exception()
        wait_for_partitions(self.admin, self.topic, 0)

    def send(self, values: Iterable[bytes | None], partition: int | None = None, **settings: Any) -> None:
        messages = (
            {"value": value, "key": f"k{number}", "partition": number % 3 if partition is None else partition}
            for number, value in enumerate(values)
        )
        self.produce(messages, **settings)

    def produce(self, messages: Iterable[dict[str, Any]], **settings: Any) -> None:
        """Sends messages, each by the arguments of `Producer.produce`."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "message.max.bytes": 100_000_000, **settings})
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error:
                errors.append(error)

        for message in messages:
            self.sent_bytes += len(message.get("key") or b"") + len(message.get("value") or b"")
            producer.produce(self.topic, on_delivery=delivered, **message)
        assert producer.flush(30) == 0 and errors == []

    def send_good(self, count: int, bad_every: int = 0, partition: int | None = None) -> None:
        new_numbers = (next(self.numbers) for _ in range(count))
        self.send((b"not json" if bad_every and number % bad_every == 0 else good(number) for number in new_numbers), partition)

    @property
    def plan(self) -> Plan:
        specs = self.template.format(topic=self.topic, namespace=self.namespace, more=self.more, topic_more=self.topic_more)
        return plan_for(self.lake, self.bootstrap, specs)

    @property
    def pipeline(self) -> Pipeline:
        return self.plan.pipelines[0]

    @property
    def table(self) -> str:
        return f"lake.{self.namespace}.trades"

    def context(self, at: Callable[[str], None] | None = None, commit: CommitCall = commit_transaction) -> Context:
        return Context(self.plan, spark=lambda: self.spark, reached=at or (lambda point: None), commit=commit, clock=self.clock)

    def run(self, at: Callable[[str], None] | None = None, commit: CommitCall = commit_transaction) -> list[Batch]:
        context = self.context(at, commit)
        return list(batches(context, context.plan.pipelines[0]))

    def sql(self, text: str) -> list[Any]:
        return [
            tuple(row) for row in self.spark.sql(text.format(table=self.table, bare=self.table.removeprefix("lake."))).collect()
        ]

    def rows(self, bad: bool = False) -> list[dict[str, Any]]:
        """The rows of the table, read by an engine that is not Spark."""
        name = f"{self.namespace}.trades{'__bad_rows' if bad else ''}"
        table = table_state.table(self.pipeline.table.catalog, name)
        return [] if table is None else list(table.scan().to_arrow().to_pylist())

    def where(self) -> Counter[tuple[int, int]]:
        """How often each message is in the table or in the bad rows that were not replayed, by partition and offset."""
        rows = [(row["_kafka_partition"], row["_kafka_offset"]) for row in self.rows()]
        return Counter(
            rows + [(row["partition"], row["offset"]) for row in self.rows(bad=True) if row.get("state") != "replayed"]
        )

    def assert_exactly_once(self, messages: Iterable[tuple[int, int]] | None = None) -> None:
        expected = set(self.messages() if messages is None else messages)
        counts = self.where()
        repeated_messages = sorted(message for message, times in counts.items() if times > 1)
        missing = sorted(expected - set(counts))
        assert (repeated_messages, missing, sorted(set(counts) - expected)) == ([], [], [])

    def work(self) -> Work:
        """The work of all batches, as the table itself counts it."""
        table = metadata.read(self.pipeline.table.catalog, f"{self.namespace}.trades")
        return Work() if table is None else work.read(table.properties)

    def work_by_day(self) -> dict[date, DayWork]:
        table = metadata.read(self.pipeline.table.catalog, f"{self.namespace}.trades")
        return {} if table is None else daily_work.read(table.properties)

    def assert_counted_once(self) -> None:
        """Each message is in the table's sums once, as far as none was read again on purpose."""
        done = self.work()
        assert (done.read, done.rows + done.filtered + sum(done.bad.values())) == (len(self.messages()),) * 2
        assert done.read_bytes == self.sent_bytes
        days = sum(self.work_by_day().values(), DayWork())
        assert (days.batches, days.read, days.files, days.bytes) == (done.batches, done.read, done.files, done.bytes)
        assert (days.read_bytes, days.objects) == (done.read_bytes, done.objects)

    def messages(self) -> set[tuple[int, int]]:
        """Every message that Kafka has below the last stable offsets; only right for topics without transactions."""
        state = self.context().kafka(self.pipeline).topic_state(*self.pipeline.topics)
        return {
            (parted(topic_partition)[1], offset)
            for topic_partition, end in state.ends.items()
            for offset in range(state.starts[topic_partition], end)
        }

    def branches(self) -> list[str]:
        """The branches of attempts."""
        names = [f"{self.namespace}.trades", f"{self.namespace}.trades__bad_rows"]
        tables = [table for name in names if (table := table_state.table(self.pipeline.table.catalog, name))]
        refs = [ref for table in tables for ref in table.metadata.refs if ref not in ("main", "sluice", protocol.EMPTY)]
        return [ref for ref in refs if not protocol.is_state(ref)]

    def files(self) -> dict[str, str]:
        """The table's data files and digests of their bytes."""
        paths = [path for (path,) in self.sql("select file_path from {table}.files")]
        return {path: hashlib.sha256(Path(urlparse(path).path).read_bytes()).hexdigest() for path in paths}

    def unreferenced(self) -> set[str]:
        """Files of rows, and of which rows are deleted, on the disk that no snapshot knows."""
        known_paths = {urlparse(path).path for (path,) in self.sql("select file_path from {table}.all_files")}
        data = self.lake / "warehouse" / self.namespace / "trades" / "data"
        return {str(path) for path in data.rglob("*") if path.suffix in (".parquet", ".puffin")} - known_paths


def losing_answers(times: int) -> tuple[CommitCall, list[Any]]:
    """A commit whose first answers are lost, and the list of their transactions."""
    transactions: list[Any] = []

    def commit(transaction: Any) -> None:
        commit_transaction(transaction)
        if len(transactions) < times:
            transactions.append(transaction)
            raise ConnectionResetError("the answer is lost")

    return commit, transactions


def ids(project: Project) -> list[int]:
    return sorted(row["id"] for row in project.rows())
