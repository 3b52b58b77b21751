"""Adds columns of another table, by keys that identify its rows.

Guarantee: all rows of a batch are joined with the table as it was when the batch began; the batch records that snapshot. A row gets at most
one match. What changes in the other table later changes no row that is there. With `within`, a row without a match waits among the bad
rows, with the code `waits`, and is tried again when the other table has changed: either side may come first.
Cost: the other table's columns are read with each batch; up to a million rows are sent to each task, so that the batch is not sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from framework.base.errors import Problem
from framework.base.spelling import the_names
from framework.base.types import VOID, Type, is_integral
from framework.documents.pipeline.landing import Landing
from framework.documents.rows import Resolved, Rows
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import ColumnName, Duration, TableName
from framework.plan import WAITS, Column, ColumnSql, Fault, Lookup, TableChanges

EXAMPLE = """\
columns: {order_id: string, customer_id: bigint, amount: double}
steps:
  - join: {table: shop.customers, on: [customer_id], take: [country], missing: keep}
tables:
  shop.customers:
    - {customer_id: 1, country: DE}
given:
  - {order_id: A1, customer_id: 1, amount: 20.0}
  - {order_id: A2, customer_id: 2, amount: 5.0}
expect:
  - {order_id: A1, customer_id: 1, amount: 20.0, country: DE}
  - {order_id: A2, customer_id: 2, amount: 5.0, country: null}
---
topic: customers
value: json
key: {format: long, as: customer_id}
columns: {country: string}
---
pipeline: customers
from: {topic: customers}
into: {table: shop.customers, write: upsert, keys: [customer_id]}
"""

ADDS = None
_MATCH, _WAITS = "_sluice_there", "_sluice_waits"


@dataclass(frozen=True)
class Written(OptionGroup):
    """Another table of the specs, whose keys are columns here."""

    table: TableName = option(
        "The table of another pipeline, with `write: upsert`, `history` or `accumulate`.", example="shop.customers"
    )
    on: tuple[ColumnName, ...] = option(
        "The columns that are equal in both. They must be the keys of the table, so that a row has one match.",
        example="[customer_id]", at_least=1, aka=["by", "keys", "key", "using"],
    )  # fmt: skip
    take: tuple[ColumnName, ...] = option(
        "The table's columns that a row gets.", example="[country]", at_least=1, aka=["columns", "select", "add"]
    )
    missing: Literal["keep", "drop", "quarantine"] = option(
        "What happens to a row without a match: `keep` gives it nulls, `drop` filters it, `quarantine` makes it a bad row.",
        default="keep", example="keep", aka=["else", "otherwise", "how"],
    )  # fmt: skip
    within: Duration | None = option(
        "How long a row waits for its match, from when it came to Kafka; then `missing` says what happens. Default: it does not wait.",
        default=None, at_least="1s", example="1h", aka=["wait", "wait_for", "for"],
    )  # fmt: skip


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    written: Written = step.value
    source = rows.table(written.table, written.place("table")) if "table" not in written.gaps else None
    if source is None or written.gaps & {"on", "take"}:
        return Resolved(rows.columns, more=True)
    source_columns = {column.name: column for column in (*source.columns, *source.kafka)}
    rows.problems.extend(_problems(written, rows, source, source_columns))
    new_columns = []
    for index, name in enumerate(written.take):
        if name in source_columns:
            new_columns.append(
                rows.new_column(name, source_columns[name].type, written.place("take", index), source_columns[name].doc)
            )
    join = Lookup(source, written.on, tuple(written.take), within=written.within)
    keys = ", ".join(written.on)
    faults: tuple[Fault, ...] = ()
    if written.within is not None:
        message = f"no row of {source.identifier} has its {keys} yet: it waits"
        faults = (Fault("join", WAITS, message, when=ColumnSql(_WAITS, written.on)),)
    if written.missing == "quarantine":
        message = f"no row of {source.identifier} has its {keys}"
        faults += (Fault("join", "no_match", message, when=ColumnSql(f"{_MATCH} IS NULL AND NOT {_WAITS}", written.on)),)
    says = f"{', '.join(written.take)} of {source.identifier} by {', '.join(written.on)}, as it is when a batch begins"
    otherwise = {
        "keep": "null without a match",
        "drop": "rows without a match are filtered",
        "quarantine": "a bad row without a match",
    }
    text = written.node.get("within")
    waiting_text = () if text is None else (f"a row without a match waits {text.text}; then:",)
    condition = ColumnSql(f"({_MATCH} OR {_WAITS})", written.on) if written.missing == "drop" else None
    return Resolved(
        rows.with_columns(new_columns), effect=join, faults=faults, keep=condition,
        says=(says, *waiting_text, otherwise[written.missing]),
        landing=(lambda landing: _landing(written, landing)) if written.within is not None else None,
    )  # fmt: skip


def _landing(written: Written, landing: Landing) -> Iterator[Problem]:
    """The problems of rows that wait for a match: they wait among the bad rows, with their messages."""
    if landing.from_table:
        message = "`within` lets messages wait, and this pipeline reads a table"
        hint = "join where the topic is read; or compute the table by a whole select, `from: {tables: […]}`"
        yield Problem(written.key_place("within"), "within-needs-topic", message, hint)
    if landing.bad_rows != "quarantine":
        message = f"rows that wait do so among the bad rows, and `bad_rows: {landing.bad_rows}` keeps none"
        yield Problem(written.key_place("within"), "within-needs-bad-rows", message, "remove `bad_rows`, or `within`")


def _problems(written: Written, rows: Rows, source: TableChanges, source_columns: dict[str, Column]) -> Iterator[Problem]:
    for index, name in enumerate(written.take):
        if name not in source_columns:
            hint = the_names("column", source_columns)
            yield Problem(written.place("take", index), "unknown-column", f"{source.identifier} has no column `{name}`", hint)
        elif name in written.take[:index]:
            yield Problem(written.place("take", index), "duplicate-column", f"`{name}` is here twice", "name each column once")
        elif name in [column.name for column in rows.columns]:
            message = f"there is a column `{name}` already, and the one of {source.identifier} would replace it"
            yield Problem(
                written.place("take", index),
                "duplicate-column",
                message,
                f"rename the first: `rename: {{{name}: {name}_before}}`",
            )
    if not source.keys or not set(source.keys) <= set(written.on):
        keys = f"its keys are {', '.join(source.keys)}" if source.keys else "it has none"
        message = f"several rows of {source.identifier} could match, since `on` is not its keys: {keys}"
        hint = f"join on {', '.join(source.keys)}" if source.keys else "join a table with `write: upsert` and `keys`"
        yield Problem(written.place("on"), "join-needs-keys", message, hint)
    types = rows.types
    for index, name in enumerate(written.on):
        column = rows.column(name, written.place("on", index), kafka=True)
        if name not in source_columns:
            hint = f"{the_names('column', source_columns)}; a column of another name here is renamed by `rename` before"
            yield Problem(written.place("on", index), "unknown-column", f"{source.identifier} has no column `{name}`", hint)
        elif column is not None and not _alike(types.get(name, VOID), source_columns[name].type):
            message = f"`{name}` is {types[name]} here and {source_columns[name].type} in {source.identifier}"
            yield Problem(
                written.place("on", index), "join-types", message, f"`cast: {{{name}: {source_columns[name].type}}}` before"
            )


def _alike(type_: Type, other_type: Type) -> bool:
    return VOID in (type_, other_type) or type_ == other_type or (is_integral(type_) and is_integral(other_type))
