"""Rows at one point of a select: their SQL so far, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from framework.base.types import BOOLEAN, VOID
from framework.sql.expressions import Checked, typed
from framework.sql.faults import ExpressionError, ExpressionFault, refused
from framework.sql.operand_remedies import suggest_for_condition
from framework.sql.query.functions import WINDOWS
from framework.sql.query.nodes import Aggregate, Over
from framework.sql.query.relations import RelationField
from framework.sql.quote import identifier
from framework.sql.suggested import written
from framework.sql.tree import Call, Column, Node, walk

Result = TypeVar("Result")


@dataclass
class SelectRows:
    sql: str
    columns: dict[str, RelationField]  # by their names in SQL
    apart: frozenset[str] | None  # like `apart` of a Relation
    faults: list[ExpressionFault]

    def tried(self, make: Callable[..., Result], *arguments: Any) -> Result | None:
        """Returns the result of `make`, or None, with its faults added to `faults`."""
        try:
            return make(*arguments)
        except ExpressionError as error:
            self.faults += error.faults
            return None

    def checked(self, node: Node) -> Checked:
        """Returns an expression over one row, checked."""
        for part, _ in walk(node):
            if isinstance(part, Aggregate | Over):
                hint = "compute it in a select behind WITH, or in parentheses in FROM, and name it"
                raise refused(part.offset, "sql-aggregate", "a value of many rows cannot stand here", hint)
            if isinstance(part, Call) and part.name in WINDOWS:
                message = f"{part.name} makes groups of rows, and stands alone in GROUP BY"
                raise refused(part.offset, "sql-window", message, f"write it in GROUP BY too, and name it: {part.name}(…) as w")
        return typed(node, {name: column.type for name, column in self.columns.items()})

    def field(self, name: str, checked: Checked, node: Node) -> RelationField:
        """Returns the field of a column with this value."""
        same = self.columns[node.name].same if isinstance(node, Column) and node.name in self.columns else None
        return RelationField(name, checked.type, self.origins(checked.sql.reads), same=same)

    def origins(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(self.columns[name].origins for name in names))

    def read(self, node: Node) -> set[str]:
        """Returns the columns that an expression reads, also one over many rows."""
        return {part.name for part, _ in walk(node) if isinstance(part, Column) and part.name in self.columns}

    def keep(self, node: Node, clause: str) -> None:
        """Keeps the rows that meet a condition."""
        condition = self.tried(self.condition, node, clause)
        if condition is not None:
            self.sql = f"SELECT * FROM ({self.sql}) WHERE {condition.sql}"

    def condition(self, node: Node, clause: str) -> Checked:
        checked = self.checked(node)
        if checked.type not in (BOOLEAN, VOID):
            message = f"{clause} is {checked.type}, not true or false"
            raise refused(node.offset, "not-a-condition", message, suggest_for_condition(written(checked), checked.type))
        return checked

    def add(self, new_columns: dict[str, tuple[str, RelationField]]) -> None:
        """Adds columns, each with its SQL."""
        items = ", ".join(f"{sql} AS {identifier(name)}" for name, (sql, _) in new_columns.items())
        self.sql = f"SELECT *, {items} FROM ({self.sql})"
        self.columns = self.columns | {name: column for name, (_, column) in new_columns.items()}
