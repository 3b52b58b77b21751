"""Rows that are computed once and held as columns (`Held.java`): the same as Spark's own, whatever their types."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from framework.core.spark.reading_errors import held_frame
from framework.core.staging.hashes import Hashes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

OF_ALL_TYPES = {
    "truth": "id % 2 = 0", "small": "CAST(id % 100 AS tinyint)", "short": "CAST(id * 7 AS smallint)", "whole": "CAST(id AS int)",
    "real": "CAST(id / 3 AS float)", "double": "IF(id % 5 = 0, double('NaN'), id / 7)", "day": "date_from_unix_date(CAST(id AS int))",
    "at": "timestamp_micros(id * 1000003)", "local": "CAST(timestamp_micros(id) AS timestamp_ntz)",
    "text": "repeat('ä', CAST(id % 50 AS int))", "bytes": "CAST(CAST(id AS string) AS binary)",
    "price": "CAST(id AS decimal(9,2))", "large": "CAST(id AS decimal(38,10)) / 3",
    "list": "sequence(0, id % 4)", "texts": "array('a', NULL, CAST(id AS string))", "map": "map('a', id, 'b', NULL)",
    "struct": "named_struct('a', id, 'inner', named_struct('b', CAST(id AS string), 'c', array(id)))",
    "variant": "parse_json('{\"a\": [' || id || ', null], \"b\": \"x\"}')",
}  # fmt: skip


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    columns = (f"IF(id % 11 = 3, NULL, {value}) AS `{name}`" for name, value in OF_ALL_TYPES.items())
    return spark.range(0, 1500, 1, 3).selectExpr("id", *columns)


def texts(frame: DataFrame) -> list[str]:
    """Returns each row as text, in which all values can be compared."""
    columns = ("to_json(`variant`)" if name == "variant" else f"`{name}`" for name in frame.columns)
    return sorted(str(row) for row in frame.selectExpr(*columns).collect())


def blocks(spark: SparkSession) -> list[Any]:
    """Returns what Spark holds."""
    return list(spark._jsc.getPersistentRDDs().values())


def test_rows_of_all_types_are_held(spark: SparkSession, rows: DataFrame) -> None:
    with held_frame(rows) as (held_rows, _):
        assert held_rows.schema.simpleString() == rows.schema.simpleString()
        assert texts(held_rows) == texts(rows)
        (held,) = blocks(spark)
        assert len(held.collect()) == 9  # Java writes and reads each block, as where memory is short
        held.unpersist(True)
        assert texts(held_rows) == texts(rows)  # which are computed again, as where a machine is lost
    assert not blocks(spark)


def test_what_is_computed_of_held_rows_replaces_them(spark: SparkSession, rows: DataFrame) -> None:
    with held_frame(rows) as (held_rows, _):
        (before,) = blocks(spark)
        more_rows = held_rows.selectExpr("*", "xxhash64(text, id) AS hash", "monotonically_increasing_id() AS number")
        with held_frame(more_rows) as (numbered_rows, held), ExitStack() as stack:
            (after,) = blocks(spark)
            assert after.id() != before.id()
            assert texts(numbered_rows.drop("hash", "number")) == texts(rows)
            assert numbered_rows.where("hash <> xxhash64(text, id)").count() == 0
            assert numbered_rows.select("id", "number").collect() == numbered_rows.select("id", "number").collect()
            assert numbered_rows.select("number").distinct().count() == 1500
            hashes = Hashes(held.hashes("hash"), stack)
            assert len(hashes) == 1500
            assert spark.range(1).where(hashes.has("xxhash64('ä', 1L)")).count() == 1
            assert spark.range(1).where(hashes.has("xxhash64('ä', 2L)")).count() == 0


def test_rows_that_are_left_out_and_renamed(spark: SparkSession, rows: DataFrame) -> None:
    def shaped(frame: DataFrame) -> DataFrame:
        frame = frame.selectExpr("id AS a", "text AS b", "struct AS c", "whole").where("a % 3 <> 1 AND b IS NOT NULL")
        frame = frame.selectExpr("a AS d", "b", "c.inner AS e", "length(b) AS size", "whole + 1 AS next", "c").where("size < 40")
        return frame.selectExpr("d AS f", "b AS text", "e", "size + d AS g", "next", "c", "'same' AS same")

    with held_frame(rows) as (held_rows, _), held_frame(shaped(held_rows)) as (shaped_rows, _):
        assert len(blocks(spark)) == 2
        assert texts(shaped_rows) == texts(shaped(rows))
        assert 0 < shaped_rows.count() < 1000


@pytest.mark.parametrize("name", ["whole", "text", "day", "at", "local", "price", "id"])
def test_the_extremes_of_held_rows(spark: SparkSession, rows: DataFrame, name: str) -> None:
    from pyspark.sql import DataFrame

    expected = rows.selectExpr(f"min({name}) AS low", f"max({name}) AS high", f"count_if({name} IS NULL) AS nulls")
    with held_frame(rows) as (_, held):
        assert DataFrame(held.extremes(name), spark).collect() == expected.collect()


def test_the_extremes_of_no_rows(spark: SparkSession, rows: DataFrame) -> None:
    from pyspark.sql import DataFrame

    with held_frame(rows.where("id < 0")) as (no_rows, held):
        assert no_rows.count() == 0
        assert [tuple(row) for row in DataFrame(held.extremes("text"), spark).collect()] == [(None, None, 0)]


def test_judged_rows_are_counted_and_the_good_ones_held(spark: SparkSession) -> None:
    bad = "IF(id % 10 = 0, named_struct('at', CAST(id AS int), 'dropped', false), NULL) AS _sluice_bad"
    judged_rows = spark.range(0, 1000, 1, 2).selectExpr("id", bad, "id % 10 < 5 AS _sluice_keep")
    with held_frame(judged_rows, carries=True) as (good_rows, held):
        tally = held.outcome()
        assert [tally.read(), tally.bad(), tally.filtered(), len(tally.carried())] == [1000, 100, 500, 100]
        assert good_rows.columns == ["id"]
        assert {row["id"] for row in good_rows.collect()} == {number for number in range(1000) if 0 < number % 10 < 5}


def test_rows_behind_a_shuffle_show_spark_their_lineage(spark: SparkSession, rows: DataFrame) -> None:
    shuffled_rows = rows.repartition(3, "id")
    with held_frame(shuffled_rows) as (held_rows, _):
        assert "held rows" not in held_rows._jdf.queryExecution().optimizedPlan().toString()
        assert "Exchange" not in held_rows._jdf.queryExecution().executedPlan().toString()
        assert texts(held_rows) == texts(rows)


def test_large_texts_are_held_in_small_blocks(spark: SparkSession) -> None:
    large_rows = spark.range(0, 300, 1, 1).selectExpr("id", "repeat('x', 100000) AS text")
    with held_frame(large_rows) as (held_rows, _):
        (held,) = blocks(spark)
        assert 8 <= int(held.count()) <= 20  # of up to 4 MiB
        assert held_rows.selectExpr("sum(length(text)) AS size", "count(DISTINCT id) AS ids").collect() == [(30_000_000, 300)]


def test_a_hold_that_fails_leaves_nothing(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException), held_frame(spark.range(0, 100, 1, 2).selectExpr("1 / (id - 99) AS x")):
        pass
    assert not blocks(spark)


def test_a_condition_above_a_projection_that_is_not_deterministic(spark: SparkSession, rows: DataFrame) -> None:
    with held_frame(rows.select("id", "whole")) as (held_rows, _):
        numbered_rows = held_rows.selectExpr("whole AS id", "id AS whole", "monotonically_increasing_id() AS number")
        with held_frame(numbered_rows.where("number < 10")) as (few_rows, _):
            assert texts(few_rows) == texts(numbered_rows.where("number < 10"))
            assert few_rows.where("whole >= 10").count() == 0
