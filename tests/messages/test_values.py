"""Values of JSON, in messages, Debezium's envelopes and keys: each lands to the last digit, or its message is a bad row.

`FINDINGS` has values that were wrong before Sluice had its own decoders, by the kind of error.
"""

from __future__ import annotations

import json
import uuid
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SpecError, Where
from framework.operations.trials.trial import Outcome, Trials
from framework.plan import Message, Pipeline, SpecTest
from tests.support.json_values import (
    BAD,
    CASES,
    COLUMNS,
    RIGHT,
    ROCKET,
    D,
    Either,
    as_bytes,
    bad,
    exact,
    is_wanted,
    place,
    same,
    short,
)
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 5, tzinfo=timezone.utc)


FORMATS = {"plain": "undecodable", "change": "undecodable", "keyed": "undecodable_key"}  # and a bad row's code
SPECS = """
topic: plain
value: json
columns: {COLUMNS}
---
topic: change
value: debezium_json
columns: {COLUMNS}
---
topic: keyed
value: json
key: {format: json, columns: {COLUMNS}}
columns: {id: bigint}
---
topic: merged
value: json
columns: {group: int, text: string, sum: "decimal(38,27)", batch: int}
---
pipeline: plain
from: {topic: plain}
into: {table: NAMESPACE.plain}
---
pipeline: change
from: {topic: change}
into: {table: NAMESPACE.change}
---
pipeline: keyed
from: {topic: keyed}
into: {table: NAMESPACE.keyed}
---
pipeline: merged
from: {topic: merged}
into: {table: NAMESPACE.merged, write: upsert, keys: [group, text, sum], deletes: ignore}
"""


# Each finding, with its cases by column.
FINDINGS: dict[str, dict[str, dict[str | bytes, Any]]] = {
    "finding 9: digits are lost where a number passes through a double": {
        "sum": {
            "1.2345678901234567890E-8": D("1.2345678901234567890E-8"), "123456789.123456789e2": D("12345678912.3456789"),
            "12345678901.12345678901234567890123456700000000000000": D("12345678901.123456789012345678901234567"),
            "0.1234567890123456789012345670000000000000": D("0.123456789012345678901234567"),
        },
        "whole": {
            "1.23456789012345678E+17": D(123456789012345678), "123456789012345678e0": D(123456789012345678), "1e23": D("1e23"),
            "123e20": D("123e20"), "123456789012345678e10": D("123456789012345678e10"),
            "12345678901234567890123456789012345678.0": D("12345678901234567890123456789012345678"),
            "123456789012345678901234567890123456780e-1": D("12345678901234567890123456789012345678"),
        },
        "connect38": {
            "1.2345678901234567890123E+20": D("123456789012345678901.23"), **bad("12345678901234567890123456789.1234567891"),
        },
        "sums": {"[1.2345678901234567890E-8]": [D("1.2345678901234567890E-8")]},
    },
    "finding 9: a decimal of more places than its column is rounded": {
        "sum": bad("1.0000000000000000000000000001", "1e-28", "1e-400", "1.5e-400", "1e-999999999"),
        "whole": bad("1.5", "0.5", "-0.5", "0." + "0" * 49 + "1"),
        "price": bad("1.239", "1.235", "1.234", "1.005", "-1.005", "0.001", "-0.004", "99999999.994", "1239e-3", "1e-3"),
        "part": bad("1.5e-38"), "connect": bad("1.239"), "connect38": bad("1.2345678901234567890E+1", "0.1234567891", "1e-400"),
        "sums": bad("[1.0000000000000000000000000001]"), "prices": bad('{"a": 1.505}'), "place": bad('{"d": 1.505}'),
    },
    "finding 10: a string column writes numbers anew": {
        "text": same(
            "10000000000000001.1", "10000000000000001.2", "1.50", "0.10", "-0", "1e5", "1E5", "1E+5", "1e-7", "3.0e0", "0.0001",
            "12345678.5", "1e400", "-1e400", "1e-400", "0.1000000000000000055511151231257827",
        ),
        "texts": {'["a", null, 10000000000000001.1]': ["a", None, "10000000000000001.1"], "[1e400]": ["1e400"]},
        "counts": {'{"a": 1.10}': [("a", "1.10")]}, "place": {'{"t": 1.50}': place(t="1.50")},
    },
    "finding 10: a string column writes objects and lists anew": {
        "text": {'["\\ud800"]': Either('["\\ud800"]'), **same(
            '{"q": [1, 2.50]}', "[1.10,1e2]", "[10000000000000001.1]", "[1e400]", "[1, 2]", "[ ]", '{"a":"\\u00e9"}', '{"a":"x\\/y"}',
            '["a\\u2028b"]', f'{{"a":"{ROCKET}"}}', '{"a":"\\ud83d\\ude80"}',
        )},
        "texts": {"[[1.10]]": ["[1.10]"]}, "counts": {'{"a": {"b": 1, "b": 2}}': [("a", '{"b": 1, "b": 2}')]},
    },
    "finding 11: of equal keys in a map all are kept": {
        "counts": {
            '{"a": 1, "a": 2}': [("a", "2")], '{"a": 1, "a": 2, "a": 3}': [("a", "3")], '{"a": "x", "\\u0061": "y"}': [("a", "y")],
            '{"a": null, "a": "y"}': [("a", "y")], '{"a": "y", "a": null}': [("a", None)], '{"": 1, "": 2}': [("", "2")],
        },
        "prices": {'{"a": 1, "a": 2}': [("a", D(2))], '{"a": 1, "a": 1}': [("a", D(1))]},
        "times": {'{"a": "2026-01-05T10:00:00Z", "a": null}': [("a", None)]}, "maps": {'[{"a": 1, "a": 2}]': [[("a", 2)]]},
        "place": {'{"m": {"a": 1, "a": 2}}': place(m=[("a", 2)])},
    },
    "finding 12: half a surrogate pair becomes a question mark": {
        "text": bad('"\\ud800"', '"\\udc00"', '"a\\ud800b"', '"\\ud83d"', '"\\ude80\\ud83d"', '"\\ud83d\\u0041"', '"\\ud83d\\ud83d\\ude80"',
                    '"\\\\\\ud800"'),
        "texts": bad('["\\ud800"]'), "counts": bad('{"\\ud800": "x"}', '{"a": "\\ud800"}'), "place": bad('{"t": "\\ud800"}'),
    },
    "finding 13: the zone of a timestamp_ntz is left out": {
        "local": bad(*(f'"2026-01-05T10:00:00{zone}"' for zone in ("Z", "+01:00", "+00:00", " UTC", " Europe/Berlin"))),
        "place": bad('{"at": "2026-01-05T10:00:00Z"}'),
    },
    "finding 13: a local time that a zone leaves out is moved": {
        "at": bad('"2026-03-29T02:30:00 Europe/Berlin"', '"2026-03-29T02:00:00 Europe/Berlin"', '"2026-03-29T02:30:00 CET"',
                  '"2026-03-08T02:30:00 America/New_York"', '"2011-12-30T10:00:00 Pacific/Apia"'),
    },
    "beside 13: of a local time that a zone has twice the first is taken": {
        "at": bad('"2026-10-25T02:30:00 Europe/Berlin"', '"2026-11-01T01:30:00 America/New_York"'),
    },
    "beside 13: three letters are a zone of Java's own table, BST that of Dhaka and PST with summer time": {
        "at": bad(*(f'"2026-07-01T10:00:00 {zone}"' for zone in ("BST", "IST", "CST", "PST", "AST", "SST", "ECT", "AET"))),
    },
    "beside 13: ISO times of a zone without seconds, as Java prints a whole minute, are refused": {
        "at": dict.fromkeys(('"2026-01-05T10:00Z"', '"2026-01-05T11:00+01:00"'), "2026-01-05T10:00:00+00:00"),
    },
    "beside 13: what is no ISO text is taken for a time": {
        "at": bad(*(f'"2026-01-05T{text}"' for text in (
            "10:5:00Z", "10:00:5Z", "10:00:00.Z", "10:00:00+1", "10:00:00-5", "10:00:00+1:30", "10:00:00+01:2", "10:00:00Z ",
            "10:00:00Z\\u0000", "10:00:00\\n"))),
        "local": bad('"2026-01-05T10:5:00"'), "day": bad('"2026-01-05\\n"'),
    },
    "beside 13: a year before 1 or after 9999, which Python cannot read, lands from text": {
        "day": bad('"0000-01-01"', '"0000-12-31"'), "dates": bad('["0000-01-01"]'), "local": bad('"0000-12-31T23:59:59"'),
        "at": bad('"0000-12-31T23:59:59Z"', '"0001-01-01T00:00:00+01:00"', '"0001-01-01T00:30:00+00:31"', '"9999-12-31T23:59:59-01:00"'),
    },
    "beside 9: a tinyint of 128 to 255 becomes negative": {
        "tiny": bad("128", "200", "255"), "tinies": bad("[200]"),
    },
    "beside 9: base64 with its end in the middle or of blanks alone is taken": {
        "raw": bad('"YWI=YWI="', '" "', '"\\u0000"'),
    },
}  # fmt: skip
CASES += [
    (column, text, want) for finding in FINDINGS.values() for column, cases in finding.items() for text, want in cases.items()
]

# Keys as texts or numbers, sent in two batches, with the rows that they become.
MERGED: list[tuple[str, dict[str, Any]]] = [
    ("text", dict(zip(('"\u00e9"', '"\\u00e9"', '"e\u0301"'), ("\u00e9", "\u00e9", "e\u0301"), strict=True))),
    ("text", {f'"{text}"': text for text in ("a", "A", "a ", " a", "", " ", "null", "ss", "\u00df", "fi", "\ufb01", "I", "\u0131")}),
    ("text", {'"\\u0000"': "\0", '"\\u0000\\u0000"': "\0\0", '"a\\n"': "a\n", '"\\u2028"': "\u2028", '"\u2028"': "\u2028"}),
    ("text", {f'"{text}"': text for text in ("\uffff", "\U00010000", "\U0010ffff", "\U0010ffff" * 40, "\U0010ffff" * 41)}),
    ("text", {f'"{"x" * 600}{text}"': "x" * 600 + text for text in ("1", "2", "12")}),
    ("text", {"1": "1", '"1"': "1", "1.0": "1.0", "true": "true", '"true"': "true", '{"b":1,"a":2}': '{"b":1,"a":2}'}),
    ("sum", {"1.1": D("1.1"), "1.10": D("1.1"), "11e-1": D("1.1"), "0": D(0), "-0": D(0), "-0.0": D(0), "0e5": D(0)}),
    ("sum", {text: D(text) for text in (f"{sign}99999999999.{'9' * 26}{digit}" for sign in ("", "-") for digit in "98")}),
    ("text", {text: text for text in ("10000000000000001.1", "10000000000000001.2")}),
    ("text", {'"\\ud800"': BAD, '"\\udc00"': BAD, '"?"': "?"}),
    ("sum", {text: D(text) for text in ("1.2345678901234567890E-8", "1.2345678901234567891E-8")}),
    ("sum", {"1.0000000000000000000000000001": BAD, "1": D(1)}),
]  # fmt: skip


def column_specs() -> str:
    return "{" + ", ".join(f"{name}: {type_}" for name, type_ in COLUMNS.items()) + "}"


def message(format_: str, offset: int, column: str, text: str | bytes) -> Message:
    fields = b'{"%s": %s}' % (column.encode(), as_bytes(text))
    envelope = b'{"op": "c", "before": null, "after": %s, "source": {"ts_ms": 1}}' % fields
    value = {"plain": fields, "change": envelope, "keyed": b"{}"}[format_]
    return Message(
        batch=1,
        topic=format_,
        partition=0,
        offset=offset,
        timestamp=START,
        key=fields if format_ == "keyed" else None,
        value=value,
    )


def keyed_messages() -> Iterable[Message]:
    offset = 0
    for batch in (1, 2):
        for group, (column, texts) in enumerate(MERGED):
            for text in texts:
                keys = {"text": '""', "sum": "0", column: text}
                value = f'{{"group": {group}, "text": {keys["text"]}, "sum": {keys["sum"]}, "batch": {batch}}}'.encode()
                yield Message(batch=batch, topic="merged", partition=0, offset=offset, timestamp=START, value=value)
                offset += 1


def example(messages: Iterable[Message]) -> SpecTest:
    return SpecTest(name="values", where=Where("", 0, 0), given=tuple(messages), expect=None, expect_bad=())


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, lake: Path) -> Mapping[str, Outcome]:
    """Returns the outcomes of all cases: one batch per format, and two batches of rows with keys."""
    specs = SPECS.replace("{COLUMNS}", column_specs()).replace("NAMESPACE", f"n{uuid.uuid4().hex[:10]}")
    plan = plan_for(lake, "127.0.0.1:1", specs)
    pipelines: dict[str, Pipeline] = {pipeline.name: pipeline for pipeline in plan.pipelines}
    work = [(pipelines[name], example(message(name, offset, *case[:2]) for offset, case in enumerate(CASES))) for name in FORMATS]
    work.append((pipelines["merged"], example(keyed_messages())))
    outcomes = dict(zip([*FORMATS, "merged"], Trials(spark, plan).outcomes(work), strict=True))
    assert [outcome.error for outcome in outcomes.values()] == [None] * len(work)
    return outcomes


@pytest.fixture(scope="module")
def landed(outcomes: Mapping[str, Outcome]) -> Sequence[Mapping[str, Any]]:
    """Returns the result of each case, by format."""
    by_format = {}
    for name, code in FORMATS.items():
        rows = {row["_kafka_offset"]: row for row in outcomes[name].rows}
        codes = {row["offset"]: row["code"] for row in outcomes[name].bad}
        assert rows.keys() | codes.keys() == set(range(len(CASES))), "a message is nowhere"
        assert not rows.keys() & codes.keys(), "a message is in two places"
        assert len(rows) + len(codes) == len(outcomes[name].rows) + len(outcomes[name].bad), "a message is there twice"
        assert set(codes.values()) == {code}
        by_format[name] = [BAD if offset in codes else exact(rows[offset][column]) for offset, (column, _, _) in enumerate(CASES)]
    return [dict(zip(by_format, values, strict=True)) for values in zip(*by_format.values(), strict=True)]


@pytest.mark.spark
@pytest.mark.parametrize("column", COLUMNS)
def test_a_value_lands_as_it_is_or_makes_a_bad_row(column: str, landed: Sequence[Mapping[str, Any]]) -> None:
    cases = [
        (offset, text, want) for offset, (name, text, want) in enumerate(CASES[: sum(map(len, RIGHT.values()))]) if name == column
    ]
    assert cases
    wrong = {
        (format_, short(text)): (want, result)
        for offset, text, want in cases
        for format_, result in landed[offset].items()
        if not is_wanted(result, want)
    }
    assert wrong == {}


@pytest.mark.spark
@pytest.mark.parametrize("finding", FINDINGS)
def test_what_a_finding_names_is_right(finding: str, landed: Sequence[Mapping[str, Any]]) -> None:
    cases = [(column, text) for column, texts in FINDINGS[finding].items() for text in texts]
    wrong = {
        (format_, short(text)): (want, result)
        for offset, (column, text, want) in enumerate(CASES)
        if (column, text) in cases and offset >= sum(map(len, RIGHT.values()))
        for format_, result in landed[offset].items()
        if not is_wanted(result, want)
    }
    assert wrong == {}


@pytest.mark.spark
@pytest.mark.parametrize("group", range(len(MERGED)), ids=[f"{column} {short(next(iter(texts)))}" for column, texts in MERGED])
def test_keys_are_one_row_only_if_they_are_equal(group: int, outcomes: Mapping[str, Outcome]) -> None:
    column, texts = MERGED[group]
    rows = [row for row in outcomes["merged"].rows if row["group"] == group]
    groups = {message.offset: json.loads(message.value or b"")["group"] for message in keyed_messages()}
    assert {row["batch"] for row in rows} == {2}
    assert Counter(exact(row[column]) for row in rows) == Counter({exact(key) for key in texts.values() if key != BAD})
    assert [groups[row["offset"]] for row in outcomes["merged"].bad].count(group) == 2 * [*texts.values()].count(BAD)


@pytest.mark.parametrize("type_", ["map<int,string>", "array<map<date,string>>", "struct<a map<decimal(3,1),int>>"])
@pytest.mark.parametrize("format_", ["json", "debezium_json"])
def test_a_map_whose_keys_json_cannot_have_is_refused(type_: str, format_: str, lake: Path) -> None:
    spec = f'topic: t\nvalue: {format_}\ncolumns: {{m: "{type_}"}}\n---\npipeline: t\nfrom: {{topic: t}}\ninto: {{table: n.t}}\n'
    with pytest.raises(SpecError):
        plan_for(lake, "127.0.0.1:1", spec)


@pytest.mark.spark
def test_a_text_that_is_too_long_for_a_partition_is_a_bad_row(spark: SparkSession, lake: Path) -> None:
    spec = 'topic: t\nvalue: json\ncolumns: {id: int, text: string, "äb": string}\n---\npipeline: t\nfrom: {topic: t}\n'
    into = f'into: {{table: n{uuid.uuid4().hex[:10]}.t, partition_by: [text, "truncate(100, äb)"]}}\n'
    plan = plan_for(lake, "127.0.0.1:1", spec + into)
    fit = [("a", "b"), ("x" * 250, ""), ("é" * 41, "é" * 40), ("", "z" * 300)]
    texts = [*fit, ("x" * 251, "y"), ("é" * 42, ""), ("", "é" * 41), ("/" * 300, "z" * 300)]
    values = [
        json.dumps({"id": offset, "text": text, "äb": other_text}).encode() for offset, (text, other_text) in enumerate(texts)
    ]
    messages = [
        Message(batch=1, topic="t", partition=0, offset=offset, timestamp=START, value=value)
        for offset, value in enumerate(values)
    ]
    outcome = Trials(spark, plan).run(plan.pipelines[0], example(messages))
    assert outcome.error is None
    assert sorted(row["id"] for row in outcome.rows) == [0, 1, 2, 3]
    assert [row["code"] for row in outcome.bad] == ["partition_too_long"] * 4
    assert "`text` is too long for a partition" in outcome.bad[0]["message"]


@pytest.mark.spark
def test_bytes_are_named_in_base64_as_a_partition(spark: SparkSession, lake: Path) -> None:
    spec = "topic: t\nvalue: json\ncolumns: {id: int, raw: binary}\n---\npipeline: t\nfrom: {topic: t}\n"
    plan = plan_for(lake, "127.0.0.1:1", f"{spec}into: {{table: n{uuid.uuid4().hex[:10]}.t, partition_by: [raw]}}\n")
    raws = [b"", bytes(84), b"\xff" * 60, bytes(183), bytes(186), b"\xff" * 186]
    values = [json.dumps({"id": offset, "raw": b64encode(raw).decode()}).encode() for offset, raw in enumerate(raws)]
    messages = [
        Message(batch=1, topic="t", partition=0, offset=offset, timestamp=START, value=value)
        for offset, value in enumerate(values)
    ]
    outcome = Trials(spark, plan).run(plan.pipelines[0], example(messages))
    assert outcome.error is None
    assert sorted(row["id"] for row in outcome.rows) == [0, 1, 2, 3, 4]
    assert [(row["offset"], row["code"]) for row in outcome.bad] == [(5, "partition_too_long")]


@pytest.mark.spark
@pytest.mark.parametrize(
    "case", [("number", '2, "number": "x"'), ("number", "9" * 1001), ("counts", '{"' + "k" * 60_000 + '": 1}')], ids=short
)
def test_json_is_not_called_no_json(case: tuple[str, str], outcomes: Mapping[str, Outcome]) -> None:
    offset = [(column, text) for column, text, _ in CASES].index(case)
    assert [
        row["message"] for row in outcomes["plain"].bad if row["offset"] == offset and row["message"] == "the value is not JSON"
    ] == []
