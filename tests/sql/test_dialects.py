"""Words of other dialects: each gets a hint of the expression to write here, and the hint is right."""

from __future__ import annotations

import re

import pytest

from framework.base.spelling import closest
from framework.sql import dialects, functions
from framework.sql.expressions import ExpressionError, check
from tests.support.sql_columns import COLUMNS


def hint(text: str) -> str:
    with pytest.raises(ExpressionError) as error:
        check(text, COLUMNS)
    return error.value.hint


def test_the_suggested_expressions_are_allowed() -> None:
    hints = {*dialects.WRITE.values(), *dialects.INFIX.values(), *dialects.PAIRS.values(), *dialects.MARKS.values()}
    suggestions = {
        code for hint_text in hints for code in re.findall(r"`([^`]+)`", hint_text) if code not in ("columns", "explode")
    }
    for code in suggestions:
        check(code, COLUMNS)
    assert len(suggestions) > 50


def test_the_tables_name_no_function_of_this_language() -> None:
    assert sorted(functions.names() & dialects.WRITE.keys()) == []


def test_every_word_of_the_tables_gets_its_hint() -> None:
    for word, expected_hint in dialects.WRITE.items():
        assert hint(f"{word}(s)") == expected_hint, word


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a && b", "`a and b`"),
        ("s !~ 'a'", "`not s rlike"),
        ("s ->> 'a'", "struct<building:string>"),
        ("s:field", "struct<building:string>"),
        ("i ** 2", "`pow(n, 2)`"),
        ("i mod 2", "`i % 2`"),
        ("s isnull", "`s is null`"),
        ("s not similar to 'a'", "`s rlike"),
        ("t at time zone 'UTC'", "UTC"),
        ("if b then 1 else 2", "`case when b"),
        ("list @> array('a')", "`array_contains("),
        ("[s]", "backquotes"),
        ("N'text'", "`'text'`"),
        ("date_trunc(t, month)", "date_trunc('month', at)"),
        ("coalesce(s, 0)", "write `'0'` for a text"),
        ("coalesce(s, i)", "`cast(i as string)` for a text"),
        ("s = 1", "write `s = '1'` for the text, or `cast(s as double) = 1` for the number"),
        ("cast(s as signed)", "bigint"),
    ],
)
def test_words_of_other_dialects_get_a_hint_with_the_sql_to_write(text: str, says: str) -> None:
    assert says in hint(text)


def test_units_without_quotes_are_no_second_problem() -> None:
    with pytest.raises(ExpressionError) as error:
        check("timestamp_add(day, 1, t) > convert(int, s)", COLUMNS)
    assert [fault.code for fault in error.value.faults] == ["sql-not-allowed"] * 2


NAMES = ("orders", "lower", "locate", "second", "ln", "bootstrap", "partition_by", "order_id", "id")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        *(("ordres", "orders"), ("Lowr", "lower"), ("orderId", "order_id"), ("bootstrap_servers", "bootstrap")),
        *(("partiton_by", "partition_by"), ("order-id", "order_id")),
        *(("lcase", None), ("decode", None), ("conv", None), ("xy", None), ("", None), ("x" * 101, None)),
    ],
)
def test_a_name_is_suggested_only_if_few_letters_differ(name: str, suggestion: str | None) -> None:
    assert closest(name, NAMES) == suggestion
