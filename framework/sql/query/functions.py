"""Functions over many rows: over the rows of a group, or of a window.

*Limit* There is no function whose value is left to chance, by an order that nobody gave. Lists are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from framework.base.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Array, Type, holds_map, is_integral, is_numeric
from framework.sql import aggregates

_BY_TIME = "which row comes first is left to chance: write min_by(x, at) or max_by(x, at)"
INSTEAD = {
    **dict.fromkeys(("first", "last", "any_value"), _BY_TIME),
    **dict.fromkeys(("approx_percentile", "percentile_approx"), "percentile(x, 0.5) is exact"),
    "mode": "of equally frequent values one is left to chance: count them, and number them with row_number() over (order by …)",
}
"""What to write in place of functions that are refused."""


@dataclass(frozen=True)
class Function:
    """A function over many rows. `takes` says of each argument whether its type fits, and in words what fits; arguments behind the first
    `least_arguments` may be left out. `sql` is over the arguments `{x}`."""

    type: Callable[[Sequence[Type]], Type]
    takes: tuple[tuple[Callable[[Type], bool], str], ...]
    _: KW_ONLY
    least_arguments: int = -1
    sql: str = ""
    repeats_last: bool = False  # whether any number of arguments of the last kind may follow
    has_frame: bool = True  # whether a window over it can have a frame
    literals: tuple[int, ...] = ()  # the arguments that are literals
    range: tuple[float, float] | None = None  # the range of these literals

    @property
    def fewest(self) -> int:
        return len(self.takes) if self.least_arguments < 0 else self.least_arguments


_ANY = (lambda _: True, "any value")
_NUMBER = (is_numeric, "a number")
_WHOLE = (is_integral, "a whole number")
_CONDITION = (lambda type_: type_ == BOOLEAN, "a condition")
_TEXT = (lambda type_: type_ == STRING, "a text")
_ORDERED = (lambda type_: not holds_map(type_), "values that have an order")


def _always(type_: Type) -> Callable[[Sequence[Type]], Type]:
    return lambda _: type_


def _first(types: Sequence[Type]) -> Type:
    return types[0]


def _as_total(name: str) -> Function:
    """Returns a function that totals have too."""
    function = aggregates.FUNCTIONS[name]
    return Function(lambda types: function.type(types[0]), ((function.takes, function.wants or "any value"),))


_SORTED = Function(lambda types: Array(types[0]), (_ORDERED,), sql="array_sort({name}({x}))")
_OF_DOUBLE = Function(_always(DOUBLE), (_NUMBER,))
_OF_PAIR = Function(_always(DOUBLE), (_NUMBER, _NUMBER))
_ALL = Function(_always(BOOLEAN), (_CONDITION,))
_BY = Function(_first, (_ANY, _ORDERED))
_LIST = Function(
    _always(STRING),
    (_TEXT, _TEXT),
    least_arguments=1,
    literals=(1,),
    sql="IF(count({x0}) = 0, NULL, array_join(array_sort(collect_list({x0})), {x1}))",
)
AGGREGATES: Mapping[str, Function] = {
    **{name: _as_total(name) for name in ("sum", "avg", "min", "max", "count_if", "approx_count_distinct")},
    "mean": _as_total("avg"),
    "count": Function(_always(BIGINT), (_ANY,), least_arguments=0, repeats_last=True),
    **dict.fromkeys(("min_by", "max_by"), _BY),
    **dict.fromkeys(("stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "skewness", "kurtosis"), _OF_DOUBLE),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp"), _OF_PAIR),
    "median": _OF_DOUBLE,
    "percentile": Function(_always(DOUBLE), (_NUMBER, _NUMBER), literals=(1,), range=(0, 1)),
    **dict.fromkeys(("bool_and", "every", "bool_or", "any", "some"), _ALL),
    "collect_set": _SORTED,
    **dict.fromkeys(("collect_list", "array_agg"), _SORTED),
    **dict.fromkeys(("string_agg", "listagg"), _LIST),
}  # fmt: skip
_OFFSET = Function(_first, (_ANY, _WHOLE, _ANY), least_arguments=1, has_frame=False, literals=(1,))
_NUMBERED = Function(_always(INT), (), has_frame=False)
_SHARE = Function(_always(DOUBLE), (), has_frame=False)
_ONE = Function(_first, (_ANY,))
RANKED: Mapping[str, Function] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), _NUMBERED),
    **dict.fromkeys(("percent_rank", "cume_dist"), _SHARE),
    "ntile": Function(_always(INT), (_WHOLE,), has_frame=False, literals=(0,), range=(1, 2**31 - 1)),
    **dict.fromkeys(("lag", "lead"), _OFFSET),
    **dict.fromkeys(("first_value", "last_value"), _ONE),
    "nth_value": Function(_first, (_ANY, _WHOLE), literals=(1,), range=(1, 2**31 - 1)),
}
WINDOWS = ("window", "session_window")
"""Groups by time, in GROUP BY."""
