"""Words that mean something else than a column or an allowed function, and what to say to who uses them."""

from __future__ import annotations

from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token

UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
"""Of an interval."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORDS = _words("""
    and or not null true false case when then else end in is like ilike rlike regexp between cast try_cast
    interval distinct exists select from with where as escape div over
""")
"""A column of such a name needs backquotes."""

_AGGREGATES = _words("""
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc skewness some std stddev stddev_pop stddev_samp string_agg
    sum try_avg try_sum var_pop var_samp variance
""")
_WINDOWS = _words("""
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time
""")
_LAMBDAS = _words("""
    aggregate array_sort exists filter forall map_filter map_zip_with reduce transform transform_keys
    transform_values zip_with
""")
CHANGING = _words("""
    curdate current_date current_time current_timestamp localtimestamp monotonically_increasing_id now rand randn
    random randstr shuffle spark_partition_id uniform uuid input_file_block_length input_file_block_start
    input_file_name
""")
_OUTSIDE = _words("""
    java_method reflect try_reflect current_catalog current_database current_schema current_timezone current_user
    session_user user version assert_true raise_error from_json from_csv from_xml from_avro from_protobuf
    read_files
""")


def function(token: Token) -> ExpressionError | None:
    """Why a function of that name can have no place in any expression."""
    name = token.word
    at = token.offset
    if name in _AGGREGATES:
        return refused(
            at, "sql-aggregate", f"{name} is an aggregate: an expression sees one row", "use an aggregate step, or a sql step"
        )
    if name in _WINDOWS:
        return refused(
            at, "sql-window", f"{name} is a window function: an expression sees one row", "use an aggregate step, or a sql step"
        )
    if name in _LAMBDAS:
        why = "an expression has no subquery" if name == "exists" else f"{name} takes a lambda, which is not allowed"
        return refused(at, "sql-subquery" if name == "exists" else "sql-lambda", why, "use an explode step, or a sql step")
    if name in CHANGING:
        why = f"{name} gives another value each time it runs, and a batch that runs twice must give the same rows"
        return refused(at, "sql-not-deterministic", why, "use _kafka_timestamp, _event_time or _kafka_offset")
    if name in _OUTSIDE:
        return refused(
            at,
            "sql-not-allowed",
            f"{name} is not allowed: an expression sees only the row's columns",
            "name the columns that it needs",
        )
    return meaning(token)


_MARKS = {
    "*": ("sql-star", "`*` is not a value", "name the columns"),
    ";": ("sql-several-statements", "an expression is one value, not a statement", "delete the semicolon"),
    "->": ("sql-lambda", "a lambda is not allowed", "use an explode step, or a sql step"),
    "=>": ("sql-syntax", "arguments have no names here", "write them in their order"),
    "?": ("sql-parameter", "an expression has no parameters", "use ${var:NAME}"),
    ":": ("sql-parameter", "an expression has no parameters", "use ${var:NAME}"),
    "<<": ("sql-not-allowed", "shifts are not allowed", "multiply by a power of two"),
    ">>": ("sql-not-allowed", "shifts are not allowed", "divide by a power of two with div"),
    "select": ("sql-subquery", "an expression has no subquery", "use a join step, or a sql step"),
    "with": ("sql-subquery", "an expression has no subquery", "use a join step, or a sql step"),
    "exists": ("sql-subquery", "an expression has no subquery", "use a join step, or a sql step"),
    "distinct": ("sql-aggregate", "DISTINCT belongs to aggregates", "use an aggregate step, or a sql step"),
    "over": ("sql-window", "OVER is not allowed: an expression sees one row", "use an aggregate step, or a sql step"),
    "as": ("sql-alias", "an expression has no alias", "the name of a new column is the key in `derive`"),
}


def meaning(token: Token) -> ExpressionError | None:
    """What a word that cannot stand here stands for in SQL."""
    if token.word in _MARKS:
        return refused(token.offset, *_MARKS[token.word])
    if token.kind == "name" and token.word in WORDS:
        return refused(
            token.offset,
            "sql-syntax",
            f"{token.text} is a word of SQL and cannot stand here",
            "put a column of that name in backquotes",
        )
    return None
