"""The table of functions, compared with Spark's analyser."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from framework.base.type_text import parse
from framework.base.types import INT, NAMES, Type
from framework.sql import functions
from framework.sql.expressions import ExpressionError, check
from framework.sql.pieces import Piece
from framework.sql.reserved import LEFT_OUT
from framework.sql.signatures import OF_SPARK, Match, lines, read, table
from tests.support import signature_table
from tests.support.selection import EXAMPLES

COLUMNS = {f"c_{name}": parse(text) for name, text in signature_table.COLUMNS.items() if not name.startswith("interval")}


def piece(type: str) -> Piece:
    return Piece("x", parse(type), offset=0)


@pytest.mark.parametrize(
    ("line", "arguments", "result"),
    [
        ("f(text, number?) string", ["int"], "string"),
        ("f(text, number?) string", ["int", "string"], "string"),
        ("f(text, number?) string", ["int", "date"], None),
        ("f(text, text...) int", ["int", "date", "string"], "int"),
        ("f(array<T>, T) array<T>", ["array<int>", "bigint"], "array<bigint>"),
        ("f(array<T>, T) T", ["array<string>", "bigint"], None),
        ("f(map<K,V>, K) V", ["map<string,int>", "string"], "int"),
        ("f(bytes|date) $1", ["date"], "date"),
        ("f(map<K,V>) array<entry<K,V>>", ["map<string,int>"], "array<struct<key:string,value:int>>"),
        ("f(int!) int", ["int"], None),
    ],
)
def test_a_signature_says_what_it_takes_and_gives(line: str, arguments: list[str], result: str | None) -> None:
    type_ = Match(read(line), lambda index, types: None).result([piece(type) for type in arguments])
    assert (str(type_) if type_ else None) == result


def test_a_lambda_is_typed_by_the_arguments_before_it() -> None:
    argument_types: list[list[Type]] = []

    def body(index: int, types: Any) -> Piece:
        argument_types.append(list(types))
        return piece("string")

    signature = read("f(map<K,V>, (K,V)->X) map<K,X>")
    assert str(Match(signature, body).result([piece("map<string,int>"), None])) == "map<string,string>"
    assert argument_types == [[parse("string"), INT]]


def committed() -> list[str]:
    return lines(OF_SPARK)


def test_no_function_that_is_left_out_is_in_a_table() -> None:
    assert LEFT_OUT.keys() & table().keys() == set()
    assert len(table()) > 230


OPERATORS = {
    "infix": ("!=", "<>", "||", "&", "<<", ">>", ">>>", "^", "|", "%", "*", "+", "-", "/", "div", "<", "<=", "<=>", "=", "==", ">", ">="),
    "other": {
        "!": "! b", "~": "~ i", "and": "b and b", "or": "b or b", "not": "not b", "in": "i in (1)", "like": "s like 'a'",
        "ilike": "s ilike 'a'", "rlike": "s rlike 'a'", "regexp": "s regexp 'a'", "between": "i between 1 and 2",
        "case": "case when b then 1 end", "when": "case i when 1 then 1 end", "cast": "cast(s as int)", "extract": "extract(year from t)",
        "struct": "struct(s)",
    },
}  # fmt: skip


@pytest.mark.spark
def test_every_function_of_spark_is_taken_or_has_a_reason(spark: Any) -> None:
    of_spark = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    operators = {**{mark: f"i {mark} i" for mark in OPERATORS["infix"]}, **OPERATORS["other"]}  # type: ignore[dict-item]
    for text in operators.values():
        check(text, {"i": INT, "b": parse("boolean"), "s": parse("string"), "t": parse("timestamp")})
    casts = {name for name in NAMES if name in of_spark} | {"decimal"}
    allowed_names = of_spark & (functions.names() | operators.keys() | casts)
    assert sorted(of_spark - allowed_names - LEFT_OUT.keys()) == ["time"]  # a type that no column has
    assert sorted(allowed_names & LEFT_OUT.keys()) == []
    assert len(allowed_names) >= 350
    for name in of_spark - allowed_names - {"time"}:
        with pytest.raises(ExpressionError) as caught:
            check(f"{name}(s)", {"s": parse("string")})
        assert "not an allowed function" not in str(caught.value), name
        assert caught.value.hint, name


@pytest.mark.spark
def test_what_is_taken_is_what_sparks_analyser_takes(spark: Any) -> None:
    """For random functions and types, `check` accepts what Spark accepts, with the same type."""
    draw = random.Random(5)
    ask = signature_table.asking(spark)
    arguments = [*COLUMNS, "1", "'1'"]
    names = sorted({read(line).name for line in committed()} - CHECKED)
    calls = [f"{draw.choice(names)}({', '.join(draw.choices(arguments, k=draw.choice((1, 1, 2, 2, 3))))})" for _ in range(1500)]
    wrong = []
    for call, answer in zip(calls, ask(calls), strict=True):
        try:
            ours = str(check(call, COLUMNS).type)
        except ExpressionError as error:
            ours = "!" if error.code == "sql-type" else error.code
        spark_says = "!" if answer.startswith("!") or answer in ("void", *signature_table._RESULTS) else answer
        if ours != spark_says:
            wrong.append((call, ours, answer))
    assert wrong == []


# Functions whose arguments also depend on the value of a literal.
CHECKED = {
    "date_format", "date_trunc", "elt", "format_number", "format_string", "from_unixtime", "lpad", "next_day", "parse_url", "printf",
    "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr", "repeat",
    "replace", "rpad", "sha2", "space", "split", "to_binary", "to_char", "to_date", "to_timestamp", "to_timestamp_ltz",
    "to_timestamp_ntz", "to_unix_timestamp", "to_varchar", "trunc", "try_parse_url", "try_to_binary", "try_to_date",
    "try_to_timestamp", "unix_timestamp", "concat_ws", "hour", "minute", "second",
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.long
def test_the_table_is_what_sparks_analyser_says(spark: Any) -> None:
    """Compares a random third of the functions, and all of them with EXAMPLES=9."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for line in committed():
        by_name[read(line).name].append(line)
    names = sorted(signature_table.names(spark))
    assert by_name.keys() <= set(names)
    ask = signature_table.asking(spark)
    sample = random.sample(names, len(names) * min(EXAMPLES, 9) // 9)
    assert {name: list(signature_table.signatures(name, ask)) for name in sample} == {name: by_name[name] for name in sample}
