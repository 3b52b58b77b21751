"""The names with which steps of your own are written: docs/language/own-steps.md. All names without `_` are public; `framework` is not.

>>> from sluice.steps import ColumnName, Resolved, Rows, StepDocument
"""

from framework.base.errors import Problem, Where
from framework.base.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
)
from framework.documents.rows import Resolved, Rows
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import ColumnName, Duration, Expression
from framework.plan import Column, ColumnSql, Fault, Remember, State
from framework.sql.expressions import Checked
from framework.sql.quote import column_path, identifier, literal

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TINYINT",
    "Array",
    "Checked",
    "Column",
    "ColumnName",
    "ColumnSql",
    "Decimal",
    "Duration",
    "Expression",
    "Fault",
    "Field",
    "Map",
    "OptionGroup",
    "Problem",
    "Remember",
    "Resolved",
    "Rows",
    "State",
    "StepDocument",
    "Struct",
    "Type",
    "Where",
    "column_path",
    "identifier",
    "literal",
    "option",
]
