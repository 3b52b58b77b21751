"""Our own decoders as Spark runs them: functions in SQL, called from generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from framework.base import types
from framework.base.type_text import parse
from framework.messages.encoding import decoder
from framework.sql.settings import FUNCTIONS
from tests.support.decoders import of_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = [
    decoder.column("id", types.BIGINT, required=True),
    decoder.column("price", parse("decimal(10,2)")),
    decoder.column("name`$", types.STRING, source="${env:HOME} `it's`"),
    decoder.column("at", types.TIMESTAMP),
    decoder.column("place", parse("struct<tags array<string>, m map<string,double>>")),
]
MESSAGES = [
    b'{"id": 1, "price": 1.50, "at": "2026-01-05T10:00:00+01:00", "place": {"tags": ["a", null], "m": {"k": 0.5}}}',
    b'{"id": 2, "${env:HOME} `it\'s`": "\\ud83d\\ude80"}',
    b'{"id": 3, "price": 1.505}',
    b"not json",
    None,
]


def test_a_function_in_sql(spark: SparkSession) -> None:
    call = decoder.call(of_json(COLUMNS), "value")
    frame = spark.createDataFrame([(number, message) for number, message in enumerate(MESSAGES)], "n int, value binary")
    frame = frame.repartition(2).selectExpr("n", f"{call} AS d").selectExpr("n", "d.*")
    rows = {row["n"]: row.asDict(recursive=True) for row in frame.collect()}
    assert [(rows[number]["_sluice_code"], rows[number]["_sluice_why"]) for number in range(5)] == [
        (None, None), (None, None), ("undecodable", "field `price`: wanted decimal(10,2), found 1.505"),
        ("undecodable", "the value is not JSON: `o` is not expected at byte 1"), ("null_value", "the message has no value"),
    ]  # fmt: skip
    assert rows[1]["name`$"] == "\U0001f680"
    assert (str(rows[0]["price"]), rows[0]["place"]) == ("1.50", {"tags": ["a", None], "m": {"k": 0.5}})
    types_ = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    assert types_["place"] == "struct<tags:array<string>,m:map<string,double>>"
    assert types_["at"] == "timestamp"


def test_it_is_called_from_generated_code(spark: SparkSession) -> None:
    spark = spark.newSession()  # which no other test has given settings
    spark.conf.set(f"spark.sql.catalog.{FUNCTIONS}", decoder.CLASS)
    call = decoder.call(of_json(COLUMNS), "value")
    frame = spark.range(10).selectExpr("CAST(concat('{\"id\": ', id, '}') AS BINARY) AS value")
    decoded_rows = frame.selectExpr(f"{call} AS d").selectExpr("d.id", "d.price", "d._sluice_code").where("_sluice_code IS NULL")
    jvm: Any = spark._jvm
    plan = decoded_rows._jdf.queryExecution().executedPlan()
    code = jvm.org.apache.spark.sql.execution.debug.__getattr__("package$").__getattr__("MODULE$").codegenString(plan)
    assert "Found 1 WholeStageCodegen subtrees" in code
    assert ".invoke(" in code
    assert sorted(row["id"] for row in decoded_rows.collect()) == list(range(10))
    second_frame = frame.selectExpr(f"{call}.id AS a", f"{call}.price AS b")
    assert frame.selectExpr(f"{call}.id AS a", f"{call}.price AS b").sameSemantics(second_frame)


def test_what_is_no_description_is_an_error_of_the_query(spark: SparkSession) -> None:
    for text in ("no description", '{"format": "nothing", "columns": []}', "z:AAAA"):
        with pytest.raises(Exception, match=r"(?i)description|there is no format"):
            spark.sql(f"SELECT {FUNCTIONS}.`{text}`(X'00')").collect()
    with pytest.raises(Exception, match="one argument"):
        spark.sql(f"SELECT {decoder.call(of_json(COLUMNS), repr('text'))}").collect()
