"""Quoted texts and names keep their meaning, for Spark and for Sluice's own reader of SQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st

from framework.base.errors import SetupError
from framework.base.types import folded
from framework.core.spark import session
from framework.sql.quote import identifier, literal, substituted
from framework.sql.settings import SQL_SETTINGS
from framework.sql.tokens import tokens
from tests.support.hostile_texts import TEXTS
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pieces = st.sampled_from(
    [*TEXTS, "$", "{", "}", "\\", "'", '"', "`", "\n", "\r", "\0", "\u2028", "\x85", "\ufeff", "\\u0041", "%", "_"]
)
texts = st.lists(pieces | st.text(st.characters(codec="utf-8"), max_size=20), max_size=6).map("".join)
NAMES = ("_sluice_value", "_sluice_text")


def test_a_text_in_raw_quotes_ends_at_its_quote() -> None:
    sql = r"replace(_sluice_text, r'\', '_sluice_text') || _sluice_text || R'a\' || _sluice_text"
    assert substituted(sql, {"_sluice_text": "x"}) == r"replace(x, r'\', '_sluice_text') || x || R'a\' || x"


@given(texts)
def test_sluices_lexer_reads_a_quoted_literal_as_the_text(text: str) -> None:
    assert "$" not in literal(text)
    if literal(text).isprintable():
        (token, _) = tokens(literal(text))
        assert (token.kind, token.value) == ("string", text)


@given(st.lists(texts, min_size=1, max_size=5), texts)
def test_a_name_is_replaced_outside_of_quotes_alone(parts: list[str], name: str) -> None:
    name = name or "x"
    quoted = [text for part in parts for text in (literal(part + NAMES[0]), identifier(name + NAMES[1]))]
    sql = f" {NAMES[0]} || ".join(quoted) + f" = {NAMES[0]}.{NAMES[1]}"
    result = substituted(sql, {NAMES[0]: "(a)", NAMES[1]: "b"})
    assert result == " (a) || ".join(quoted) + " = (a).b"


@pytest.mark.spark
def test_spark_reads_literals_and_names_as_they_are(spark: SparkSession) -> None:
    """Spark reads many values in one query, also in a session with substitution turned on."""
    new_session: Any = spark.newSession()

    @settings(max_examples=5, deadline=None)
    @given(st.lists(texts, min_size=100, max_size=100))
    def same(values: list[str]) -> None:
        names = [f"{index} {value}" for index, value in enumerate(values)]
        parts = zip(values, names, strict=True)
        frame = spark.range(1).selectExpr(*(f"{literal(value)} AS {identifier(name)}" for value, name in parts))
        assert (frame.columns, list(frame.collect()[0])) == (names, values)
        assert spark.conf.get("spark.sql.variable.substitute") == "false"
        new_session.conf.set("spark.sql.variable.substitute", "true")
        assert list(new_session.range(1).selectExpr(*map(literal, values)).collect()[0]) == values

    same()


@pytest.mark.spark
def test_names_that_are_equal_for_spark_fold_to_the_same_key(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    resolver = getattr(getattr(jvm.org.apache.spark.sql.catalyst.analysis, "package$"), "MODULE$").caseInsensitiveResolution()
    alike: dict[str, set[str]] = {}  # letters by a lower, upper or title form that they share
    for letter in map(chr, range(0x110000)):
        for form in {letter.lower(), letter.upper(), letter.title()} - {letter}:
            alike.setdefault(form, {form}).add(letter)
    pairs = {(low, high) for letters in alike.values() for low in letters for high in letters if low < high}
    assert len(pairs) > 1_000 and folded("I\u0307") == folded("\u0130")
    assert [pair for pair in pairs if folded(pair[0]) != folded(pair[1]) and resolver.apply(*pair)] == []


def test_a_spec_cannot_change_a_setting_that_decides_what_sql_means(
    tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_for(tmp_path, "127.0.0.1:1")
    engine = replace(plan.engine, conf=tuple((name, "other") for name in SQL_SETTINGS))
    assert {name: session.settings(replace(plan, engine=engine))[name] for name in SQL_SETTINGS} == SQL_SETTINGS


@pytest.mark.parametrize(("master", "expected"), [("local", "true"), ("local[2]", "true"), ("spark://127.0.0.1:7077", "false")])
def test_a_local_spark_always_authenticates_its_connections(
    tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch, master: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_for(tmp_path, "127.0.0.1:1")
    for engine in (
        replace(plan.engine, master=master, conf=(("spark.authenticate", "false"),)),
        replace(plan.engine, conf=(("spark.master", master), ("spark.authenticate", "false"))),
    ):
        assert session.settings(replace(plan, engine=engine))["spark.authenticate"] == expected
    engine = replace(plan.engine, master=master, conf=())
    assert session.settings(replace(plan, engine=engine)).get("spark.authenticate", "false") == expected


@pytest.mark.spark
def test_legacy_settings_in_spark_defaults_are_refused(spark: SparkSession) -> None:
    session.refuse_older(spark)
    conf: Any = spark._jsc.sc().conf()
    conf.set("spark.sql.legacy.sizeOfNull", "true")
    try:
        with pytest.raises(SetupError, match=r"sets `spark\.sql\.legacy\.sizeOfNull`"):
            session.refuse_older(spark)
    finally:
        conf.remove("spark.sql.legacy.sizeOfNull")
