"""The rows after a step."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from framework.core.rows.bad_rows import bad_row, has_one
from framework.core.rows.joining import joined, taken_column
from framework.core.rows.measuring import with_bounds
from framework.core.rows.own_columns import NAMES, WHOLE, is_checked, is_good, or_tombstone
from framework.core.rows.pins import Pins
from framework.plan import OLD, Effect, Explode, Lookup, Masks, Measure, Pipeline, Remember, Step
from framework.sql.quote import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def apply(rows: DataFrame, step: Step, pipeline: Pipeline, bad: str, pins: Pins) -> DataFrame:
    """The rows after a step, with the step's faults of rows that are kept and good so far."""
    assign = {identifier(name): sql for name, sql in step.assign}
    assign |= {identifier(name): taken_column(name) for name in step.join.take} if step.join else {}
    input_columns = rows.columns
    rows = _with_effect(rows, step.effect, pipeline, pins)
    if step.attempts:
        rows = rows.selectExpr("*", *(f"{sql} AS {name}" for name, sql in step.attempts))
    # Sluice's own columns stay through every step; those of the message are the step's, and so are own ones that a step sets.
    set_by_step = {column.name for column in step.columns}
    own_names = (name for name in input_columns if name.startswith(("_sluice_", "_kafka_")) or name in NAMES)
    columns = {name: name for name in own_names if name not in set_by_step}
    columns |= {identifier(column.name): assign.get(identifier(column.name), identifier(column.name)) for column in step.columns}
    if step.faults:
        item = "_sluice_item" if "_sluice_item" in rows.columns else WHOLE
        step_bad_row = bad_row(step.faults, pipeline.faults.index(step.faults[0]), bad, item)
        columns["_sluice_bad"] = (
            f"CASE WHEN {is_checked(rows.columns, step.of_tombstones)} THEN {step_bad_row} ELSE _sluice_bad END"
        )
        if OLD in rows.columns:  # a row that was bad before it changed was never here
            columns["_sluice_keep"] = f"_sluice_keep AND NOT ({OLD} AND coalesce({has_one(step.faults)}, false))"
    if step.keep:
        columns["_sluice_keep"] = f"_sluice_keep AND {or_tombstone(rows.columns, f'coalesce({step.keep}, false)')}"
    return rows.selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()))


def _with_effect(rows: DataFrame, effect: Effect | None, pipeline: Pipeline, pins: Pins) -> DataFrame:
    """The rows with what the step's effect adds to them."""
    match effect:
        case Explode():
            return _exploded(rows, effect)
        case Lookup():
            return joined(rows, effect, pins)
        case Measure(bounds):
            return reduce(lambda measured_rows, group: with_bounds(measured_rows, group, pipeline, pins), bounds, rows)
        case Remember() | Masks() | None:  # earlier rows are asked after all steps, and masks are expressions
            return rows


def _exploded(rows: DataFrame, explode: Explode) -> DataFrame:
    """A row for each item. A message without items stays one row, which is not kept, so that it is counted."""
    items_sql = f"posexplode_outer(CASE WHEN {is_good(rows.columns)} THEN {explode.list} END) AS (_sluice_at, _sluice_each)"
    rows = rows.selectExpr("*", items_sql)
    own_columns = {
        "_sluice_keep": f"_sluice_keep AND {or_tombstone(rows.columns, '_sluice_bad IS NOT NULL OR _sluice_at IS NOT NULL')}",
        "_sluice_first": "_sluice_first AND coalesce(_sluice_at, 0) = 0",
        "_sluice_item": "concat_ws('.', _sluice_item, CAST(_sluice_at + 1 AS STRING))",
        identifier(explode.into): "_sluice_each",
    }
    kept_columns = {
        identifier(name): identifier(name)
        for name in rows.columns
        if name not in (*own_columns, explode.into, "_sluice_at", "_sluice_each")
    }
    return rows.selectExpr(*(f"{sql} AS {name}" for name, sql in {**kept_columns, **own_columns}.items()))
