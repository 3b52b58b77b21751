"""The plan that will run: all names are resolved, and every column has a type. The engine does nothing that the plan does not show."""

from framework.plan.bounds import Bounds
from framework.plan.catalog import Catalog, Listing
from framework.plan.column_sql import ColumnSql, columns_read
from framework.plan.expectation import Expectation, SetExpectation
from framework.plan.follower import FOLLOWED, PUBLISHED, Follower, ListedTable
from framework.plan.maintenance import Maintain, Reader, Thin
from framework.plan.pipeline import Pipeline, Run, in_order
from framework.plan.plan import Engine, Plan, PlannedDocument, Replanned
from framework.plan.secret import Joined, MaskKey, Masks, SecretRef
from framework.plan.side_table import BAD_ROW_COLUMNS, DISCARDED, LOST_BYTES, OPEN, REPLAYED, WAITS, SideTable
from framework.plan.source import FROM_COLUMNS, OLD, Join, SelectSource, TableSource
from framework.plan.step import Each, Memory, Step
from framework.plan.storage import Storage
from framework.plan.table import IS_CURRENT, VERSION, Keyed, PartitionField, SchemaChanges, State, Table
from framework.plan.tests import Example, GivenRow, Message
from framework.plan.topic import (
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
