"""One select over the rows so far: `select a, upper(b) as c from input where d > 0`, made of checked expressions.

*Limit* Row by row, from `input` alone: every other clause of SQL is refused by its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from framework.base.spelling import did_you_mean, listed
from framework.base.types import BOOLEAN, VOID, Struct, Type
from framework.sql import statement
from framework.sql.expressions import Checked, typed
from framework.sql.faults import ExpressionError, ExpressionFault
from framework.sql.operand_remedies import suggest_for_condition
from framework.sql.quote import column_path
from framework.sql.statement import ParsedSelect
from framework.sql.suggested import code
from framework.sql.tokens import Token
from framework.sql.tree import Column, Member, Node, walk

__all__ = ["Selected", "SelectedColumn", "select"]


@dataclass(frozen=True)
class SelectedColumn:
    """One column of the result. `text` is the item's SQL without its name, on one line; `offset` is the place of the name,
    or of the item if it has no name."""

    name: str
    value: Checked
    text: str
    offset: int


@dataclass(frozen=True)
class Selected:
    """Items over the columns before the select; `where` is a condition, and null is not true."""

    items: tuple[SelectedColumn, ...]
    where: Checked | None
    where_text: str


def select(text: str, columns: Mapping[str, Type], star: Collection[str] | None = None) -> Selected:
    """Returns the select, checked, or raises ExpressionError with all errors. `*` stands for `star`, or for all columns."""
    parsed = statement.read(text)
    names = _Names(columns, tuple(columns if star is None else star), parsed.tables)
    faults = list(parsed.faults)
    items: list[SelectedColumn] = []
    where = None
    for parsed_item in parsed.items:
        try:
            items += names.items(parsed_item)
        except ExpressionError as error:
            faults += error.faults
    if parsed.where is not None:
        try:
            where = names.condition(parsed.where)
        except ExpressionError as error:
            faults += error.faults
    if not faults and not items:
        faults.append(
            ExpressionFault(parsed.items[0].offset, "sql-syntax", "no column is left", "EXCEPT names all that there are")
        )
    faults += _duplicates(items)
    if faults:
        raise ExpressionError(*dict.fromkeys(faults))
    return Selected(tuple(items), where, parsed.where.text if parsed.where else "")


def _duplicates(items: list[SelectedColumn]) -> list[ExpressionFault]:
    faults: list[ExpressionFault] = []
    by_name: dict[str, SelectedColumn] = {}
    for item in items:
        earlier_item = by_name.setdefault(item.name.lower(), item)
        if earlier_item is not item:
            hint = "give one of them another name: … as other_name; `* except (a)` leaves a column out"
            faults.append(ExpressionFault(item.offset, "duplicate-column", f"there are two columns `{item.name}`", hint))
    return faults


@dataclass(frozen=True)
class _Names:
    """The columns that names stand for."""

    columns: Mapping[str, Type]
    star: tuple[str, ...]
    tables: frozenset[str]

    def items(self, parsed_item: ParsedSelect) -> list[SelectedColumn]:
        if parsed_item.value is None:
            return [
                SelectedColumn(name, Checked(column_path(name), self.columns[name]), name, parsed_item.offset)
                for name in self.all_but(parsed_item.left_out)
            ]
        value = self.typed(parsed_item.value)
        name = parsed_item.name or self.own_name(parsed_item.value)
        if name is None:
            hint = f"write {code(f'{parsed_item.text} as name' if len(parsed_item.text) <= 60 else '… as name')}"
            raise ExpressionError(ExpressionFault(parsed_item.offset, "sql-no-name", "this column has no name", hint))
        return [SelectedColumn(name, value, parsed_item.text, parsed_item.offset)]

    def all_but(self, left_out: tuple[Token, ...]) -> list[str]:
        spellings = {name.lower(): name for name in self.star}
        unknown_tokens = [token for token in left_out if token.value.lower() not in spellings]
        if unknown_tokens:
            raise ExpressionError(*(self.no_column(token) for token in unknown_tokens))
        excluded_names = {token.value.lower() for token in left_out}
        return [name for lower, name in spellings.items() if lower not in excluded_names]

    def no_column(self, token: Token) -> ExpressionFault:
        hint = did_you_mean(token.value, self.star, f"columns here: {listed(self.star)}")
        return ExpressionFault(token.offset, "unknown-column", f"`*` has no column `{token.value}`", hint)

    def typed(self, node: Node) -> Checked:
        faults = [fault for part, _ in walk(node) if (fault := self.with_table(part))]
        if faults:
            raise ExpressionError(*faults)
        return typed(node, self.columns)

    def with_table(self, node: Node) -> ExpressionFault | None:
        """Returns the fault of a column with its table in front, such as `input.price`."""
        if not (isinstance(node, Member) and isinstance(node.of, Column)) or node.of.name.lower() not in self.tables:
            return None
        if any(name.lower() == node.of.name.lower() for name in self.columns):
            return None
        return ExpressionFault(node.of.offset, "sql-table", "columns are named without their table", f"write `{node.name}`")

    def own_name(self, node: Node) -> str | None:
        """Returns the declared spelling of a column's or field's name; None for other values."""
        if isinstance(node, Column):
            return next(name for name in self.columns if name.lower() == node.name.lower())
        if isinstance(node, Member):
            struct = typed(node.of, self.columns).type
            field = struct.field(node.name) if isinstance(struct, Struct) else None
            return field.name if field else node.name
        return None

    def condition(self, parsed_item: ParsedSelect) -> Checked:
        assert parsed_item.value is not None, "a condition is no star"
        value = self.typed(parsed_item.value)
        if value.type not in (BOOLEAN, VOID):
            message = f"`{parsed_item.text}` is {value.type}, not true or false"
            raise ExpressionError(
                ExpressionFault(
                    parsed_item.offset, "not-a-condition", message, suggest_for_condition(parsed_item.text, value.type)
                )
            )
        return value
