"""What will run: names have become things, and every column has a type. The engine does what stands here and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from graphlib import TopologicalSorter
from typing import Any, Literal

from framework.errors import SluiceError, Where
from framework.registry import Schema, Version
from framework.spec.options import SecretRef
from framework.types import BIGINT, INT, STRING, TIMESTAMP, Struct, Type


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    doc: str = ""
    where: Where | None = field(default=None, compare=False, repr=False)  # what in the specs made it
    # Fields of it, or it itself, that had another name in an older schema: the place with that name, and the name now.
    renamed: tuple[tuple[tuple[str, ...], str], ...] = field(default=(), compare=False, repr=False)


KAFKA_COLUMNS = (
    Column("_kafka_partition", INT, "Kafka partition of the message"),
    Column("_kafka_offset", BIGINT, "Kafka offset of the message"),
    Column("_kafka_timestamp", TIMESTAMP, "Kafka timestamp of the message"),
)
KAFKA_TOPIC = Column("_kafka_topic", STRING, "Kafka topic of the message")  # where a pipeline has several
EVENT_TIME = "_event_time"
IS_CURRENT = "is_current"
VERSION = {
    "valid_from": "Since when the row was so",
    "valid_to": "Until when it was so: then another version of its key came, or its end; null of a current one",
    IS_CURRENT: "Whether it is the newest version of its key, and not deleted",
}  # columns of a table that keeps all versions


@dataclass(frozen=True)
class Fault:
    """What can be wrong with one message: `when` is SQL that is true where it is. `why` is SQL of what is said of one message, over
    `_sluice_key` and `_sluice_value`, where the same message does not do for all."""

    stage: str
    code: str
    message: str
    when: str
    why: str = ""


@dataclass(frozen=True)
class Decoding:
    """How a message becomes columns: SQL over `_sluice_value`, `_sluice_text`, `_sluice_key`, `_sluice_headers` and over
    `_sluice_decoded`, which stands for `parse`. What the fault `undecodable` says of one message is found later, by `explain`."""

    parse: str | None
    columns: tuple[tuple[str, str], ...]
    faults: tuple[Fault, ...]
    explain: tuple[tuple[str, str], ...] = ()
    explained: str = "NULL"  # what `explain` calls `_sluice_parsed`
    apart: tuple[tuple[str, str], ...] = ()  # columns and SQL of what is computed before all this, once
    natively: tuple[Native, ...] = ()  # columns that Python computes before that
    keep: str | None = None  # SQL that is true of messages that become rows; others are left out and counted
    schema_id: str = "NULL"  # SQL of the id of a bad row's schema
    unknown: str | None = None  # SQL of a schema's id that is none of those known here, else null; of these the registry is asked


@dataclass(frozen=True)
class Native:
    """A column that Python computes of the messages' `key` or `value`, whole Arrow arrays at a time. `using` takes a binary array
    and gives a struct array of the type; it must be something that can be pickled."""

    of: Literal["key", "value"]
    into: str
    type: Struct
    using: Callable[[Any], Any]


@dataclass(frozen=True)
class Step:
    """One step: the columns it sets, the rows it keeps, what can be wrong with a row, and the columns after it. With `each`,
    a list, every item of it becomes a row of its own, in which the item is the column `into`."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: tuple[str, ...]
    assign: tuple[tuple[str, str], ...]
    keep: str | None
    faults: tuple[Fault, ...]
    columns: tuple[Column, ...]
    each: Each | None = None
    of_tombstones: bool = False  # whether its faults are also looked for in messages without a value that delete a row


@dataclass(frozen=True)
class Each:
    """SQL of a list, and the column that takes its items."""

    list: str
    into: str


@dataclass(frozen=True)
class Expectation:
    """What must hold for rows: `holds` is SQL that is true where it does."""

    name: str
    where: Where = field(compare=False, repr=False)
    says: str
    holds: str
    otherwise: Literal["quarantine", "warn", "stop"]

    @property
    def message(self) -> str:
        return self.says if self.name == self.says else f"{self.name}: {self.says}"


@dataclass(frozen=True)
class Security:
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | SecretRef | None = None
    password: SecretRef | None = None


@dataclass(frozen=True)
class Login:
    username: str | SecretRef
    password: SecretRef


@dataclass(frozen=True)
class Cluster:
    name: str
    bootstrap: str
    security: Security
    registry: str | None = None
    registry_auth: Login | None = None


@dataclass(frozen=True)
class Catalog:
    name: str
    type: str
    uri: str
    warehouse: str


@dataclass(frozen=True)
class Engine:
    master: str = "local[*]"
    memory: str = "4g"
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class SecretStore:
    store: Literal["env", "file"] = "env"
    path: str | None = None


@dataclass(frozen=True)
class Generated:
    """How one field of generated messages is made; exactly one is set."""

    one_of: tuple[str, ...] | None
    between: tuple[float, float] | None
    pattern: str | None


@dataclass(frozen=True)
class Generator:
    rate: float
    fields: tuple[tuple[str, Type, Generated], ...]


@dataclass(frozen=True)
class Registered:
    """What the registry said of a topic's keys or values when the plan was made. `refused` are versions that not every table takes:
    the schema's id, what it does, and that in words. `trouble`: the registry did not answer, or has no such subject."""

    of: Literal["key", "value"]
    subject: str
    numbers: tuple[int, ...]
    refused: tuple[tuple[int, str, str], ...]
    known: bool  # whether the columns are
    trouble: SluiceError | None = field(default=None, compare=False, repr=False)
    # By what messages are written: the newest schema or, while there is none, one that is made of the spec's columns and has the id 0.
    # `names` are its fields, by their places, that columns call otherwise.
    newest: Version | None = field(default=None, compare=False, repr=False)
    names: tuple[tuple[tuple[str, ...], str], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Topic:
    name: str
    where: Where
    doc: str
    cluster: Cluster
    kafka_name: str
    partitions: int
    value: str
    columns: tuple[Column, ...]
    key_columns: tuple[str, ...]
    key_format: str
    headers: tuple[str, ...]
    decoding: Decoding
    event_time: str | None
    start_from: Literal["earliest", "latest"] | datetime
    generator: Generator | None
    registered: tuple[Registered, ...] = ()


@dataclass(frozen=True)
class PartitionField:
    """identity, year, month, day, hour, bucket or truncate of a column."""

    transform: str
    column: str
    width: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.width}, ' if self.width else ''}{self.column})"


@dataclass(frozen=True)
class Run:
    """When Dagster runs it: one of these, or neither if by hand."""

    every: int | None = None  # seconds
    cron: str | None = None


@dataclass(frozen=True)
class SchemaChanges:
    """Which differences between a spec, or the registry, and a table a run takes. A column that is narrower now keeps its type."""

    add: Literal["allow", "refuse"] = "allow"
    widen: Literal["allow", "refuse"] = "allow"
    drop: Literal["keep", "refuse"] = "keep"
    rename: Literal["allow", "refuse"] = "refuse"
    narrow: Literal["allow", "refuse"] = "refuse"


@dataclass(frozen=True)
class Keyed:
    """Rows that go by their keys: one of each, the newest, or with `versions` all of them. Of two with the same key the newer is the
    one whose `order` is greater, column by column; null is the oldest."""

    keys: tuple[str, ...]
    order: tuple[str, ...]
    versions: bool
    deletes: str | None  # SQL that is true of a row that deletes those of its key
    ends: str | None  # SQL over a message, which does so whatever the steps say
    truncates: str | None  # SQL over a message that deletes the rows of all keys
    remember: int  # seconds that a deleted key is known for
    says: str  # what deletes, in words
    stands_in: bool  # whether Kafka's timestamp takes the place of the `order` of a message that deletes
    unsent: tuple[tuple[str, str], ...] = ()  # columns, and SQL over `?` of whether a value is still the same and was not sent


@dataclass(frozen=True)
class Table:
    catalog: Catalog
    namespace: str
    name: str
    columns: tuple[Column, ...]
    write: str
    partition_by: tuple[PartitionField, ...]
    sort_by: tuple[str, ...]
    format_version: int
    doc: str = ""
    keyed: Keyed | None = None
    schema_changes: SchemaChanges = field(default=SchemaChanges(), repr=False)  # no part of what rows come out
    places: Mapping[str, Where] = field(default_factory=dict, compare=False, repr=False)  # of the options of `into`

    @property
    def identifier(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns that come of a message."""
        made = VERSION if self.keyed and self.keyed.versions else ()
        return tuple(column for column in self.columns if column.name not in made)

    @property
    def bad_rows(self) -> str:
        return f"{self.identifier}__bad_rows"


@dataclass(frozen=True)
class TableSource:
    """A table of another pipeline, from which this one is computed."""

    pipeline: str
    catalog: Catalog
    identifier: str
    columns: tuple[Column, ...]  # the pipeline's own, without what Kafka says
    kafka: tuple[Column, ...]


@dataclass(frozen=True)
class Maintain:
    """How files and snapshots are to be kept small: bytes and seconds. Nothing does so in this version."""

    compact_to: int
    compact_every: int
    keep_snapshots_for: int
    keep_at_least: int
    orphans_after: int


@dataclass(frozen=True)
class Message:
    """A message of a test, as Kafka would have it."""

    batch: int  # the first is 1
    topic: str  # as Kafka calls it
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class GivenRow:
    """A row of the table that a tested pipeline reads; of a column that is not named there is no value."""

    batch: int  # the first is 1
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """A test: messages or rows, and the rows and bad rows that are to come of them, each by the columns that matter."""

    name: str
    where: Where
    given: tuple[Message | GivenRow, ...]
    expect: tuple[Mapping[str, Any], ...] | None  # None: rows are not looked at
    expect_bad: tuple[Mapping[str, Any], ...]

    @property
    def batches(self) -> range:
        return range(1, max(each.batch for each in self.given) + 1)


@dataclass(frozen=True)
class Pipeline:
    name: str
    where: Where
    doc: str
    owner: str | None
    tags: tuple[tuple[str, str], ...]
    topics: tuple[Topic, ...]  # none where the rows come from a table
    source: TableSource | None
    kafka_columns: tuple[Column, ...]  # what Kafka says of each message
    steps: tuple[Step, ...]
    table: Table
    batch_rows: int
    run: Run
    bad_rows: Literal["quarantine", "stop", "drop"]
    fresh_within: int | None
    warn_after: int | None
    expected: tuple[Expectation, ...]
    maintain: Maintain
    spec: str  # a digest of all above that says what rows come out
    examples: tuple[Example, ...] = field(default=(), compare=False, repr=False)

    @property
    def topic(self) -> Topic:
        """The first topic: several in one pipeline have one shape."""
        return self.topics[0]

    @property
    def faults(self) -> tuple[Fault, ...]:
        decoding = () if self.source else self.topic.decoding.faults
        return decoding + tuple(fault for step in self.steps for fault in step.faults)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Those of a whole batch; of single rows the last step is."""
        return tuple(each for each in self.expected if each.otherwise != "quarantine")

    @property
    def sources(self) -> tuple[str, ...]:
        """What its rows come from, as Kafka or the catalog calls it."""
        return (self.source.identifier,) if self.source else tuple(topic.kafka_name for topic in self.topics)


def in_order(pipelines: Iterable[Pipeline]) -> list[Pipeline]:
    """As they run: one whose rows come from a table behind the one that writes it."""
    named = {pipeline.name: pipeline for pipeline in pipelines}
    before = {name: {pipeline.source.pipeline} if pipeline.source else set() for name, pipeline in named.items()}
    return [named[name] for name in TopologicalSorter(before).static_order() if name in named]


@dataclass(frozen=True)
class Plan:
    environment: str
    engine: Engine
    secrets: SecretStore
    clusters: tuple[Cluster, ...]
    catalogs: tuple[Catalog, ...]
    topics: tuple[Topic, ...]
    pipelines: tuple[Pipeline, ...]
    # The same specs planned again, with what the registry says by then and, for each topic, schemas of other subjects.
    again: Callable[[Mapping[str, Mapping[int, Schema | None]]], Plan] | None = field(default=None, compare=False, repr=False)

    def pipeline(self, name: str) -> Pipeline | None:
        return next((pipeline for pipeline in self.pipelines if pipeline.name == name), None)
