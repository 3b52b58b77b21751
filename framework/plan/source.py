"""Sources of a pipeline's rows: topics, a table of another pipeline, and a select over some tables; and tables in which a step looks
rows up.

A source says what all readers of a plan ask of it. What differs more is a `match` over `Source` that names each of the three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from framework.base.types import BIGINT, TIMESTAMP
from framework.plan.catalog import Catalog
from framework.plan.topic import KAFKA_COLUMNS, Column, Decoding, Topic

FROM_COLUMNS = (
    Column("_from_time", TIMESTAMP, "When the source table got the commit after which the row is so"),
    Column("_from_batch", BIGINT, "Number of the batch that read the row"),
    Column("_from_commit", BIGINT, "Number of the commit of the source table that wrote the row"),
    Column("_from_row", BIGINT, "Id of the row in the source table"),
)
"""The columns of a source table's rows that put rows with keys in order."""
OLD = "_sluice_gone"
"""The column that tells whether a row is as it was before it was changed or deleted."""
_NO_DECODING = Decoding((), ())

ChangeTopic: TypeAlias = Callable[[Topic], Topic]
ChangeTable: TypeAlias = "Callable[[TableChanges], TableChanges]"


def _same_topic(topic: Topic) -> Topic:
    return topic


def _same_table(table: TableChanges) -> TableChanges:
    return table


@dataclass(frozen=True)
class Topics:
    """Topics whose messages a pipeline reads. They have the same columns, in the same cluster."""

    topics: tuple[Topic, ...]

    noun: ClassVar[str] = "message"
    tables: ClassVar[tuple[TableChanges, ...]] = ()
    kafka: ClassVar[tuple[Column, ...]] = ()  # columns of a table that came from Kafka
    select: ClassVar[SelectSource | None] = None
    is_whole: ClassVar[bool] = False
    has_old_rows: ClassVar[bool] = False

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The names that the topics have in Kafka."""
        return tuple(topic.kafka_name for topic in self.topics)

    @property
    def system(self) -> str:
        """The name of the cluster, as the owner of a table has it."""
        return self.topics[0].cluster.name

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.topics[0].columns

    @property
    def decoding(self) -> Decoding:
        return self.topics[0].decoding

    @property
    def event_time(self) -> str:
        """The column with the time of a row, which is Kafka's time where the topics name none."""
        return self.topics[0].event_time or KAFKA_COLUMNS[-1].name

    def mapped(self, *, topic: ChangeTopic = _same_topic, table: ChangeTable = _same_table) -> Topics:
        """The source with changed topics."""
        return Topics(tuple(map(topic, self.topics)))


class _Tables:
    """The parts that a table and a select have in common as sources."""

    noun: ClassVar[str] = "row"
    topics: ClassVar[tuple[Topic, ...]] = ()
    decoding: ClassVar[Decoding] = _NO_DECODING

    if TYPE_CHECKING:  # fields of the one, properties of the other

        @property
        def catalog(self) -> Catalog: ...
        @property
        def tables(self) -> tuple[TableChanges, ...]: ...
        @property
        def reads(self) -> str: ...
        @property
        def old(self) -> str: ...

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The names of the tables in their catalog."""
        return tuple(table.identifier for table in self.tables)

    @property
    def system(self) -> str:
        """The catalog, as the owner of a table has it."""
        return f"catalog {self.catalog.name}"

    @property
    def is_whole(self) -> bool:
        """Whether each batch computes the pipeline's table again from all rows."""
        return self.reads == "all"

    @property
    def has_old_rows(self) -> bool:
        """Whether rows that were changed or deleted are read, too."""
        return self.old != "none"


@dataclass(frozen=True, kw_only=True)
class TableChanges(_Tables):
    """A table of another pipeline that this pipeline reads."""

    pipeline: str
    catalog: Catalog
    identifier: str
    columns: tuple[Column, ...]  # the pipeline's own, without Kafka's columns
    kafka: tuple[Column, ...]
    reads: Literal["all", "added", "changes", "commits"] = "all"  # each batch; `commits`: the changes of one commit at a time
    rows_change: bool = False  # whether its pipeline also changes and deletes rows
    by_value: bool = False  # whether its rows have no ids that last
    keys: tuple[str, ...] = ()  # columns in which a row never changes
    versions: bool = False  # whether a key can have several rows, of which one is current
    event_time: str | None = None  # its column with a row's time, by the first topics
    partitions: tuple[str, ...] = ()  # columns by whose values its files are partitioned
    old: Literal["none", "deleted", "all"] = "none"  # of changes: whether deleted rows are read, and those before a change
    select: ClassVar[SelectSource | None] = None

    @property
    def partition(self) -> str:
        """The table's name in a position."""
        return f"{self.identifier}/0"

    @property
    def tables(self) -> tuple[TableChanges, ...]:
        """All tables that are read, which is this one."""
        return (self,)

    def mapped(self, *, topic: ChangeTopic = _same_topic, table: ChangeTable = _same_table) -> TableChanges:
        """The source with a changed table."""
        return table(self)


@dataclass(frozen=True, kw_only=True)
class SelectSource(_Tables):
    """A select over tables of other pipelines, whose rows this pipeline reads. In the SQL the `names` stand for the tables. `apart` are
    columns of the one table by which rows can be computed alone, each with its name among the select's; `by_partition`: it is one, by
    which the files of both tables are partitioned."""

    says: tuple[str, ...]
    sql: str
    names: tuple[str, ...]
    tables: tuple[TableChanges, ...]
    columns: tuple[Column, ...]
    origins: tuple[tuple[str, tuple[str, ...]], ...]  # of each column, those of the tables with their names in front
    apart: tuple[tuple[str, str], ...]
    by_partition: bool = False
    kafka: tuple[Column, ...] = ()
    reads: Literal["all"] = "all"
    event_time: None = None
    old: Literal["none"] = "none"

    @property
    def select(self) -> SelectSource:
        return self

    @property
    def catalog(self) -> Catalog:
        return self.tables[0].catalog

    @property
    def identifier(self) -> str:
        """The names of the select's tables."""
        return ", ".join(table.identifier for table in self.tables)

    @property
    def pipeline(self) -> str:
        """The names of the pipelines that write the select's tables."""
        return " ".join(table.pipeline for table in self.tables)

    def mapped(self, *, topic: ChangeTopic = _same_topic, table: ChangeTable = _same_table) -> SelectSource:
        """The source with changed tables."""
        return replace(self, tables=tuple(map(table, self.tables)))


Source: TypeAlias = Topics | TableChanges | SelectSource


@dataclass(frozen=True)
class Lookup:
    """A table that a step looks rows up in, by columns that are its keys. A row without a match waits `within` so
    many seconds."""

    source: TableChanges
    on: tuple[str, ...]
    take: tuple[str, ...]
    _: KW_ONLY
    within: int | None = None
