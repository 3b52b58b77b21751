"""Values of JSON, in messages, Debezium's envelopes and keys: each lands to the last digit, or its message is a bad row.

`FINDINGS` has values that were wrong before Sluice had its own decoders, by the kind of error.
"""

from __future__ import annotations

import base64
import json
import struct
import uuid
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SpecError, Where
from framework.operations.trials.trial import Outcome, Trials
from framework.plan import Message, Pipeline, SpecTest
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 5, tzinfo=timezone.utc)
D = Decimal
_DIGITS = Context(prec=80)


@dataclass(frozen=True)
class Bad:
    """Stands for the expected bad row of a message."""


@dataclass(frozen=True)
class Either:
    """The value itself or a bad row: the decoder may choose, but nothing else may land."""

    value: Any


BAD = Bad()
COLUMNS = {
    "sum": '"decimal(38,27)"', "whole": '"decimal(38,0)"', "price": '"decimal(10,2)"', "part": '"decimal(38,38)"',
    "connect": '{type: "decimal(10,2)", format: base64}', "connect38": '{type: "decimal(38,9)", format: base64}',
    "text": "string", "tiny": "tinyint", "small": "smallint", "number": "int", "big": "bigint", "real": "float", "wide": "double",
    "flag": "boolean", "raw": "binary", "day": "date", "at": "timestamp", "local": "timestamp_ntz",
    "millis": "{type: timestamp, format: epoch_millis}", "micros": "{type: timestamp, format: epoch_micros}",
    "days": "{type: date, format: epoch_days}", "texts": "array<string>", "tinies": "array<tinyint>", "reals": "array<float>",
    "dates": "array<date>", "sums": '"array<decimal(38,27)>"', "counts": '"map<string,string>"', "prices": '"map<string,decimal(10,2)>"',
    "times": '"map<string,timestamp>"', "maps": '"array<map<string,int>>"',
    "place": '"struct<d decimal(10,2), t string, at timestamp_ntz, m map<string,int>, in struct<n int>>"',
}  # fmt: skip
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


def nearest(number: float) -> float:
    """Returns the nearest float of 32 bits."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def connect(number: int, size: int | None = None) -> str:
    """Returns a decimal's unscaled number as Connect's converter writes it."""
    return '"' + base64.b64encode(number.to_bytes(size or number.bit_length() // 8 + 1, "big", signed=True)).decode() + '"'


def bad(*texts: str | bytes) -> dict[str | bytes, Any]:
    return dict.fromkeys(texts, BAD)


def same(*texts: str) -> dict[str | bytes, Any]:
    """Returns cases for texts that land unchanged."""
    return {text: text for text in texts}


def place(**fields: Any) -> dict[str, Any]:
    return {**dict.fromkeys(("d", "t", "at", "m", "in")), **fields}


ROCKET = "\U0001f680"
FIRST_MILLI, LAST_MILLI = -62135596800000, 253402300799999
MOST_38 = 10**38 - 1

RIGHT: dict[str, dict[str | bytes, Any]] = {
    "sum": {
        "1.000000000000000000000000001": D("1.000000000000000000000000001"), "1e-27": D("1e-27"), "1E10": D("1E10"),
        "99999999999.999999999999999999999999999": D("99999999999.999999999999999999999999999"),
        "0e999999999": D(0), "0e-400": D(0), "0.1e1": D(1), "0.3": D("0.3"), "3e-1": D("0.3"), "1.0e-26": D("1e-26"), "null": None,
        **bad("99999999999.9999999999999999999999999999", "1E11", "1e400", "1e999999999"),
    },
    "whole": {
        "99999999999999999999999999999999999999": D(MOST_38), "-99999999999999999999999999999999999999": D(-MOST_38),
        "9007199254740993": D(9007199254740993), "9223372036854775808": D(2**63), "1e20": D("1e20"), "1e37": D("1e37"),
        "-0": D(0), "-0.0": D(0), "0.1e1": D(1), "10e-1": D(1),
        **bad("100000000000000000000000000000000000000", "-100000000000000000000000000000000000000", "1e38", "NaN", '"NaN"', "Infinity",
              "123456789012345678901234567890123456789", '"1"', '""', "true", "{}", "[]", "01", "+1", ".5", "1.", "1e", "0x10", "1_0"),
    },
    "price": {
        "1.2345e2": D("123.45"),
        "1.23": D("1.23"), "1.230": D("1.23"), "1." + "10" + "0" * 60: D("1.1"), "99999999.99": D("99999999.99"), "1.23e2": D(123),
        "123e-2": D("1.23"), "1e+00000002": D(100), "0.0e-5": D(0), "-0e5": D(0), "100000000e-1": D("1e7"), "0.1e-1": D("0.01"),
        "1" + "0" * 60 + "e-60": D(1), "0." + "0" * 60 + "1e61": D(1), **bad("99999999.995", "100000000", "99999999.995e0"),
    },
    "part": {
        "0.12345678901234567890123456789012345678": D("0.12345678901234567890123456789012345678"), "1e-38": D("1e-38"),
        "0.99999999999999999999999999999999999999": D("0.99999999999999999999999999999999999999"), "-1e-38": D("-1e-38"),
        **bad("1", "-1", "0.999999999999999999999999999999999999999"),
    },
    "connect": {
        connect(12345): D("123.45"), connect(-1): D("-0.01"), connect(0): D(0), connect(10**10 - 1): D("99999999.99"),
        '"\\u004dDk="': D("123.45"), '"+/8="': D("-10.25"), '"AA"': Either(D(0)), '"MDk"': Either(D("123.45")), "1.23": D("1.23"),
        "123e-2": D("1.23"), connect(1, 17): Either(D("0.01")), connect(-1, 17): Either(D("-0.01")), '"MD\\nk="': Either(D("123.45")),
        **bad(connect(10**10), connect(-(10**10)), '""', '"?"', '"A"', '"="', '"=="', '"MDk=MDk="', '"-_8="', "true"),
    },
    "connect38": {
        connect(MOST_38): D(f"{'9' * 29}.{'9' * 9}"), connect(-MOST_38): D(f"-{'9' * 29}.{'9' * 9}"),
        **{connect(number): D(number).scaleb(-9) for number in (2**63, -(2**63) - 1, 2**64, -(2**64))},
        "12345678901234567890.123456789": D("12345678901234567890.123456789"), "1.5e1": D(15),
        **bad(connect(10**38), connect(-(10**38)), connect(2**127 - 1), connect(-(2**127)), connect(2**200)),
    },
    "text": {
        **same("17", "-1", "0", "0.1", "1.0", "0.0", "-0.0", "1234567.0", "123456789012345678901234567890", "true", "false", "[]", "{}"),
        **same("[null]", '{"b":1,"a":2}', '{"a":1,"a":2}', "[123456789012345678901234567890]", '{"a":"b\\"c"}', "[1,2]"),
        "null": None, '""': "", '" "': " ", '"  x  "': "  x  ", '"null"': "null",
        '"\\ud83d\\ude80"': ROCKET, '"\\uD83D\\uDE80"': ROCKET, f'"{ROCKET}"': ROCKET, '"\\ud800\\udc00"': "\U00010000",
        '"\\udbff\\udfff"': "\U0010ffff", '"\U0010ffff"': "\U0010ffff", '"\\\\ud800"': "\\ud800", '"\\ufdd0"': "\ufdd0",
        '"\\u0000"': "\0", '"a\\u0000b"': "a\0b", '"\\u00e9"': "\u00e9", '"\u00e9"': "\u00e9", '"e\u0301"': "e\u0301",
        '"\u2028"': "\u2028", '"\\u2028\\u2029"': "\u2028\u2029", '"\ufeffx"': "\ufeffx", '"\ufffd"': "\ufffd", '"\\ufffd"': "\ufffd",
        '"\uffff"': "\uffff", '"\x7f\x85"': "\x7f\x85", '"\\u0085\\u00a0\\u200b\\u202e"': "\x85\xa0\u200b\u202e",
        '"\\b\\f\\n\\r\\t\\/\\\\\\""': '\b\f\n\r\t/\\"', '"' + "x" * 1_000_000 + '"': "x" * 1_000_000,
        "[" * 400 + "]" * 400: Either("[" * 400 + "]" * 400), "[" * 1200 + "]" * 1200: Either("[" * 1200 + "]" * 1200),
        "9" * 900: Either("9" * 900), "9" * 1001: Either("9" * 1001),
        '1, "text": 2': "2", '"a", "text": null': None, 'null, "text": "a"': "a", '"a", "te\\u0078t": "b"': "b", '"a", "Text": "b"': "a",
        **bad('"\\x41"', '"\\u12"', '"\\u12G4"', "'a'", b'"a\nb"', b'"a\tb"', b'"\0"', "True", "undefined", "NaN", "-Infinity", "[1,]",
              '{"a":}', "01", "[01]", "[NaN]", "1 2", '"a" "b"', b'"\xed\xa0\x80"', b'"\xed\xa0\xbd\xed\xba\x80"', b'"\xc0\x80"',
              b'"\xf4\x90\x80\x80"', b'"\xe9"', b'"\xc3"'),
    },
    "tiny": {"127": 127, "-128": -128, "-0": 0, **bad("-129", "256", "1.0", "1e1", '"1"')},
    "small": {"32767": 32767, "-32768": -32768, **bad("32768", "40000", "65535", "-32769")},
    "number": {
        "2147483647": 2147483647, "-2147483648": -2147483648, "-0": 0, "null": None, '1, "number": 2': 2,
        '"x", "number": 2': Either(2), '1.5, "number": 2': Either(2),
        **bad("2147483648", "4294967295", "4294967296", "-2147483649", "18446744073709551617", "9" * 900, "9" * 1001, "1.0", "-0.0",
              "1.9", "1e0", '"1"', '""', "true", "[1]", "{}", "tru", "nul", "Null", "+5", "--5", "- 5", "5.", "5L", "00", "-01", "\u0665",
              "1 /* x */", "1 # x", "1 // x", '1 "big": 2', '1,, "big": 2', '2, "number": "x"'),
    },
    "big": {
        "9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63), "9007199254740993": 9007199254740993,
        '1, "big": 2': 2, '1, "big": null': None, '1, "b\\u0069g": 2': 2,
        **bad("9223372036854775808", "-9223372036854775809", "18446744073709551616", "9007199254740993.0", "1e18", '"5"', "false"),
    },
    "real": {
        "0.1": nearest(0.1), "16777217": 16777216.0, "3.4028235e38": nearest(3.4028235e38), "1e-45": nearest(1e-45), "-0.0": -0.0,
        "1.00000017881393432617187499": nearest(1.0000001), "1e-46": 0.0, "1e-400": 0.0,
        **bad("3.4028236e38", "1e39", "-1e39", "1e300", "1e400", "340282356779733661637539395458142568448", '"1.5"', "NaN", '"NaN"',
              '"-INF"', "true"),
    },
    "wide": {
        "0.1": 0.1, "0.30000000000000004": 0.30000000000000004, "-0.0": -0.0, "1e5": 100000.0, "9007199254740993": 9007199254740992.0,
        "1.7976931348623157e308": 1.7976931348623157e308, "4.9e-324": 5e-324, "2.2250738585072011e-308": 2.225073858507201e-308,
        "2.4703282292062328e-324": 5e-324, "1e-400": 0.0, "-1e-400": -0.0, "0e999999999": 0.0, "1e00000000000000000001": 10.0,
        "1" + "0" * 308: 1e308, "0." + "0" * 400 + "1e401": 1.0,
        **bad("1.7976931348623159e308", "1e309", "-1e309", "9" * 400, "1e99999999999999999999", '"1"', '"NaN"', '"Infinity"', '"+INF"',
              '"-INF"', "-NaN", "-Infinity", '""', "true", "[1.5]"),
    },
    "flag": {
        "true": True, "false": False, "null": None, 'true, "flag": null': None, 'null, "flag": true': True,
        **bad('"true"', '"false"', '"yes"', '"1"', '""', "1", "0", "1.0", "TRUE", "tru", "truee", "[]"),
    },
    "raw": {
        '"YWI="': b"ab", '""': b"", '"+/8="': b"\xfb\xff", '"AAAA"': bytes(3), '"\\u0059WI="': b"ab", "null": None, '"YWI"': Either(b"ab"),
        '"YWI=\\n"': Either(b"ab"), '"YW\\nI="': Either(b"ab"), '"YWJ="': Either(b"ab"),
        **bad('"-_8="', '"YWI=="', '"YQ="', '"Y"', '"?"', '"===="', '"YWI=x"', '"\u00e9"', "5", "1.5", "true", "{}", "[1]"),
    },
    "day": {
        **{f'"{text}"': text for text in ("2026-01-05", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "1582-10-10")},
        **bad('"2026-02-30"', '"2026-02-29"', '"1900-02-29"', '"1500-02-29"', '"10000-01-01"', '"-0001-01-01"', '"2026-13-01"',
              '"2026-00-01"', '"2026-01-00"', '"2026-04-31"', '"2026-1-5"', '"2026-01-05T00:00:00"', '"2026-01-05Z"', '" 2026-01-05"',
              '"2026-01-05 "', '"20260105"', '"2026-W01-1"', '"2026-01"', '""', "20454", '"epoch"', '"today"', '"\u0662026-01-05"'),
    },
    "at": {
        **dict.fromkeys(('"2026-01-05T10:00:00Z"', '"2026-01-05T10:00:00"', '"2026-01-05 10:00"', '"2026-01-05T10:00:00-00:00"',
                         '"2026-01-05T11:00:00+01:00"', '"2026-01-05T11:00:00+0100"', '"2026-01-05T11:00:00+01"',
                         '"2026-01-05T11:00:00 +01:00"', '"2026-01-05T09:30:00-00:30"', '"2026-01-05T08:30:00-01:30"',
                         '"2026-01-05T15:30:15+05:30:15"', '"2026-01-06T04:00:00+18:00"', '"2026-01-04T16:00:00-18:00"'),
                        "2026-01-05T10:00:00+00:00"),
        **dict.fromkeys(('"2026-01-05T10:00:00z"', '"2026-01-05t10:00:00Z"', '"2026-01-05T10:00:00UTC"', '"2026-01-05T11:00:00 GMT+1"',
                         '"2026-01-05T09:00:00 Etc/GMT+1"', '"2026-01-05T11:00:00 Europe/Berlin"', '"2026-01-05T11:00:00[Europe/Berlin]"'),
                        Either("2026-01-05T10:00:00+00:00")),
        '"2026-01-05T00:00:00Z"': "2026-01-05T00:00:00+00:00", '"2026-01-05T23:59:59.999999Z"': "2026-01-05T23:59:59.999999+00:00",
        '"1969-12-31T23:59:59.999999Z"': "1969-12-31T23:59:59.999999+00:00", '"2026-03-29T02:30:00"': "2026-03-29T02:30:00+00:00",
        '"0001-01-01T00:00:00Z"': "0001-01-01T00:00:00+00:00", '"1582-10-10T00:00:00Z"': "1582-10-10T00:00:00+00:00",
        '"9999-12-31T23:59:59.999999Z"': "9999-12-31T23:59:59.999999+00:00",
        # Fractions finer than a microsecond are cut off, not rounded.
        '"2026-01-05T10:00:00.123456789Z"': "2026-01-05T10:00:00.123456+00:00",
        '"2026-12-31T23:59:59.9999999Z"': "2026-12-31T23:59:59.999999+00:00",
        '"1969-12-31T23:59:59.9999999Z"': "1969-12-31T23:59:59.999999+00:00",
        '"9999-12-31T23:59:59.9999999Z"': "9999-12-31T23:59:59.999999+00:00",
        '"2026-01-05T10:00:00Z", "at": "2026-01-06T10:00:00Z"': "2026-01-06T10:00:00+00:00", "null": None,
        **bad(*(f'"2026-01-05T{text}"' for text in (
            "24:00:00Z", "23:59:60Z", "10:60:00Z", "25:00:00Z", "", "10Z", "1:00:00Z", "-1:00:00Z", "+1:00:00Z", " :00:00Z", "10:-5:00Z",
            "10:00:-5Z", "10:00:", "10::00", "10:00:000", "10:00:00:00Z", "10:00:00.-1Z", "10:00:00.5.5Z", "10:00:00.12 34Z",
            "10:00:00ZZ", "10:00:00Z+01:00", "10:00:00+01:00Z", "10:00:00+-01:00", "10:00:00-01:-30", "10:00:00-", "10:00:00+",
            "10:00:00+18:01", "10:00:00+24:00", "10:00:00+01:60", "10:00:00\u221201:00", "10:00:00\u00a0Z", "10:00:00 PM", "10:00:00A",
            "10:00:00 XYZ", "10:00:00 GMT+25", "10:00:00europe/berlin", "10:00:00 ../../etc/passwd"))),
        **bad(*(f'"{text}"' for text in (
            "2016-12-31T23:59:60Z", "9999-12-31T23:59:60Z", "2026-02-30T10:00:00Z", "2026-02-29T00:00:00Z", "1500-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-05", "2026-1-05T10:00:00Z", "26-01-05T10:00:00Z",
            "-026-01-05T10:00:00Z", "+026-01-05T10:00:00Z", "+12026-01-05T10:00:00Z", "2026-01-05  10:00:00", "20260105T100000Z",
            "2026-005T10:00:00Z", " 2026-01-05T10:00:00Z", "\u0662026-01-05T10:00:00Z", "", "now", "epoch"))),
        **bad("1767607200000", "true"),
    },
    "local": {
        **{f'"{text}"': text for text in ("2026-01-05T10:00:00", "2026-03-29T02:30:00", "0001-01-01T00:00:00")},
        '"9999-12-31T23:59:59.999999"': "9999-12-31T23:59:59.999999", '"2026-01-05T10:00:00.123456789"': "2026-01-05T10:00:00.123456",
        '"2026-01-05 10:00"': "2026-01-05T10:00:00",
        **bad('"2026-01-05T24:00:00"', '"2026-01-05T23:59:60"', '"2026-02-30T00:00:00"', '"2026-01-05T10:00:00 junk"', "1767607200000"),
    },
    "millis": {
        str(FIRST_MILLI): "0001-01-01T00:00:00+00:00", str(LAST_MILLI): "9999-12-31T23:59:59.999000+00:00", "null": None,
        "-1": "1969-12-31T23:59:59.999000+00:00", "-0": "1970-01-01T00:00:00+00:00",
        **bad(str(FIRST_MILLI - 1), str(LAST_MILLI + 1), str(2**63 - 1), str(2**63), str(-(2**63)), str(2**64), "1.0", "1e3", "0.5", '"0"',
              '""', "true", '"2026-01-05T10:00:00Z"'),
    },
    "micros": {
        str(FIRST_MILLI * 1000): "0001-01-01T00:00:00+00:00", str(LAST_MILLI * 1000 + 999): "9999-12-31T23:59:59.999999+00:00",
        "-1": "1969-12-31T23:59:59.999999+00:00",
        **bad(str(FIRST_MILLI * 1000 - 1), str(LAST_MILLI * 1000 + 1000), str(2**63 - 1), str(-(2**63)), "1.5"),
    },
    "days": {
        "-719162": "0001-01-01", "2932896": "9999-12-31", "-1": "1969-12-31", "-0": "1970-01-01", "null": None,
        **bad("-719163", "2932897", "2147483648", "4294967296", str(2**63 - 1), "1.0", "1e2", '"1"', '"2026-01-05"'),
    },
    "texts": {"[]": [], "[1,null]": ["1", None], "null": None, '["\\ud83d\\ude80"]': [ROCKET], **bad('"a"', "{}", '["a",]', '["a" "b"]')},
    "tinies": {"[127,-128,null]": [127, -128, None], **bad("[1.0]", '["1"]')},
    "reals": {"[1,null,-0.0]": [1.0, None, -0.0], **bad("[1e400]", "[1e39]", '["NaN"]')},
    "dates": {'["2026-01-05", null]': ["2026-01-05", None], **bad('["2026-02-30"]', '["x"]')},
    "sums": {"[1,null]": [D(1), None], **bad('[1,"2"]')},
    "counts": {
        '{"a": 1, "b": "x", "c": null}': [("a", "1"), ("b", "x"), ("c", None)], '{"": "x"}': [("", "x")], "{}": [], "null": None,
        '{"\u00e9": 1, "e\u0301": 2}': [("\u00e9", "1"), ("e\u0301", "2")], '{"A": 1, "a": 2}': [("A", "1"), ("a", "2")],
        '{"a\\u0000": "x"}': [("a\0", "x")], '{"\\ud83d\\ude80": "x"}': [(ROCKET, "x")], '{"a": 1}, "counts": {"b": 2}': [("b", "2")],
        '{"' + "k" * 60_000 + '": 1}': Either([("k" * 60_000, "1")]), **bad("[]", '"x"', "{1: 2}", '{"a" 1}'),
    },
    "prices": {'{"a": 1.5, "b": null}': [("a", D("1.5")), ("b", None)], **bad('{"a": "1"}', '{"a": 100000000}')},
    "times": {'{"a": "2026-01-05T10:00:00Z", "b": null}': [("a", "2026-01-05T10:00:00+00:00"), ("b", None)], **bad('{"a": "x"}')},
    "maps": {
        '[{"a": 1}, {}, null]': [[("a", 1)], [], None], **bad('[{"a": "1"}]', '[{"a": 1.0}]', '[{"a": 2147483648}]', "[[]]", '{"a": 1}'),
    },
    "place": {
        "{}": place(), "null": None, '{"t": "a", "t": "b"}': place(t="b"), '{"t": "a", "t": null}': place(t=None), '{"T": "a"}': place(),
        '{"t": "a"}, "place": {"d": 1}': place(d=D(1)), '{"in": {"n": 1}, "in": {"n": null}}': place(**{"in": {"n": None}}),
        '{"in": {"n": null}, "in": null}': place(), **bad("[]", '""', '{"m": {"a": 1.0}}', '{"in": []}', '{"in": ""}', '{"in": {"n": ""}}'),
    },
}  # fmt: skip

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
CASES = [(column, text, want) for column, cases in RIGHT.items() for text, want in cases.items()]
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


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


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


def exact(value: Any) -> Any:
    """Returns a form that is equal only for the same value of the same type: 1 is not 1.0, True or "1", and 0.0 is not -0.0."""
    match value:
        case Bad():
            return value
        case Decimal():
            return repr(_DIGITS.normalize(_DIGITS.plus(value)))
        case datetime() | date():
            return repr(value.isoformat())
        case list():
            return [exact(item) for item in value]
        case tuple():
            return tuple(exact(item) for item in value)
        case dict():
            return {name: exact(item) for name, item in value.items()}
    return repr(value)


def is_wanted(result: Any, want: Any) -> bool:
    return result in (BAD, exact(want.value)) if isinstance(want, Either) else bool(result == exact(want))


def short(text: object) -> str:
    return ascii(text)[:60]


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
