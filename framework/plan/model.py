"""What will run: names have become things, and every column has a type. The engine does what stands here and no more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from framework.errors import Where
from framework.spec.options import SecretRef
from framework.types import BIGINT, INT, TIMESTAMP, Type


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    doc: str = ""


KAFKA_COLUMNS = (
    Column("_kafka_partition", INT, "Kafka partition of the message"),
    Column("_kafka_offset", BIGINT, "Kafka offset of the message"),
    Column("_kafka_timestamp", TIMESTAMP, "Kafka timestamp of the message"),
)
EVENT_TIME = "_event_time"


@dataclass(frozen=True)
class Fault:
    """What can be wrong with one message: `when` is SQL that is true where it is."""

    stage: str
    code: str
    message: str
    when: str


@dataclass(frozen=True)
class Decoding:
    """How a message becomes columns: SQL over `_sluice_value`, `_sluice_text`, `_sluice_key`, `_sluice_headers` and over
    `_sluice_decoded`, which stands for `parse`. What the fault `undecodable` says of one message is found later, by `explain`."""

    parse: str | None
    columns: tuple[tuple[str, str], ...]
    faults: tuple[Fault, ...]
    explain: tuple[tuple[str, str], ...] = ()
    explained: str = "NULL"  # what `explain` calls `_sluice_parsed`


@dataclass(frozen=True)
class Step:
    """One step: the columns it sets, the rows it keeps, the columns after it."""

    name: str
    where: Where
    says: tuple[str, ...]
    assign: tuple[tuple[str, str], ...]
    keep: str | None
    faults: tuple[Fault, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Security:
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | SecretRef | None = None
    password: SecretRef | None = None


@dataclass(frozen=True)
class Cluster:
    name: str
    bootstrap: str
    security: Security


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
    key: str | None
    fields: tuple[tuple[str, Type, Generated], ...]


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
    key_column: str | None
    key_format: str
    headers: tuple[str, ...]
    decoding: Decoding
    event_time: str | None
    start_from: Literal["earliest", "latest"] | datetime
    generator: Generator | None


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

    @property
    def identifier(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def bad_rows(self) -> str:
        return f"{self.identifier}__bad_rows"


@dataclass(frozen=True)
class Pipeline:
    name: str
    where: Where
    doc: str
    owner: str | None
    tags: tuple[tuple[str, str], ...]
    topic: Topic
    steps: tuple[Step, ...]
    table: Table
    batch_rows: int
    every: int | None
    bad_rows: Literal["quarantine", "stop", "drop"]
    fresh_within: int | None
    warn_after: int | None
    spec: str  # a digest of all above that says what rows come out

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self.topic.decoding.faults + tuple(fault for step in self.steps for fault in step.faults)


@dataclass(frozen=True)
class Plan:
    environment: str
    engine: Engine
    secrets: SecretStore
    clusters: tuple[Cluster, ...]
    catalogs: tuple[Catalog, ...]
    topics: tuple[Topic, ...]
    pipelines: tuple[Pipeline, ...]

    def pipeline(self, name: str) -> Pipeline | None:
        return next((pipeline for pipeline in self.pipelines if pipeline.name == name), None)
