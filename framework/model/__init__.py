"""The plan that will run: all names are resolved, and every column has a type. The engine does nothing that the plan does not show."""

from framework.model.bounds import Bounds
from framework.model.catalog import Catalog, Listing
from framework.model.column_sql import ColumnSql, columns_read
from framework.model.example import Example, GivenRow, Message
from framework.model.expectation import Expectation, SetExpectation
from framework.model.follower import FOLLOWED, PUBLISHED, Follower, ListedTable
from framework.model.maintain import Maintain, Reader, Thin
from framework.model.pipeline import Pipeline, Run, in_order
from framework.model.plan import Engine, Plan, PlannedDocument, Replanned
from framework.model.secret import Joined, MaskKey, Masks, SecretRef
from framework.model.side_table import BAD_ROW_COLUMNS, DISCARDED, LOST_BYTES, OPEN, REPLAYED, WAITS, SideTable
from framework.model.step import Each, Memory, Step
from framework.model.storage import Storage
from framework.model.table import IS_CURRENT, VERSION, Keyed, PartitionField, SchemaChanges, State, Table
from framework.model.table_source import FROM_COLUMNS, OLD, Join, SelectSource, TableSource
from framework.model.topic import (
    EVENT_TIME,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    Changes,
    Cluster,
    Column,
    Decoding,
    Fault,
    Generated,
    GeneratedFields,
    Generator,
    Login,
    Of,
    Outliers,
    Registered,
    SecretStore,
    Security,
    Topic,
    raw,
)

__all__ = [
    "BAD_ROW_COLUMNS",
    "DISCARDED",
    "EVENT_TIME",
    "FOLLOWED",
    "FROM_COLUMNS",
    "IS_CURRENT",
    "KAFKA_COLUMNS",
    "KAFKA_TOPIC",
    "LOST_BYTES",
    "OLD",
    "OPEN",
    "PUBLISHED",
    "REPLAYED",
    "VERSION",
    "WAITS",
    "Bounds",
    "Catalog",
    "Changes",
    "Cluster",
    "Column",
    "ColumnSql",
    "Decoding",
    "Each",
    "Engine",
    "Example",
    "Expectation",
    "Fault",
    "Follower",
    "Generated",
    "GeneratedFields",
    "Generator",
    "GivenRow",
    "Join",
    "Joined",
    "Keyed",
    "ListedTable",
    "Listing",
    "Login",
    "Maintain",
    "MaskKey",
    "Masks",
    "Memory",
    "Message",
    "Of",
    "Outliers",
    "PartitionField",
    "Pipeline",
    "Plan",
    "PlannedDocument",
    "Reader",
    "Registered",
    "Replanned",
    "Run",
    "SchemaChanges",
    "SecretRef",
    "SecretStore",
    "Security",
    "SelectSource",
    "SetExpectation",
    "SideTable",
    "State",
    "Step",
    "Storage",
    "Table",
    "TableSource",
    "Thin",
    "Topic",
    "columns_read",
    "in_order",
    "raw",
]
