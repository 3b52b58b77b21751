"""The plan that will run: all names are resolved, and every column has a type. The engine does nothing that the plan does not show."""

from framework.plan.bounds import Bounds
from framework.plan.catalog import Catalog, Listing
from framework.plan.column_sql import ColumnSql, columns_read
from framework.plan.expectation import Expectation, SetExpectation
from framework.plan.follower import FOLLOWED, PUBLISHED, Follower, ListedTable
from framework.plan.maintenance import DependentTable, Maintain, Thin
from framework.plan.pipeline import Pipeline, Run, in_order
from framework.plan.plan import Engine, LaterPlan, Plan, PlannedDocument
from framework.plan.rule import ALL_ROWS, IS_CURRENT, VERSION, AllRows, Keyed, Rule, State
from framework.plan.secret import Joined, MaskKey, Masks, SecretRef
from framework.plan.side_table import BAD_ROW_COLUMNS, DISCARDED, LOST_BYTES, OPEN, REPLAYED, WAITS, SideTable
from framework.plan.source import FROM_COLUMNS, OLD, Lookup, SelectSource, Source, TableChanges, Topics
from framework.plan.step import Explode, Remember, Step
from framework.plan.storage import Storage
from framework.plan.table import PartitionField, SchemaChanges, Table
from framework.plan.tests import Message, SpecTest, SpecTestRow
from framework.plan.topic import (
    EVENT_TIME,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    ChangeFormat,
    Cluster,
    Column,
    Decoding,
    Fault,
    Generated,
    GeneratedFields,
    Generator,
    Login,
    MessagePart,
    Outliers,
    PlannedSubject,
    SecretStore,
    Security,
    Topic,
    part_sql,
)

__all__ = [
    "ALL_ROWS",
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
    "AllRows",
    "Bounds",
    "Catalog",
    "ChangeFormat",
    "Cluster",
    "Column",
    "ColumnSql",
    "Decoding",
    "DependentTable",
    "Engine",
    "Expectation",
    "Explode",
    "Fault",
    "Follower",
    "Generated",
    "GeneratedFields",
    "Generator",
    "Joined",
    "Keyed",
    "LaterPlan",
    "ListedTable",
    "Listing",
    "Login",
    "Lookup",
    "Maintain",
    "MaskKey",
    "Masks",
    "Message",
    "MessagePart",
    "Outliers",
    "PartitionField",
    "Pipeline",
    "Plan",
    "PlannedDocument",
    "PlannedSubject",
    "Remember",
    "Rule",
    "Run",
    "SchemaChanges",
    "SecretRef",
    "SecretStore",
    "Security",
    "SelectSource",
    "SetExpectation",
    "SideTable",
    "Source",
    "SpecTest",
    "SpecTestRow",
    "State",
    "Step",
    "Storage",
    "Table",
    "TableChanges",
    "Thin",
    "Topic",
    "Topics",
    "columns_read",
    "in_order",
    "part_sql",
]
