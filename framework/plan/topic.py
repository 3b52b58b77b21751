"""Clusters and topics, and how a message becomes columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any, Literal

from framework.base.errors import SluiceError, Where
from framework.base.types import BIGINT, INT, STRING, TIMESTAMP, Type
from framework.plan.schema import Version
from framework.plan.secret import SecretRef


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    doc: str = ""
    _: KW_ONLY
    where: Where | None = field(default=None, compare=False, repr=False)  # the line of the specs that defines it
    # Renames since an older schema, of the column or of fields inside it: the path with the old name, and the new name.
    renamed: tuple[tuple[tuple[str, ...], str], ...] = field(default=(), compare=False, repr=False)


KAFKA_COLUMNS = (
    Column("_kafka_partition", INT, "Kafka partition of the message"),
    Column("_kafka_offset", BIGINT, "Kafka offset of the message"),
    Column("_kafka_timestamp", TIMESTAMP, "Kafka timestamp of the message"),
)
KAFKA_TOPIC = Column("_kafka_topic", STRING, "Kafka topic of the message")  # where a pipeline has several
EVENT_TIME = "_event_time"


MessagePart = Literal["key", "value"]


def part_sql(part: MessagePart) -> str:
    """SQL of the message's key or value, whole."""
    return f"_sluice_{part}"


@dataclass(frozen=True)
class Fault:
    """A fault of one message: `when` is SQL that is true for a message with the fault. Where one text does not fit all messages, `why` is
    SQL, over `_sluice_key` and `_sluice_value`, of the message's own text, or `cause` is SQL, over the row, of the words that complete the
    text."""

    stage: str
    code: str
    message: str
    _: KW_ONLY
    when: str
    why: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Decoding:
    """The conversion of a message to columns: SQL over `_sluice_value`, `_sluice_text`, `_sluice_key`, `_sluice_headers` and the names in
    `structs`, each of which stands for the struct that a decoder makes of the message."""

    columns: tuple[tuple[str, str], ...]
    faults: tuple[Fault, ...]
    _: KW_ONLY
    structs: tuple[tuple[str, str], ...] = ()
    keep: str | None = None  # SQL that is true for messages that become rows; others are skipped and counted
    schema_id: str = "NULL"  # SQL of the schema id of a bad row
    unknown: str | None = None  # SQL of a schema id that the plan lacks and the registry is asked for, else null


@dataclass(frozen=True, kw_only=True)
class ChangeFormat:
    """The columns of messages that are changes of a table's rows. `op` and `at` follow the row's own columns: they hold what was
    done, as one of the texts in `writes`, `deletes` and `truncates`, and when."""

    op: Column
    at: Column
    writes: tuple[str, ...]  # the message has the row as it is then
    deletes: tuple[str, ...]  # of one row, by its key
    truncates: tuple[str, ...]  # of all rows
    unsent: Callable[
        [Type], str
    ]  # SQL over `?`, a column of the type: whether its value was not sent; empty if it always is sent
    created: Callable[[Mapping[str, Any], datetime], Mapping[str, Any]]  # returns the message of a row that was added

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.op, self.at


@dataclass(frozen=True)
class OAuth:
    """How a login by OAUTHBEARER gets its tokens. Its client id is the login's `username`, the client's secret the `password`."""

    token_endpoint: str
    scope: str | None = None
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Certificates:
    """The certificates of an encrypted connection: the path of those that vouch for brokers, and the client's own, with its key."""

    ca: str | None = None
    certificate: SecretRef | None = None
    key: SecretRef | None = None
    key_password: SecretRef | None = None


@dataclass(frozen=True, kw_only=True)
class Security:
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | SecretRef | None = None
    password: SecretRef | None = None
    oauth: OAuth | None = None
    tls: Certificates | None = None

    @property
    def logs_in(self) -> bool:
        return self.username is not None or bool(self.tls and self.tls.certificate)


@dataclass(frozen=True)
class Login:
    username: str | SecretRef
    password: SecretRef


@dataclass(frozen=True, kw_only=True)
class Cluster:
    name: str
    bootstrap: str
    security: Security
    registry: str | None = None
    registry_auth: Login | None = None


@dataclass(frozen=True)
class SecretStore:
    """The store for the values of secrets. `type` is a file of `framework.systems.secrets`, `options` are as that declares them.
    `rotated`: what documents `keys` replace, as the beginnings of secrets' names; `masking`: those of which all keys stay, as names."""

    type: str = "env"
    options: Any = None
    rotated: frozenset[str] = field(default=frozenset(), compare=False)
    masking: frozenset[str] = field(default=frozenset(), compare=False)

    def is_rotated(self, name: str) -> bool:
        """Whether a secret is replaced from time to time: then it is noted who uses which value."""
        return any(name == secret or name.startswith((f"{secret}_", f"{secret}.")) for secret in self.rotated)


@dataclass(frozen=True)
class Generated:
    """The rule for the values of one field of generated messages. One attribute is set; without one, the value is the current
    time."""

    one_of: tuple[str, ...] | None
    between: tuple[float, float] | None
    pattern: str | None
    last: int | None = None  # seconds


GeneratedFields = tuple[tuple[str, Type, Generated], ...]


@dataclass(frozen=True)
class Outliers:
    """The share of messages in which these fields have other values."""

    share: float
    fields: GeneratedFields


@dataclass(frozen=True)
class Generator:
    rate: float
    fields: GeneratedFields
    repeats: float = 0.0  # the share of messages that were sent before
    outliers: tuple[Outliers, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedSubject:
    """The registry's answer for a topic's keys or values at planning time. `refused` are versions that not every table accepts: the
    schema's id, the kind of its change, and the change in words. `trouble`: the registry did not answer, or lacks the subject."""

    of: MessagePart
    subject: str
    numbers: tuple[int, ...]
    refused: tuple[tuple[int, str, str], ...]
    columns_known: bool
    trouble: SluiceError | None = field(default=None, compare=False, repr=False)
    # The schema that new messages are written with: the latest or, while the subject has none, a schema derived from the spec's
    # columns, with the id 0. `names` maps the paths of its fields to column names, where the two differ.
    write_version: Version | None = field(default=None, compare=False, repr=False)
    names: tuple[tuple[tuple[str, ...], str], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Topic:
    name: str
    where: Where
    doc: str
    cluster: Cluster
    kafka_name: str
    partitions: int  # 0: as many as the cluster's default
    value: str
    columns: tuple[Column, ...]
    key_columns: tuple[str, ...]
    key_format: str
    headers: tuple[str, ...]
    decoding: Decoding
    event_time: str | None
    start_from: Literal["earliest", "latest"] | datetime
    generator: Generator | None
    steady: bool = False  # messages always come, so that silence is a fault
    registered: tuple[PlannedSubject, ...] = ()
    changes: ChangeFormat | None = None

    def columns_of(self, part: MessagePart) -> tuple[Column, ...]:
        """The columns that are decoded from a message's key or value."""
        other_columns = (*self.key_columns, *self.headers)
        return tuple(
            column
            for column in self.columns
            if (column.name in self.key_columns if part == "key" else column.name not in other_columns)
        )
