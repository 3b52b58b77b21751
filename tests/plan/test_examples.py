"""A pipeline's tests without an engine: the messages that they become, and the lines about rows that differ."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import Where
from framework.base.type_text import parse
from framework.host.plans import make
from framework.plan import Column, Message, SpecTest
from framework.plan.compare import TimeBeyondRange, alike, differences, lines, show
from tests.support.cases import MAIN

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
SPECS = """
---
topic: trades
kafka_name: all_trades
value: json
key: {format: string, as: userid}
headers: {source: string}
columns: {price: double, at: timestamp, sent: {type: timestamp, format: epoch_millis}}
---
pipeline: trades
from: {topic: trades}
into: {table: markets.trades}
tests:
  - name: all of it
    given:
      - {price: 1.50, at: 2026-01-05, sent: 2026-01-05T10:00:00.123Z, userid: u, source: web}
      - {message: {value: null, partition: 2, at: 2026-01-05T10:00:00Z, key: k, headers: {other: a}}}
      - new_batch
      - {message: {raw: "not json"}}
      - {price: null}
    expect: [{price: 1.5, _kafka_partition: 0}]
    expect_bad: [{error: undecodable, value: not json}]
"""


def test_given_values_become_messages(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(MAIN + SPECS)
    (example,) = make(tmp_path / "specs").pipelines[0].examples
    first_value = b'{"price": 1.50, "at": "2026-01-05T00:00:00Z", "sent": 1767607200123}'
    assert example.given == (
        Message(
            batch=1,
            topic="all_trades",
            partition=0,
            offset=0,
            timestamp=START,
            key=b"u",
            value=first_value,
            headers=(("source", b"web"),),
        ),
        Message(
            batch=1,
            topic="all_trades",
            partition=2,
            offset=0,
            timestamp=datetime(2026, 1, 5, 10, tzinfo=timezone.utc),
            key=b"k",
            value=None,
            headers=(("other", b"a"),),
        ),
        Message(batch=2, topic="all_trades", partition=0, offset=1, timestamp=START + timedelta(seconds=2), value=b"not json"),
        Message(
            batch=2, topic="all_trades", partition=0, offset=2, timestamp=START + timedelta(seconds=3), value=b'{"price": null}'
        ),
    )
    assert example.expect == ({"price": 1.5, "_kafka_partition": 0},)
    assert example.expect_bad == ({"code": "undecodable", "value": b"not json"},)


COLUMNS = tuple(Column(name, parse(type_)) for name, type_ in (("id", "string"), ("n", "int"), ("flag", "string")))


def lines_of(
    expect: list[dict[str, Any]] | None, rows: list[dict[str, Any]], bad: list[dict[str, Any]] | None = None
) -> list[str]:
    messages = tuple(Message(batch=1, topic="t", partition=0, offset=offset, timestamp=START, value=b"") for offset in range(5))
    example = SpecTest(
        name="one", where=Where("a", 1, 1), given=messages, expect=None if expect is None else tuple(expect), expect_bad=()
    )
    compared = differences(example, COLUMNS, rows, bad or [])
    return [line for difference in compared for line in lines(difference)]


def row(id_: str, n: int | None, flag: str, offset: int = 0) -> dict[str, Any]:
    return {"id": id_, "n": n, "flag": flag, "_kafka_partition": 0, "_kafka_offset": offset}


def test_rows_fit_in_any_order() -> None:
    assert lines_of([{"n": 2}, {"id": "a"}], [row("a", 1, "x"), row("b", 2, "y")]) == []
    # `{}` takes whatever the others leave.
    assert lines_of([{}, {"id": "a"}, {"n": 1}], [row("a", 1, "x"), row("b", 1, "x"), row("a", 2, "x")]) == []
    assert lines_of([{"id": "a"}, {"id": "a"}], [row("a", 1, "x"), row("a", 1, "x")]) == []
    assert lines_of([], []) == []
    assert lines_of(None, [row("a", 1, "x")]) == []


def test_each_expected_row_is_above_the_closest_actual_row() -> None:
    assert lines_of([{"id": "a", "flag": "LARGE"}, {"id": "b", "flag": "NORMAL"}], [row("b", 2, "ODD", 3), row("a", None, "SMALL", 1)]) == [
        "expected 2 rows, got 2",
        "                     id  flag",
        "- expected           a   LARGE",
        "+ got, of message 2  a   SMALL",
        "                         ^^^^^",
        "- expected           b   NORMAL",
        "+ got, of message 4  b   ODD",
        "                         ^^^^^^",
    ]  # fmt: skip


def test_rows_without_a_pair_are_missing_or_unexpected() -> None:
    assert lines_of([{"id": "a", "n": 1}, {"id": "b", "n": 2}], []) == [
        "expected 2 rows, got 0",
        "           id  n",
        "- missing  a   1",
        "- missing  b   2",
    ]
    assert lines_of([], [row("a", None, "x")]) == [
        "expected 0 rows, got 1",
        "                            id  n     flag",
        "+ unexpected, of message 1  a   null  x",
    ]
    assert lines_of([], [row("a", number, "x") for number in range(25)])[-1] == "… and 5 more"


def test_unexpected_bad_rows_are_listed() -> None:
    bad = {"code": "undecodable", "message": "the value is not JSON", "topic": "t", "partition": 0, "offset": 2}
    assert lines_of(None, [], [bad]) == [
        "expected 0 bad rows, got 1",
        "                            code         message",
        "+ unexpected, of message 3  undecodable  the value is not JSON",
    ]


def test_long_texts_are_cut_to_start_near_their_difference() -> None:
    (_, _, want, got, _) = lines_of([{"id": "a" * 500 + "b"}], [row("a" * 500 + "c", 1, "x")])
    assert want.endswith("  …" + "a" * 10 + "b")
    assert got.endswith("  …" + "a" * 10 + "c")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"), ("null", '"null"'), ("", '""'), (" a", '" a"'), ("a b", "a b"), ("a\nb", "a\\nb"), (True, "true"),
        ("true", '"true"'), (1.5, "1.5"), (Decimal("1.50"), "1.50"), (b"\xff", "\\xff"), (START, "2026-01-01T00:00:00Z"),
        ([1, None], "[1, null]"), ({"a": "", "b": 1}, '{a: "", b: 1}'), ([("a", 1)], "{a: 1}"), ("x" * 99, "x" * 59 + "…"),
    ],
)  # fmt: skip
def test_values_are_printed_in_a_specs_syntax(value: Any, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("type_", "want", "got", "same"),
    [
        ("double", 0.3, 0.1 + 0.2, True), ("double", 0.3, 0.30001, False), ("double", float("nan"), float("nan"), True),
        ("double", float("inf"), float("inf"), True), ("double", 5.0, float("inf"), False),
        ("decimal(9,2)", Decimal("1.5"), Decimal("1.50"), True), ("int", None, 0, False), ("string", "", None, False),
        ("array<int>", [1, 2], [2, 1], False), ("array<int>", [1], [1, None], False), ("array<double>", [None], [None], True),
        ("map<string,int>", {"a": 1}, [("a", 1)], True), ("map<string,int>", {"a": 1}, [("a", 1), ("b", 2)], False),
        ("struct<a int, b int>", {"a": 1}, {"a": 1, "b": 2}, True), ("struct<a int, b int>", {"b": None}, {"a": 1, "b": 2}, False),
        ("timestamp", START, TimeBeyondRange("a time"), False), ("struct<a int>", {"a": 1}, TimeBeyondRange("a time"), False),
    ],
)  # fmt: skip
def test_equal_values_are_alike(type_: str, want: Any, got: Any, same: bool) -> None:
    assert alike(want, got, parse(type_)) is same
