"""How a pipeline's rows are written, and why: column by column, straight from the messages or through rows of Spark, or row by row
(DECISIONS.md, "What a row costs")."""

from __future__ import annotations

from collections.abc import Mapping

from framework.base.types import VARIANT, Array, Decimal, Map, Struct, Type
from framework.plan.pipeline import Pipeline

_LONGEST_DECIMAL = 18  # digits of a whole number of 8 bytes


def refusal(pipeline: Pipeline) -> str:
    """The reason for which the rows are written row by row, as far as the plan says; empty where they are not."""
    table = pipeline.table
    nested = next((column.name for column in table.columns if not _is_single(column.type)), None)
    reasons = {
        f"`write: {table.write.name}` does more than to add rows": not table.write.adds,
        f"`{nested}` is a list, a map, a struct or a decimal of more than {_LONGEST_DECIMAL} digits": nested is not None,
    }
    return _first(reasons)


def detour(pipeline: Pipeline) -> str:
    """The reason for which rows of Spark are made before the columns; empty where columns go into columns."""
    reasons = {
        "it reads tables": not pipeline.topics,
        "a step makes several rows of a message": pipeline.explodes,
        "the table is sorted": bool(pipeline.table.sort_by),
    }
    return _first(reasons)


def second_pass(pipeline: Pipeline) -> str:
    """The reason for which one pass over the rows is not enough; empty where each row says itself what becomes of it."""
    return "a step compares rows with earlier ones" if pipeline.compares else ""


def _first(reasons: Mapping[str, bool]) -> str:
    return next((reason for reason, applies in reasons.items() if applies), "")


def _is_single(type_: Type) -> bool:
    """Whether a value of the type is a number, a truth value, or bytes."""
    if isinstance(type_, Decimal):
        return type_.precision <= _LONGEST_DECIMAL
    return not isinstance(type_, (Array, Map, Struct)) and type_ != VARIANT
