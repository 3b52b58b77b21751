"""The rows before a step as the step sees them, and a step's result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import lru_cache
from typing import Any

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import BOOLEAN, TIMESTAMP, VOID, Type, folded
from framework.language.node import NOWHERE, YamlNode
from framework.language.scalars import is_column_name
from framework.plan import EVENT_TIME, FROM_COLUMNS, KAFKA_COLUMNS, Column, ColumnSql, Computed, Fault, Remember, TableChanges
from framework.plan.totals import Groups
from framework.sql.expressions import Checked, ExpressionError, attempt, check
from framework.sql.operand_remedies import suggest_for_condition


@dataclass(frozen=True)
class Resolved(Computed):
    """A step whose options are resolved, with what the pipeline and the table have to know of it. A step that remembers rows gives
    its `memory`, which is its effect."""

    _: KW_ONLY
    more: bool = False  # there may be other columns, because a problem that was reported hides them
    groups: Groups | None = None  # of a step that adds rows up
    landing: Callable[[Any], Iterable[Problem]] | None = None  # takes a `Landing`, and returns what is wrong with it for the step
    memory: InitVar[Remember | None] = None

    def __post_init__(self, memory: Remember | None) -> None:
        if memory is not None:
            object.__setattr__(self, "effect", memory)


@dataclass
class Rows:
    """The columns at one point of a pipeline, and the list that collects problems."""

    columns: tuple[Column, ...]
    problems: list[Problem]
    kafka: tuple[Column, ...] = KAFKA_COLUMNS
    _: KW_ONLY
    event_time: bool = True  # whether rows have an event time; rows of a table have none
    document: YamlNode = NOWHERE  # the document that contains the texts of the expressions
    more: bool = False  # there may be other columns
    quiet: bool = False  # a step masks columns: no reason of a bad row has a value
    tables: Callable[[str, Where], TableChanges | None] | None = None  # finds a table of another pipeline, or reports a problem
    attempts: dict[str, str] = field(default_factory=dict)  # of one step: the name of each attempt, by its SQL

    @property
    def types(self) -> dict[str, Type]:
        """The types of all columns that an expression can name."""
        types = {column.name: column.type for column in (*self.columns, *self.kafka)}
        return types | {EVENT_TIME: TIMESTAMP} if self.event_time else types

    def without_own(self) -> Rows:
        """Returns the rows without the columns that Sluice adds for itself."""
        return replace(self, columns=tuple(column for column in self.columns if not column.name.startswith("_sluice_")))

    def expression(self, text: str, where: Where, as_written: bool = True) -> Checked:
        """Returns the checked expression, in a form that never throws. Unless the text is `as_written` by the user, all its
        problems have the place `where`."""
        return self.attempted(self.unguarded(text, where, as_written))

    def unguarded(self, text: str, where: Where, as_written: bool = True) -> Checked:
        """Returns the checked expression, in a form that throws for a row for which it cannot be computed."""
        try:
            return check(text, self.types, self.more)
        except ExpressionError as error:
            self.refuse(error, text if as_written else "\n", where)
            # The type VOID lets later steps be checked, and one mistake stays one problem.
            return Checked(ColumnSql("NULL", ()), VOID)

    def attempted(self, checked: Checked) -> Checked:
        """Returns the expression as one of the step's attempts: if it throws, its value is null and its error says why."""
        if not checked.fails:
            return checked
        name = self.attempts.setdefault(attempt(checked.sql, self.quiet), f"_sluice_attempt_{len(self.attempts)}")
        reads = checked.sql.reads
        return Checked(ColumnSql(f"{name}.value", reads), checked.type, error=ColumnSql(f"{name}.error", reads))

    def refuse(self, error: ExpressionError, text: str, where: Where) -> None:
        for fault in error.faults:
            if self.more and fault.code == "unknown-column":
                continue
            node = _texts(self.document).get(where) or YamlNode("scalar", where, text)
            self.problems.append(Problem(node.inside(text, fault.offset), fault.code, fault.message, fault.hint))

    def column(self, name: str, where: Where, kafka: bool = False) -> Column | None:
        """Returns the column of this name; if there is none, reports a problem and returns None."""
        columns = self.columns
        if kafka:
            event_time = [Column(EVENT_TIME, TIMESTAMP)] if self.event_time else []
            columns = (*columns, *self.kafka, *event_time)
        column = next((column for column in columns if column.name == name), None)
        if column is None and self.more:
            return Column(name, VOID, "", where=where)
        if column is None:
            names = [column.name for column in self.columns if not column.name.startswith("_sluice_")]
            hint = did_you_mean(name, names, the_names("column", names))
            if name in (kafka_column.name for kafka_column in self.kafka):
                short_name = name.removeprefix("_kafka_").removeprefix("_")
                hint = (
                    f"it is Kafka's, and stays as it is: `derive: {{{short_name}: {name}}}` makes a column of the row that has it"
                )
            self.problems.append(Problem(where, "unknown-column", f"there is no column `{name}`", hint))
        return column

    def table(self, name: str, where: Where) -> TableChanges | None:
        """Returns the table of another pipeline; if there is none, reports a problem and returns None."""
        return self.tables(name, where) if self.tables else None

    def condition(self, text: str, where: Where, as_written: bool = True) -> Checked:
        return self.attempted(self.unguarded_condition(text, where, as_written))

    def unguarded_condition(self, text: str, where: Where, as_written: bool = True) -> Checked:
        checked = self.unguarded(text, where, as_written)
        if checked.type not in (BOOLEAN, VOID):
            self.problems.append(
                Problem(
                    where,
                    "not-a-condition",
                    f"`{text}` is {checked.type}, not true or false",
                    suggest_for_condition(text, checked.type),
                )
            )
        return checked

    def faults(self, stage: str, text: str, checked: Checked) -> tuple[Fault, ...]:
        return () if checked.error is None else (self.fault(stage, text, checked.error),)

    def fault(self, stage: str, text: str, error: ColumnSql, only: ColumnSql | None = None) -> Fault:
        """Returns the fault of an attempt with this error; with `only`, the fault of rows for which that condition is true."""
        failed = f"{error} IS NOT NULL"
        condition = ColumnSql(f"({only}) AND {failed}", only.reads | error.reads) if only else ColumnSql(failed, error.reads)
        return Fault(stage, "step_failed", f"`{text}` cannot be computed for this row", when=condition, cause=error)

    def new_column(self, name: str, type_: Type, where: Where, doc: str = "", others: Iterable[str] | None = None) -> Column:
        """A new column of a step. Its name is checked against `others`, by default all columns so far."""
        existing_names = [column.name for column in self.columns] if others is None else others
        self.problems.extend(
            name_problems(name, where, [existing_name for existing_name in existing_names if existing_name != name])
        )
        return Column(name, type_, doc, where=where)

    def with_columns(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        """All columns after a step sets these: a column of the same name is replaced in place, others are added at the end."""
        return tuple(({column.name: column for column in self.columns} | {column.name: column for column in columns}).values())


# Spark can write a table with a column of such a name, but cannot read it.
_ICEBERG_COLUMNS = frozenset((
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_change_type",
    "_change_ordinal", "_commit_snapshot_id",
))  # fmt: skip


def stored_name_problems(columns: Iterable[Column], where: Where) -> Iterator[Problem]:
    """Problems with columns that have the name of one of Iceberg's metadata columns."""
    for column in columns:
        if folded(column.name) in _ICEBERG_COLUMNS:
            new_name = column.name.lstrip("_")
            remedy = f"in a select by `as {new_name}`, or in the topic if it is the message's key, `as: {new_name}`"
            hint = f"rename it by a step, `rename: {{{column.name}: {new_name}}}`, {remedy}"
            message = f"`{column.name}` is a metadata column of every Iceberg table"
            yield Problem(column.where or where, "reserved-name", message, hint)


_RESERVED = frozenset([EVENT_TIME, *(column.name for column in FROM_COLUMNS)])


@lru_cache(maxsize=1)  # one document may have many problems
def _texts(document: YamlNode) -> dict[Where, YamlNode]:
    return {node.where: node for node in document.scalars()}


def selected_name_problems(name: str, where: Where) -> list[Problem]:
    """Problems with the names that a select gives its columns: quotes allow any name in SQL."""
    if is_column_name(name):
        return []
    hint = "write a name without spaces, dots, commas, quotes and brackets"
    return [Problem(where, "bad-column-name", f"`{name}` is not a column's name", hint)]


def name_problems(name: str, where: Where, other_names: Iterable[str]) -> list[Problem]:
    """Problems with names that a table's column cannot have."""
    if folded(name).startswith(("_kafka_", "_sluice")) or folded(name) in _RESERVED:
        hint = f"choose another name, such as `{name.lstrip('_')}`"
        return [Problem(where, "reserved-name", f"`{name}` is a name that Sluice uses itself", hint)]
    return case_collisions(name, where, other_names)


def case_collisions(name: str, where: Where, other_names: Iterable[str]) -> list[Problem]:
    return [
        Problem(
            where,
            "case-collision",
            f"`{name}` and `{other_name}` differ only in case",
            "tables do not tell them apart: rename one",
        )
        for other_name in other_names
        if folded(other_name) == folded(name) and other_name != name
    ]
