"""What steps of your own are written with: docs/language/own-steps.md. All names without `_` are public; `framework` is not.

>>> from sluice.steps import ColumnName, Resolved, Rows, StepDocument
"""

from framework.errors import Problem, Where
from framework.model import Column, ColumnSql, Fault, State
from framework.model import Memory as Remember
from framework.plan.rows import Resolved, Rows
from framework.spec.options import Bound as OptionGroup
from framework.spec.options import WrittenStep as StepDocument
from framework.spec.options import option
from framework.spec.scalars import ColumnName, Duration, Expression
from framework.sql.expressions import Checked
from framework.sql.quote import column_path, identifier, literal
from framework.types import (
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
