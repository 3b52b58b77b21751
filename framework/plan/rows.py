"""What a step sees of the rows before it, and what it says of the rows after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from framework.errors import Problem, Where
from framework.plan.model import EVENT_TIME, KAFKA_COLUMNS, Column, Fault
from framework.sql.expressions import Checked, ExpressionError, check
from framework.types import BOOLEAN, TIMESTAMP, VOID, Type

RESERVED = (*(column.name for column in KAFKA_COLUMNS), EVENT_TIME)


@dataclass(frozen=True)
class Resolved:
    """A step's own part of a plan: columns set, condition kept, types of new columns, in order."""

    assign: tuple[tuple[str, str], ...] = ()
    types: tuple[tuple[str, Type], ...] = ()
    keep: str | None = None
    faults: tuple[Fault, ...] = ()
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """The columns at one point of a pipeline, and where problems go."""

    columns: Mapping[str, Type]
    problems: list[Problem]

    def expression(self, text: str, where: Where) -> Checked:
        seen = {**self.columns, **{column.name: column.type for column in KAFKA_COLUMNS}, EVENT_TIME: TIMESTAMP}
        try:
            return check(text, seen)
        except ExpressionError as error:
            self.problems.extend(
                Problem(_inside(where, text, fault.offset), fault.code, fault.message, fault.hint) for fault in error.faults
            )
            # Typed as nothing, so that the later steps are still checked and one mistake is one problem.
            return Checked("NULL", VOID, None, frozenset())

    def condition(self, text: str, where: Where) -> Checked:
        checked = self.expression(text, where)
        if checked.type not in (BOOLEAN, VOID):
            self.problems.append(
                Problem(where, "not-a-condition", f"`{text}` is {checked.type}, not true or false", "compare it: `… > 0`")
            )
        return checked

    def faults(self, stage: str, text: str, checked: Checked) -> tuple[Fault, ...]:
        return () if checked.error is None else (self.fault(stage, text, checked.error),)

    def fault(self, stage: str, text: str, when: str) -> Fault:
        return Fault(stage, "step_failed", f"`{text}` cannot be computed for this row", when)

    def new_column(self, name: str, where: Where) -> str:
        self.problems.extend(name_problems(name, where, [other for other in self.columns if other != name]))
        return name


def name_problems(name: str, where: Where, others: Iterable[str]) -> list[Problem]:
    """Names that a table cannot have."""
    if name.lower().startswith("_kafka_") or name.lower() in RESERVED or name.lower().startswith("_sluice"):
        hint = f"choose another name, such as `{name.lstrip('_')}`"
        return [Problem(where, "reserved-name", f"`{name}` is a name that Sluice uses itself", hint)]
    return [
        Problem(
            where, "case-collision", f"`{name}` and `{other}` differ only in case", "tables do not tell them apart: rename one"
        )
        for other in others
        if other.lower() == name.lower() and other != name
    ]


def add(columns: tuple[Column, ...], types: Iterable[tuple[str, Type]]) -> tuple[Column, ...]:
    """The columns with these set: replaced in place where the name is known, else at the end."""
    found = {column.name: column for column in columns}
    for name, type_ in types:
        found[name] = Column(name, type_)
    return tuple(found.values())


def quoted(text: str) -> str:
    """A Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def named(name: str) -> str:
    """A Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def _inside(where: Where, text: str, offset: int) -> Where:
    """The place in the file, if the text stands on one line as it is; block texts are pointed at where they begin."""
    return where if "\n" in text else Where(where.file, where.line, where.column + offset)
