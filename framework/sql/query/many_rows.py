"""Writes functions over many rows as SQL, with the type of their value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from framework.base.types import BIGINT, BOOLEAN, DATE, SMALLINT, TIME, TIMES, TINYINT, VOID, Type, holds_map, is_numeric
from framework.sql import coercion, intervals, literals
from framework.sql.expressions import Checked
from framework.sql.faults import refused
from framework.sql.operand_remedies import suggest_for_condition
from framework.sql.query.functions import AGGREGATES, RANKED, Function
from framework.sql.query.nodes import Aggregate, Edge, Over, Ranked, WindowFrame
from framework.sql.suggested import written
from framework.sql.tree import Literal, Node, Operation

_MOST = 2**31 - 1  # rows of a frame
_MOST_OF = {TINYINT: 127, SMALLINT: 32_767}
Typed = Callable[[Node], Checked]
_DISTINCT = ("count", "sum", "avg", "mean", "collect_list", "array_agg", "string_agg", "listagg")


def aggregate(node: Aggregate, typed: Typed) -> tuple[str, Type]:
    """Returns SQL of an aggregate, and its type."""
    function = AGGREGATES[node.name]
    values = list(_values(node, function, typed))
    if node.distinct and node.name not in _DISTINCT:
        hint = f"delete DISTINCT; these take it: {', '.join(_DISTINCT)}"
        raise refused(node.offset, "sql-aggregate", f"{node.name} takes no DISTINCT", hint)
    for index, value in enumerate(values):
        if node.distinct and holds_map(value.type):
            raise refused(
                node.arguments[index].offset, "sql-type", f"DISTINCT cannot compare {value.type}", "take a part of it: m['a']"
            )
    texts = [str(value.sql) for value in values]
    distinct = "DISTINCT " if node.distinct else ""
    if node.name in ("string_agg", "listagg"):
        texts = [*texts, "''"][:2]
        sql = function.sql.replace("{x0}", distinct + texts[0]).replace("{x1}", texts[1])
    elif function.sql:
        sql = f"array_sort({node.name}({distinct}{texts[0]}))"
    else:
        sql = f"{node.name}({distinct}{', '.join(texts) or '*'})"
    if node.where is not None:
        condition = typed(node.where)
        if condition.type not in (BOOLEAN, VOID):
            message = f"the filter is {condition.type}, not true or false"
            raise refused(
                node.where.offset, "not-a-condition", message, suggest_for_condition(written(condition), condition.type)
            )
        if function.sql:
            raise refused(node.offset, "sql-aggregate", f"{node.name} takes no FILTER", f"write {node.name}(if(…, x, null))")
        sql += f" FILTER (WHERE {condition.sql})"
    return sql, function.type([value.type for value in values] or [BIGINT])


def over(node: Over, typed: Typed) -> tuple[str, Type]:
    """Returns SQL of a function over a window, and its type."""
    if isinstance(node.of, Aggregate):
        if node.of.distinct:
            raise refused(
                node.of.offset, "sql-window", "Spark has no DISTINCT over a window", "count them in a select with GROUP BY"
            )
        if AGGREGATES[node.of.name].sql:
            hint = "collect them in a select with GROUP BY"
            raise refused(node.of.offset, "sql-window", f"{node.of.name} has no window in this version", hint)
        sql, type_ = aggregate(node.of, typed)
    else:
        sql, type_ = _ranked(node.of, node, typed)
    window_clauses = []
    if node.partition:
        window_clauses.append(f"PARTITION BY {', '.join(str(_comparable(value, typed).sql) for value in node.partition)}")
    if node.order:
        window_clauses.append(
            f"ORDER BY {', '.join(f'{_comparable(order.value, typed).sql} {order.words}'.strip() for order in node.order)}"
        )
    if node.frame:
        window_clauses.append(_frame(node.frame, node, typed))
    return f"{sql} OVER ({' '.join(window_clauses)})", type_


def _comparable(node: Node, typed: Typed) -> Checked:
    checked = typed(node)
    if holds_map(checked.type):
        raise refused(node.offset, "sql-type", f"values of {checked.type} have no order", "take a part of it, such as m['a']")
    return checked


def _ranked(node: Ranked, window: Over, typed: Typed) -> tuple[str, Type]:
    function = RANKED[node.name]
    values = list(_values(node, function, typed))
    if not window.order:
        message = f"without an order it is left to chance what {node.name} gives"
        raise refused(node.offset, "sql-window", message, f"write {node.name}(…) over (… order by at)")
    if window.frame and not function.has_frame:
        raise refused(window.frame.offset, "sql-window", f"{node.name} has no frame", "delete ROWS or RANGE")
    if node.ignores_nulls and not function.takes:
        raise refused(node.offset, "sql-window", f"{node.name} has no values that could be null", "delete IGNORE NULLS")
    texts = [str(value.sql) for value in values]
    if len(values) == 3 and values[2].type != values[0].type:
        if coercion.wider(values[0].type, values[2].type) != values[0].type:
            message = f"{node.name} gives {values[0].type}, and its default is {values[2].type}"
            raise refused(node.arguments[2].offset, "sql-type", message, f"write cast(… as {values[0].type})")
        texts[2] = f"CAST({texts[2]} AS {values[0].type.sql})"
    nulls = " IGNORE NULLS" if node.ignores_nulls else ""
    return f"{node.name}({', '.join(texts)}){nulls}", function.type([value.type for value in values])


def _values(node: Aggregate | Ranked, function: Function, typed: Typed) -> Iterator[Checked]:
    count = len(node.arguments)
    if count < function.fewest or (count > len(function.takes) and not function.repeats_last):
        expected = ", ".join(wants for _, wants in function.takes) or "nothing"
        raise refused(node.offset, "sql-type", f"{node.name} takes {expected}; here are {count}", f"write {node.name}(…) so")
    for index, argument in enumerate(node.arguments):
        fits, wants = function.takes[min(index, len(function.takes) - 1)]
        checked = typed(argument)
        if checked.type != VOID and not fits(checked.type):
            raise refused(
                argument.offset, "sql-type", f"{node.name} takes {wants}, not {checked.type}", "cast it, or take a part of it"
            )
        if index in function.literals and not _is_literal(argument):
            raise refused(
                argument.offset, "sql-type", f"{node.name} takes {wants} that is written out here", "write it as a literal"
            )
        if index in function.literals and function.range and not _is_within(argument, *function.range):
            low, high = function.range
            raise refused(
                argument.offset, "sql-type", f"{node.name} takes {wants} from {low:g} to {high:g} here", "write such a one"
            )
        yield checked


def _is_within(node: Node, low: float, high: float) -> bool:
    try:
        return isinstance(node, Literal) and low <= float(node.value.rstrip("lLsSyYdDfF")) <= high
    except ValueError:
        return False


def _is_literal(node: Node) -> bool:
    return isinstance(node, Literal) or (
        isinstance(node, Operation) and len(node.operands) == 1 and _is_literal(node.operands[0])
    )


def _frame(frame: WindowFrame, window: Over, typed: Typed) -> str:
    """Returns SQL of a frame: rows by their number, or by the distance of the one value that orders them."""
    if not window.order:
        raise refused(
            frame.offset, "sql-window", f"a frame of {frame.unit.upper()} needs an order", "write ORDER BY in front of it"
        )
    if frame.unit == "range" and len(window.order) > 1 and (frame.start.value or frame.end.value):
        raise refused(frame.offset, "sql-window", "RANGE goes by one value", "leave one column in ORDER BY, or write ROWS")
    for edge in (frame.start, frame.end):
        if edge.value is not None and not _is_distance(edge.value, frame.unit):
            expected = "a whole number" if frame.unit == "rows" else "a whole number or an interval"
            example = "9 preceding" if frame.unit == "rows" else "interval 24 hours preceding"
            message = f"{frame.unit.upper()} takes {expected} that is written out here"
            raise refused(edge.value.offset, "sql-window", message, f"write {frame.unit} between {example} and current row")
        if edge.value is not None and frame.unit == "range":
            _refuse_other(edge.value, typed(window.order[0].value).type)
    ends = frame.end.words == "unbounded preceding" or frame.start.words == "unbounded following"
    if ends or _place(frame.start) > _place(frame.end):
        hint = "write the earlier end first, such as between 9 preceding and current row"
        raise refused(frame.offset, "sql-window", "the frame ends before it begins", hint)
    return f"{frame.unit.upper()} BETWEEN {_edge(frame.start)} AND {_edge(frame.end)}"


def _place(edge: Edge) -> float:
    """Returns where an end is, in rows or seconds behind the current row."""
    if edge.words == "current row":
        return 0
    sign = -1 if edge.words.endswith("preceding") else 1
    if not isinstance(edge.value, Literal):
        return sign * math.inf
    return sign * (float(edge.value.value) if edge.value.kind == "number" else intervals.seconds(edge.value.value))


def _refuse_other(distance: Node, type_: Type) -> None:
    """Refuses the distance of a RANGE that does not fit the type of the value that orders the rows."""
    is_number = isinstance(distance, Literal) and distance.kind == "number"
    fits = (is_numeric(type_) or type_ == DATE) if is_number else type_ in TIMES
    if type_ != VOID and not fits:
        noun = "a number" if is_number else "an interval"
        hint = "numbers go with numbers, intervals with times: range between interval 1 hour preceding and current row"
        raise refused(distance.offset, "sql-window", f"{noun} cannot be the distance between values of {type_}", hint)
    assert isinstance(distance, Literal)
    if type_ == DATE and not is_number and literals.literal(distance).type == TIME:
        raise refused(
            distance.offset, "sql-window", "dates are whole days apart", "write days, such as interval 2 days preceding"
        )
    if is_number and type_ in _MOST_OF and int(distance.value) > _MOST_OF[type_]:
        message = f"{distance.value} cannot be the distance between values of {type_}"
        raise refused(distance.offset, "sql-window", message, f"write at most {_MOST_OF[type_]}, or cast the column")


def _is_distance(node: Node, unit: str) -> bool:
    if not isinstance(node, Literal):
        return False
    return (
        (node.value.isdigit() and int(node.value) <= _MOST)
        if node.kind == "number"
        else unit == "range" and node.kind in ("months", "time")
    )


def _edge(edge: Edge) -> str:
    value = f"{literals.literal(edge.value).sql} " if isinstance(edge.value, Literal) else ""
    return f"{value}{edge.words.upper()}"
