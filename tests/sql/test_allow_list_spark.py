"""Accepted expressions in Spark: literals have exactly the value that was read, and no row takes all memory."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from framework.base import type_text, types
from framework.sql.expressions import ExpressionError, check, guarded
from framework.sql.tokens import tokens
from tests.support.time_limits import bar

pytestmark = pytest.mark.spark

CHARACTERS = [
    *"ab'\\\"`%_$(){}[];-/*#?:|&",
    " ",
    "\n",
    "\t",
    "\r",
    "é",
    "日",
    "🙂",
    "\u0301",
    "\u00a0",
    "ß",
    "\ufffd",
    "''",
    "\\\\",
    "--",
]
SPELT = [*"ab'\\\\''\"nrtuZ0%_", "\\", "\\\\", "\\'", "''", "\\n", "\\t", "\\r", '\\"', "\\%", "\\_", "\n", "\u00e9", "$", "{"]
MEGABYTE = 1 << 20


def spellings(text: str) -> Iterator[str]:
    """Every way to write a text as a literal."""
    slashes = text.replace("\\", "\\\\")
    yield "'" + slashes.replace("'", "''") + "'"
    yield (
        "'" + slashes.replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace('"', '\\"') + "'"
    )
    if "'" not in text:
        yield f"r'{text}'"
        yield f"R'{text}'"


def literals() -> list[tuple[str, str]]:
    """Literals and what they say: texts in all spellings, and any sequence of quotes and backslashes that is accepted."""
    draw = random.Random(19)
    texts = ["".join(draw.choices(CHARACTERS, k=draw.randint(0, 12))) for _ in range(600)]
    pairs = [(spelling, text) for text in texts if "${" not in text for spelling in spellings(text)]
    for _ in range(20_000):
        spelling = draw.choice(["'", "'", "r'"]) + "".join(draw.choices(SPELT, k=draw.randint(0, 7))) + "'"
        if (text := literal_value(spelling)) is not None:
            pairs.append((spelling, text))
    return list(dict.fromkeys(pairs))


def literal_value(spelling: str) -> str | None:
    try:
        check(spelling, {})
        token, end = tokens(spelling)
    except (ExpressionError, ValueError):
        return None
    return token.value if (token.kind, end.kind) == ("string", "end") else None


def test_a_text_has_the_value_that_spark_reads(spark: Any) -> None:
    pairs = literals()
    assert len(pairs) > 4000
    for start in range(0, len(pairs), 500):
        batch = pairs[start : start + 500]
        row = spark.range(1).selectExpr(*(check(spelling, {}).sql for spelling, _ in batch)).collect()[0]
        differences = [
            (spelling, text, spark_value)
            for (spelling, text), spark_value in zip(batch, row, strict=True)
            if not literal_value(spelling) == text == spark_value
        ]
        assert not differences


def test_a_field_has_the_name_that_spark_gives_it(spark: Any) -> None:
    pairs = [(spelling, text) for spelling, text in literals() if text.strip()][:1000]
    structs = [check(f"named_struct({spelling}, 1)", {}) for spelling, _ in pairs]
    schema = spark.range(1).selectExpr(*(f"{named_struct.sql} AS c{index}" for index, named_struct in enumerate(structs))).schema
    for (_, text), struct, spark_field in zip(pairs, structs, schema, strict=True):
        assert isinstance(struct.type, types.Struct)
        assert struct.type.fields[0].name == text == spark_field.dataType.fields[0].name
    fields = {text.lower(): struct for (_, text), struct in zip(pairs, structs, strict=True)}
    field_checks = [check(f"x.{types.identifier(text)}", {"x": outer_struct.type}) for text, outer_struct in fields.items()]
    inner_sql = [
        field_check.sql.replace("`x`", outer_struct.sql, 1)
        for field_check, outer_struct in zip(field_checks, fields.values(), strict=True)
    ]
    assert set(spark.range(1).selectExpr(*inner_sql).collect()[0]) == {1}


def test_numbers_that_are_accepted_are_spark_s(spark: Any) -> None:
    draw = random.Random(23)
    parts = [
        *"0123456789..eE+-",
        "e",
        "38",
        "308",
        "99",
        "0000",
        "L",
        "y",
        "S",
        "d",
        "F",
        "bd",
        "BD",
        "e-",
        "1.7976931348623157e308",
    ]
    candidates = {"".join(draw.choices(parts, k=draw.randint(1, 7))) for _ in range(60_000)} | {
        "3.4028234663852886e38f",
        "3.4028235e38f",
    }
    checks = {text: checked for text in sorted(candidates) if (checked := accepted(text))}
    assert len(checks) > 3000
    texts = list(checks)
    for start in range(0, len(texts), 1000):
        batch = texts[start : start + 1000]
        schema = spark.range(1).selectExpr(*(f"{checks[text].sql} AS c{index}" for index, text in enumerate(batch))).schema
        spark_types = [field.dataType.simpleString() for field in schema]
        assert [(text, str(checks[text].type)) for text in batch] == list(zip(batch, spark_types, strict=True))


def accepted(text: str) -> Any:
    try:
        return check(text, {})
    except ExpressionError:
        return None


@pytest.mark.parametrize(
    ("text", "row", "allowed"),
    [
        ("replace(a, 'x', b)", ("x" * MEGABYTE, "y" * MEGABYTE, ["x"]), ("axa", "bb", ["x"])),
        ("replace(a, b, a)", ("x" * MEGABYTE, "x", ["x"]), ("axa", "x", ["x"])),
        (f"replace(a, 'x', '{'y' * 2000}')", ("x" * MEGABYTE, "", ["x"]), ("axa", "", ["x"])),
        (f"regexp_replace(a, '.', '{'$0' * 2000}')", ("x" * MEGABYTE, "", ["x"]), ("axa", "", ["x"])),
        (f"regexp_replace(a, '', '{'y' * 2000}')", ("x" * MEGABYTE, "", ["x"]), ("axa", "", ["x"])),
        ("array_join(c, a)", ("x" * MEGABYTE, "", [""] * 100_000), ("xx", "", ["a", "b"])),
        ("array_join(split(a, ','), a)", ("," * MEGABYTE, "", []), (",a,", "", [])),
    ],
)
def test_a_text_that_would_fill_the_memory_is_an_error(
    spark: Any, text: str, row: tuple[Any, ...], allowed: tuple[Any, ...]
) -> None:
    columns = {name: type_text.parse(type) for name, type in (("a", "string"), ("b", "string"), ("c", "array<string>"))}
    checked = guarded(check(text, columns))
    frame = spark.createDataFrame([row, allowed], "a string, b string, c array<string>")
    large_rows = frame.where("length(a) > 10").selectExpr(f"length({checked.sql})", f"{checked.error} IS NOT NULL").collect()
    assert [tuple(result) for result in large_rows] == [(None, True)]
    small_rows = frame.where("length(a) < 10").selectExpr(f"({checked.sql}) = ({text})", f"{checked.error} IS NOT NULL").collect()
    assert [tuple(result) for result in small_rows] == [(True, False)]


@pytest.mark.timed
def test_a_decimal_that_java_computes_for_hours_is_an_error(spark: Any) -> None:
    hostile_texts = [
        "1e-1000000000",
        "1e2147483647",
        "-1E+2147483647",
        "0e-2147483647",
        "9" * MEGABYTE,
        "1" + "\u0660" * 2000,
        "1e-\u0661" * 9,
    ]
    plain_texts = [
        "1e5",
        " 1.5 ",
        "1E-3",
        "-1e+2",
        "1e-9999",
        "1e9999",
        "",
        "e",
        "NaN",
        "1e",
        "0e0",
        "x",
        "1.23456789",
        "+.5e1 ",
        "1e-5\n",
    ]
    frame = spark.createDataFrame([(text,) for text in hostile_texts], "a string")
    start_time = time.monotonic()
    for type in ("decimal(18,2)", "decimal(38,0)", "decimal(38,38)"):
        checked = guarded(check(f"cast(a as {type})", {"a": types.STRING}))
        try_checked = check(f"try_cast(a as {type})", {"a": types.STRING})
        rows = frame.selectExpr(checked.sql, f"{checked.error} IS NOT NULL", try_checked.sql).distinct().collect()
        assert [tuple(row) for row in rows] == [(None, True, None)]
        plain_frame = spark.createDataFrame([(text,) for text in plain_texts], "a string")
        differences = plain_frame.where(f"NOT (({try_checked.sql}) <=> try_cast(a AS {type}))").collect()
        assert differences == []
    assert time.monotonic() - start_time < bar(30)
