"""Words that are neither a column nor an allowed function, and the error for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token

ONE_ROW = (
    "rows are taken one by one: the step `aggregate` adds them up, and a pipeline `from: {tables: […]}` takes a whole select"
)
ITEMS = "the step `explode` makes one row from each item"
SUBQUERY = (
    "sql-subquery",
    "an expression has no subquery",
    "a row sees no other table: the step `join` looks one up by its keys",
)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORDS = words("""
    and or not null true false case when then else end in is like ilike rlike regexp between cast try_cast
    interval distinct exists select from with where as escape div over
""")
"""A column of such a name needs backquotes."""

CHANGING = words("""
    curdate current_date current_time current_timestamp localtimestamp monotonically_increasing_id now rand randn
    random randstr shuffle spark_partition_id uniform uuid input_file_block_length input_file_block_start
    input_file_name getdate getutcdate sysdate sysdatetime systimestamp utc_date utc_timestamp clock_timestamp
    statement_timestamp transaction_timestamp newid gen_random_uuid generate_uuid uuid_string
""")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The reason, worded to follow a function's name, why no expression calls these functions of Spark, and what to do instead."""

    names: frozenset[str]
    code: str = "sql-not-allowed"
    why: str
    hint: str


REFUSALS = (
    Refusal(
        names=words("""
            any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg avg
            bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count
            count_if count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric hll_sketch_agg
            hll_union_agg kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max max_by
            mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
            regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop
            stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum var_pop var_samp variance
        """),
        code="sql-aggregate",
        why="is an aggregate: an expression sees one row",
        hint=ONE_ROW,
    ),
    Refusal(
        names=words("""
            cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time
        """),
        code="sql-window",
        why="is a window function: an expression sees one row",
        hint=ONE_ROW,
    ),
    Refusal(
        names=words("""
            explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
            variant_explode_outer
        """),
        why="makes several rows from one row",
        hint=ITEMS,
    ),
    Refusal(
        names=CHANGING,
        code="sql-not-deterministic",
        why="gives another value each time it runs, and a batch that runs twice must give the same rows",
        hint="use _kafka_timestamp, _event_time or _kafka_offset",
    ),
    Refusal(
        names=words("""
            java_method reflect try_reflect current_catalog current_database current_schema current_timezone current_user session_user
            user version collations python_worker_logs range read_files sql_keywords
        """),
        why="is not allowed: an expression sees only the row's columns",
        hint="name the columns that it needs",
    ),
    Refusal(
        names=words("kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float"),
        code="sql-not-deterministic",
        why="draws by lot what it keeps, and a batch that runs twice must give the same rows",
        hint="keep each sketch, and merge them where the table is read",
    ),
    Refusal(
        names=words("aes_decrypt aes_encrypt try_aes_decrypt"),
        why="is not allowed: its key would stand in the spec, and in Spark's plans",
        hint='the step `mask` encrypts a column: `mask: {key: "${secret:pii}", columns: {email: encrypt}}`',
    ),
    Refusal(
        names=words("from_avro from_protobuf schema_of_avro to_avro to_protobuf"),
        why="is not allowed: messages are decoded once, before the first step",
        hint="give the topic's `format` as avro or protobuf",
    ),
    Refusal(
        names=words("make_interval try_make_interval"),
        why="makes intervals of months and seconds together, which have no order",
        hint="write interval 1 month, make_ym_interval(1, 2) or make_dt_interval(1, 2)",
    ),
    Refusal(
        names=words("make_time time_diff time_trunc to_time try_to_time"),
        why="is about times without a day, a type that no column has",
        hint="keep such a time as text, or as seconds of the day",
    ),
    Refusal(
        names=words("st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid"),
        why="is about shapes, a type that no column has",
        hint="keep a shape as text or binary",
    ),
    Refusal(
        names=words("collate collation"), why="is not allowed: text is compared by its characters", hint="write lower(s) = 'a'"
    ),
    Refusal(names=words("approx_top_k_estimate"), why="is not allowed: what it reads only an aggregate makes", hint=ONE_ROW),
    Refusal(names=words("assert_true"), why="has no value", hint="write if(n > 0, n, raise_error('n is not positive'))"),
)
LEFT_OUT: Mapping[str, Refusal] = {name: refusal for refusal in reversed(REFUSALS) for name in refusal.names}


def subquery(token: Token) -> ExpressionError:
    return refused(token.offset, *SUBQUERY)


def function(token: Token) -> ExpressionError | None:
    """Returns the error for a function that no expression can call, if it is one."""
    name = token.word
    if refusal := LEFT_OUT.get(name):
        hint = "of an array: array_contains(list, 'a')" if name in ("any", "some") else refusal.hint
        return refused(token.offset, refusal.code, f"{name} {refusal.why}", hint)
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
    """Returns the error for a word of SQL that cannot stand here, if it is one."""
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
