"""Attempts in Spark: nothing of an expression is computed outside of its attempt, and the error says the cause with the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from framework.base.type_text import parse
from framework.plan import ColumnSql
from framework.sql.attempt import attempt
from framework.sql.expressions import check

pytestmark = pytest.mark.spark

COLUMNS = {
    name: parse(text) for name, text in {"a": "int", "b": "int", "s": "string", "list": "array<int>", "n": "bigint"}.items()
}
ROWS = [(10, 0, "abc", [1, 2], 1), (10, 2, "7", [3], 2), (2147483647, None, None, None, 3)]

CAUSES = {
    "a / b": "division by zero in a / b (a = 10, b = 0)",
    "a % b + 1": "division by zero in a % b (a = 10, b = 0)",
    "int(s)": "'abc' is not an integer in cast(s AS int) (s = 'abc')",
    "left(s, n * 10000000000)": "10000000000 does not fit int in left(s, (n * 10000000000)) (n = 1, s = 'abc')",
    "date_add('2026-01-05', s)": "'abc' is not an integer in date_add('2026-01-05', s) (s = 'abc')",
    "list[5]": "an array of 2 has no item 5 in list[5] (list = [1, 2])",
    "transform(list, x -> x / b)": "division by zero in x / b (b = 0)",
    "to_date(s)": "'abc' is not a date in to_date(s) (s = 'abc')",
    "cast(a as decimal(2,1))": "10 does not fit decimal(2,1) in cast(a AS decimal(2,1)) (a = 10)",
    "if(a > 0, raise_error('a is positive'), a)": "a is positive in if((a > 0), raise_error('a is positive'), a) (a = 10)",
    "variant_get(parse_json(s), '$.a', 'int')": "abc cannot be parsed in variant_get(parse_json(s), '$.a', 'int') (s = 'abc')",
    "variant_get(parse_json('[' || a || ',\"x\"]'), '$[1]', 'int')": (
        "\"x\" is not an integer in variant_get(parse_json((('[' || a) || ',\"x\"]')), '$[1]', 'int') (a = 10)"
    ),
    "xpath_string(concat('<!DOCTYPE p [<!ENTITY x SYSTEM \"file:///etc/hostname\">]><p>&x;</p>', s), 'p')": (
        "XML with a DOCTYPE is not read "
        "in xpath_string(concat('<!DOCTYPE p [<!ENTITY x SYSTEM \"file:///etc/hostname\">]><p>&x;</p>', s), 'p') (s = 'abc')"
    ),
    "from_xml('<!DOCTYPE p><p><a>1</a></p>' || s, 'a int').a": (
        "XML with a DOCTYPE is not read in from_xml(('<!DOCTYPE p><p><a>1</a></p>' || s), 'struct<a:int>').a (s = 'abc')"
    ),
    "repeat(s, n * 100000000)": "the result of repeat is too large in repeat(s, (n * 100000000)) (n = 1, s = 'abc')",
    "cast(s || 'e99999' as decimal(5,2))": "a number of too many digits in cast((s || 'e99999') AS decimal(5,2)) (s = 'abc')",
}


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, "a int, b int, s string, list array<int>, n bigint").coalesce(1).localCheckpoint()


@contextmanager
def configured(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


MODES = {
    "compiled": {},
    "without whole stages": {"spark.sql.codegen.wholeStage": "false"},
    "interpreted": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "without adaptive plans": {"spark.sql.adaptive.enabled": "false"},
}


@pytest.mark.parametrize("mode", MODES)
def test_the_error_says_the_cause_and_the_values(mode: str, spark: Any, rows: Any) -> None:
    errors = {}
    with configured(spark, MODES[mode]):
        for text in CAUSES:
            checked = check(text, COLUMNS)
            assert checked.fails
            (row, *_) = rows.selectExpr(f"{attempt(checked.sql)} AS tried").collect()
            errors[text] = row.tried.error
            assert row.tried.value is None
    assert errors == CAUSES


@pytest.mark.parametrize("mode", MODES)
def test_what_two_attempts_have_in_common_ends_no_job(mode: str, spark: Any, rows: Any) -> None:
    first_attempt, second_attempt = (attempt(ColumnSql(sql, ("a", "b"))) for sql in ("`a` / `b`", "`a` / `b` + 1"))
    with configured(spark, MODES[mode]):
        results = rows.selectExpr(f"{first_attempt} AS one", f"{second_attempt} AS two", "explode_outer(list) AS item").collect()
        assert [(row.one.value, row.two.value) for row in results] == [(None, None), (None, None), (5.0, 6.0), (None, None)]
        attempted_rows = rows.selectExpr("*", f"{first_attempt} AS one", f"{second_attempt} AS two").where(
            "one.error IS NULL AND two.value > 5"
        )
        assert [row.a for row in attempted_rows.where("b > 0").collect()] == [10]
        assert (
            rows.groupBy("n").agg({"a": "sum"}).selectExpr(f"{attempt(ColumnSql('`n` / (`n` - 1)', ('n',)))}.error").count() == 3
        )


def test_a_row_that_fails_leaves_nothing_for_the_next(spark: Any, rows: Any) -> None:
    texts = ["map(s, 1, 'x', 2)", "map_from_arrays(array(s), array(1))", "transform_keys(map('x', 1), (`k -> `, v) -> s)"]
    for mode in MODES.values():
        with configured(spark, mode):
            for text in texts:
                results = rows.orderBy("n", ascending=False).selectExpr(f"{attempt(check(text, COLUMNS).sql)} AS tried").collect()
                assert [row.tried.error is None for row in results] == [False, True, True], text
                assert "a key of the map is null" in results[0].tried.error
                assert all(row.tried.value for row in results[1:])


def test_what_is_filtered_by_its_error_is_computed_once(spark: Any, rows: Any) -> None:
    attempts = rows.selectExpr(f"{attempt(check('a / b', COLUMNS).sql)} AS tried")
    good_rows = attempts.where("tried.error IS NULL").selectExpr("tried.value")
    assert good_rows._jdf.queryExecution().optimizedPlan().toString().count("_sluice_attempt(") == 1
    assert [row["value"] for row in good_rows.collect()] == [5.0, None]
