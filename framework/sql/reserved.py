"""Words that are neither a column nor an allowed function, and the error for each."""

from __future__ import annotations

from framework.sql import dialects
from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token

ONE_ROW = "rows are taken one by one; the step `aggregate` is not in this version"
ITEMS = "the step `explode` makes one row from each item"
SUBQUERY = ("sql-subquery", "an expression has no subquery", "a row sees no other table: the step `join` is not in this version")


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORDS = words("""
    and or not null true false case when then else end in is like ilike rlike regexp between cast try_cast
    interval distinct exists select from with where as escape div over
""")
"""A column of such a name needs backquotes."""

_AGGREGATES = words("""
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc skewness some std stddev stddev_pop stddev_samp string_agg
    sum try_avg try_sum var_pop var_samp variance
""")
_WINDOWS = words("""
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time
""")
_SEVERAL = words("""
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
""")
CHANGING = words("""
    curdate current_date current_time current_timestamp localtimestamp monotonically_increasing_id now rand randn
    random randstr shuffle spark_partition_id uniform uuid input_file_block_length input_file_block_start
    input_file_name getdate getutcdate sysdate sysdatetime systimestamp utc_date utc_timestamp clock_timestamp
    statement_timestamp transaction_timestamp newid gen_random_uuid generate_uuid uuid_string
""")
_OUTSIDE = words("""
    java_method reflect try_reflect current_catalog current_database current_schema current_timezone current_user
    session_user user version assert_true raise_error from_xml from_avro from_protobuf
    read_files xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
""")
_FORMATS = words("from_xml from_avro from_protobuf")


def subquery(token: Token) -> ExpressionError:
    return refused(token.offset, *SUBQUERY)


def function(token: Token) -> ExpressionError | None:
    """The error for a function that no expression can call."""
    name = token.word
    at = token.offset
    if name in _AGGREGATES:
        hint = "of an array: array_contains(list, 'a')" if name in ("any", "some") else ONE_ROW
        return refused(at, "sql-aggregate", f"{name} is an aggregate: an expression sees one row", hint)
    if name in _WINDOWS:
        return refused(at, "sql-window", f"{name} is a window function: an expression sees one row", ONE_ROW)
    if name in _SEVERAL:
        return refused(at, "sql-not-allowed", f"{name} makes several rows from one row", ITEMS)
    if name in CHANGING:
        why = f"{name} gives another value each time it runs, and a batch that runs twice must give the same rows"
        return refused(at, "sql-not-deterministic", why, "use _kafka_timestamp, _event_time or _kafka_offset")
    if name in _OUTSIDE:
        return refused(
            at,
            "sql-not-allowed",
            f"{name} is not allowed: an expression sees only the row's columns",
            dialects.FIELDS if name in _FORMATS else "name the columns that it needs",
        )
    return None if name == "exists" else misplaced_word(token)  # of a list


_MARKS = {
    "*": ("sql-star", "`*` is not a value", "name the columns"),
    ";": ("sql-several-statements", "an expression is one value, not a statement", "delete the semicolon"),
    "->": ("sql-lambda", "a lambda can only be an argument of a function", "write for example transform(list, x -> x + 1)"),
    "=>": ("sql-syntax", "arguments have no names here", "write them in their order"),
    "?": ("sql-parameter", "an expression has no parameters", "use ${var:NAME}"),
    ":": ("sql-parameter", "an expression has no parameters", "use ${var:NAME}"),
    "select": SUBQUERY,
    "with": SUBQUERY,
    "exists": SUBQUERY,
    "distinct": ("sql-aggregate", "DISTINCT belongs to aggregates", ONE_ROW),
    "over": ("sql-window", "OVER is not allowed: an expression sees one row", ONE_ROW),
    "as": ("sql-alias", "a part of an expression has no name", "name the whole: as the key in `derive`, behind it in `sql`"),
}


def misplaced_word(token: Token) -> ExpressionError | None:
    """The error for a word of SQL that cannot stand here."""
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
