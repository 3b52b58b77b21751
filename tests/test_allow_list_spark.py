"""What the allow-list lets through, in Spark: literals with exactly the value that was read, and no row that takes all memory."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from framework.base import type_text, types
from framework.sql.expressions import ExpressionError, check, guarded
from framework.sql.tokens import tokens
from tests.pace import bar

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
    found = [(spelt, text) for text in texts if "${" not in text for spelt in spellings(text)]
    for _ in range(20_000):
        spelt = draw.choice(["'", "'", "r'"]) + "".join(draw.choices(SPELT, k=draw.randint(0, 7))) + "'"
        if (text := said(spelt)) is not None:
            found.append((spelt, text))
    return list(dict.fromkeys(found))


def said(spelt: str) -> str | None:
    try:
        check(spelt, {})
        first, end = tokens(spelt)
    except (ExpressionError, ValueError):
        return None
    return first.value if (first.kind, end.kind) == ("string", "end") else None


def test_a_text_has_the_value_that_spark_reads(spark: Any) -> None:
    found = literals()
    assert len(found) > 4000
    for at in range(0, len(found), 500):
        batch = found[at : at + 500]
        read = spark.range(1).selectExpr(*(check(spelt, {}).sql for spelt, _ in batch)).collect()[0]
        wrong = [(spelt, text, seen) for (spelt, text), seen in zip(batch, read, strict=True) if not said(spelt) == text == seen]
        assert not wrong


def test_a_field_has_the_name_that_spark_gives_it(spark: Any) -> None:
    found = [(spelt, text) for spelt, text in literals() if text.strip()][:1000]
    made = [check(f"named_struct({spelt}, 1)", {}) for spelt, _ in found]
    schema = spark.range(1).selectExpr(*(f"{each.sql} AS c{at}" for at, each in enumerate(made))).schema
    for (_, text), ours, seen in zip(found, made, schema, strict=True):
        assert isinstance(ours.type, types.Struct)
        assert ours.type.fields[0].name == text == seen.dataType.fields[0].name
    fields = {text.lower(): ours for (_, text), ours in zip(found, made, strict=True)}
    taken = [check(f"x.{types.identifier(text)}", {"x": each.type}) for text, each in fields.items()]
    inner = [each.sql.replace("`x`", made.sql, 1) for each, made in zip(taken, fields.values(), strict=True)]
    assert set(spark.range(1).selectExpr(*inner).collect()[0]) == {1}


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
    tried = {"".join(draw.choices(parts, k=draw.randint(1, 7))) for _ in range(60_000)} | {
        "3.4028234663852886e38f",
        "3.4028235e38f",
    }
    found = {text: checked for text in sorted(tried) if (checked := accepted(text))}
    assert len(found) > 3000
    texts = list(found)
    for at in range(0, len(texts), 1000):
        batch = texts[at : at + 1000]
        schema = spark.range(1).selectExpr(*(f"{found[text].sql} AS c{at}" for at, text in enumerate(batch))).schema
        seen = [field.dataType.simpleString() for field in schema]
        assert [(text, str(found[text].type)) for text in batch] == list(zip(batch, seen, strict=True))


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
    made = frame.where("length(a) > 10").selectExpr(f"length({checked.sql})", f"{checked.error} IS NOT NULL").collect()
    assert [tuple(each) for each in made] == [(None, True)]
    same = frame.where("length(a) < 10").selectExpr(f"({checked.sql}) = ({text})", f"{checked.error} IS NOT NULL").collect()
    assert [tuple(each) for each in same] == [(True, False)]


@pytest.mark.timed
def test_a_decimal_that_java_computes_for_hours_is_an_error(spark: Any) -> None:
    hostile = [
        "1e-1000000000",
        "1e2147483647",
        "-1E+2147483647",
        "0e-2147483647",
        "9" * MEGABYTE,
        "1" + "\u0660" * 2000,
        "1e-\u0661" * 9,
    ]
    plain = [
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
    frame = spark.createDataFrame([(text,) for text in hostile], "a string")
    began = time.monotonic()
    for type in ("decimal(18,2)", "decimal(38,0)", "decimal(38,38)"):
        checked = guarded(check(f"cast(a as {type})", {"a": types.STRING}))
        tried = check(f"try_cast(a as {type})", {"a": types.STRING})
        found = frame.selectExpr(checked.sql, f"{checked.error} IS NOT NULL", tried.sql).distinct().collect()
        assert [tuple(each) for each in found] == [(None, True, None)]
        short = spark.createDataFrame([(text,) for text in plain], "a string")
        wrong = short.where(f"NOT (({tried.sql}) <=> try_cast(a AS {type}))").collect()
        assert wrong == []
    assert time.monotonic() - began < bar(30)
