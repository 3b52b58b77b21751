"""Hints of expressions, obeyed: the corrected expression gives what the author meant, on Spark itself."""

from __future__ import annotations

import decimal
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from framework.base import type_text, types as types_
from framework.sql.expressions import ExpressionError, check, guarded
from framework.sql.reserved import words
from tests.support import judged_hints
from tests.support.sql_columns import MORE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {**MORE_COLUMNS, "y": type_text.parse("string"), "end": type_text.parse("string")}
BAD = "a bad row"
ROWS = """
SELECT '1000' AS s, '7' AS r, 2.5D AS n, 3 AS i, true AS a, true AS b, DATE'2026-01-05' AS d, TIMESTAMP'2026-01-05 10:00:00' AS t,
       array('a', '3') AS list, map('a', 1, '3', 5) AS codes, named_struct('building', 'A', 'floor', 1) AS place, 1700000000L AS l,
       TIMESTAMP_NTZ'2026-01-05 10:00:00' AS u, 1.50BD AS p, X'31' AS raw, array(1, 3) AS ints, '{"a": "x"}' AS y, '900' AS `end`
UNION ALL
SELECT '50', '1000', -7.5D, 0, false, false, DATE'2025-12-31', TIMESTAMP'2023-11-14 22:13:20',
       array('b'), map('b', 2), named_struct('building', 'B', 'floor', 2), 1800000000L,
       TIMESTAMP_NTZ'2025-12-31 00:00:00', -2.75BD, X'61', array(7), 'true', '80'
"""


@dataclass(frozen=True)
class Obeyed:
    """A refused expression, its part to replace, the replacement of the hint, and the values for the two rows. The hint for
    a word of another dialect has examples in place of the author's columns: `quoted` is such an example."""

    text: str
    part: str
    replacement: str
    values: tuple[Any, Any]
    quoted: str = ""

    @property
    def corrected(self) -> str:
        corrected, times = re.subn(rf"(?<!\w){re.escape(self.part)}(?!\w)", lambda _: self.replacement, self.text)
        assert times == 1, self
        return corrected


def whole(text: str, replacement: str, first_value: Any, second_value: Any, quoted: str = "") -> Obeyed:
    return Obeyed(text, text, replacement, (first_value, second_value), quoted)


def part(text: str, part: str, replacement: str, first_value: Any, second_value: Any, quoted: str = "") -> Obeyed:
    return Obeyed(text, part, replacement, (first_value, second_value), quoted)


OBEYED = [
    # Numbers in texts are compared as numbers: '1000' is more than 400, and '50' is not.
    whole("s > 400", "cast(s as double) > 400", True, False),
    whole("400 <= s", "400 <= cast(s as double)", True, False),
    whole("s < 400.5", "cast(s as double) < 400.5", False, True),
    whole("s > i", "cast(s as double) > i", True, True),
    whole("l > s", "l > cast(s as bigint)", True, True),
    whole("s > p", "cast(s as double) > p", True, True),
    whole("lower(s) > 400", "cast(lower(s) as double) > 400", True, False),
    whole("s || '0' > 1000", "cast(s || '0' as double) > 1000", True, False),
    whole("`end` > 100", "cast(`end` as double) > 100", True, False),
    part("s between 100 and 5000", "s", "cast(s as double)", True, False),
    part("greatest(s, 400) = 1000", "s", "cast(s as double)", True, False),
    whole("s = 50", "s = '50'", False, True),
    whole("s = 50", "cast(s as double) = 50", False, True),
    whole("s <> 50", "s <> '50'", True, False),
    part("s in (50, 60)", "s", "cast(s as double)", False, True),
    part("s in (50)", "50", "'50'", False, True),
    whole("s > d", "cast(s as date) > d", False, BAD),
    whole("t = s", "t = cast(s as timestamp)", False, BAD),
    whole("b = y", "b = cast(y as boolean)", BAD, False),
    # A text stays a text where texts are chosen.
    part("coalesce(s, 0)", "0", "'0'", "1000", "50"),
    part("coalesce(s, 0)", "s", "cast(s as double)", 1000.0, 50.0),
    part("coalesce(s, i)", "i", "cast(i as string)", "1000", "50"),
    part("case when b then 1 else 'a' end", "1", "'1'", "1", "a"),
    part("if(b, i, 'a')", "i", "cast(i as string)", "3", "a"),
    # A literal text next to a number is a number.
    part("l = '5.0'", "'5.0'", "5.0", False, False),
    part("n > '1_000'", "'1_000'", "1000", False, False),
    part("l > '1,750,000,000'", "'1,750,000,000'", "1750000000", False, True),
    part("greatest(n, '1')", "'1'", "1", 2.5, 1.0),
    part("n + '5'", "'5'", "5", 7.5, -2.5),
    part("d > '20260101'", "'20260101'", "date'2026-01-01'", True, False),
    # Truth, times, intervals, lists and structs.
    whole("b = 1", "b = true", True, False),
    whole("b <> 1", "b <> true", False, True),
    whole("b = 0", "b = false", False, True),
    part("b = i", "i", "cast(i as boolean)", True, True),
    part("coalesce(b, 0)", "0", "false", True, False),
    part("t > 1750000000", "1750000000", "timestamp_seconds(1750000000)", True, False),
    part("t > 1750000000000", "1750000000000", "timestamp_millis(1750000000000)", True, False),
    part("t >= l", "l", "timestamp_seconds(l)", True, False),
    part("d > 20260101", "20260101", "date'2026-01-01'", True, False),
    part("d - date'2026-01-01' > 3", "3", "interval 3 days", True, False),
    part("t - timestamp'2026-01-05 09:00:00' > 60", "60", "interval 60 minutes", False, False),
    whole("list = 'a'", "array_contains(list, 'a')", True, False),
    whole("list <> 'a'", "not array_contains(list, 'a')", False, True),
    whole("list = 3", "array_contains(list, '3')", True, False),
    whole("ints = r", "array_contains(ints, cast(r as int))", False, False),
    part("place = 'A'", "place", "place.building", True, False),
    part("place = 1", "place", "place.floor", True, False),
    part("concat(list, 'c')", "'c'", "array('c')", ["a", "3", "c"], ["b", "c"]),
    part("coalesce(list, 'c')", "'c'", "array('c')", ["a", "3"], ["b"]),
    part("raw = 1", "raw = 1", "cast(raw as string) = '1'", True, False, quoted="cast(raw as string)"),
    # Arithmetic.
    whole("s + 1", "cast(s as double) + 1", 1001.0, 51.0),
    whole("s + 1", "s || 1", "10001", "501"),
    whole("s + r", "cast(s as double) + cast(r as double)", 1007.0, 1050.0),
    whole("s + r", "s || r", "10007", "501000"),
    whole("s * i", "cast(s as double) * i", 3000.0, 0.0),
    whole("mod(s, 7)", "cast(s as double) % 7", 6.0, 1.0),
    whole("-s", "-cast(s as double)", -1000.0, -50.0),
    part("n + ' EUR'", "n + ' EUR'", "n || ' EUR'", "2.5 EUR", "-7.5 EUR"),
    part("b + i", "b", "cast(b as int)", 4, 0),
    part("list + 1", "list", "size(list)", 3, 2),
    whole("n div 2", "cast(n / 2 as bigint)", 1, -3),
    whole("n ^ 2", "pow(n, 2)", 6.25, 56.25),
    part("n << 1", "n", "cast(n as bigint)", 4, -14),
    whole("a & b", "a and b", True, False),
    whole("a | b", "a or b", True, False),
    whole("~b", "not b", False, True),
    # Parts.
    whole("codes.a", "codes['a']", 1, None),
    whole("codes[3]", "codes['3']", 5, None),
    part("codes[i]", "i", "cast(i as string)", 5, None),
    whole("place['floor']", "place.floor", 1, 2),
    whole("y.a", "get_json_object(y, '$.a')", "x", None),
    whole("s[1]", "substring(s, 2, 1)", "0", "0"),
    whole("list['a']", "array_contains(list, 'a')", True, False),
    part("list[l - 1699999999]", "l - 1699999999", "cast(l - 1699999999 as int)", "3", BAD),
    # Conditions and NULL.
    whole("s = null", "s is null", False, False),
    whole("s <> null", "s is not null", True, True),
    part("not i", "i", "i <> 0", False, True),
    part("not y", "y", "cast(y as boolean)", BAD, False),
    part("i like '3%'", "i", "cast(i as string)", True, False),
    part("n rlike '^2'", "n", "cast(n as string)", True, False),
    whole("s like r", "contains(s, r)", False, False),
    # Casts that do not exist.
    whole("cast(i as date)", "date_from_unix_date(i)", date(1970, 1, 4), date(1970, 1, 1)),
    whole("cast(l as date)", "cast(timestamp_seconds(l) as date)", date(2023, 11, 14), date(2027, 1, 15)),
    whole("cast(l as timestamp_ntz)", "cast(timestamp_seconds(l) as timestamp_ntz)",
          datetime(2023, 11, 14, 22, 13, 20), datetime(2027, 1, 15, 8, 0)),
    whole("cast(d as int)", "unix_date(d)", 20458, 20453),
    whole("cast(d as bigint)", "unix_timestamp(d)", 1767571200, 1767139200),
    whole("cast(u as bigint)", "unix_millis(cast(u as timestamp))", 1767607200000, 1767139200000),
    whole("cast(list as int)", "list[0]", "a", "b"),

    whole("cast(s as array<string>)", "split(s, ',')", ["1000"], ["50"]),
    part("cast(raw as int)", "raw", "cast(raw as string)", 1, BAD),
    whole("cast(list as array<decimal(10,2)>)", "transform(list, x -> cast(x as decimal(10,2)))", BAD, BAD),
    part("hour(l)", "l", "timestamp_seconds(l)", 22, 8),
    part("trunc(n)", "trunc(n)", "cast(n as bigint)", 2, -7),
    part("extract(hour from l)", "l", "cast(l as timestamp)", 22, 8),
    part("round(b)", "b", "cast(b as double)", 1.0, 0.0),
    # Functions of other dialects do what they do there.
    whole("t - timestamp'2026-01-01 00:00:00'", "timestampdiff(second, timestamp'2026-01-01 00:00:00', t)", 381600, -67225600,
          quoted="timestampdiff(second, a, b)"),
    whole("d - date'2026-01-01'", "datediff(d, date'2026-01-01')", 4, -1, quoted="datediff(b, a)"),
    whole("truncate(n)", "cast(n as bigint)", 2, -7),
    whole("truncate(p, 1)", "cast(p * 10 as bigint) / 10", 1.5, -2.7, quoted="cast(n * 100 as bigint) / 100"),
    whole("div0(n, i)", "if(i = 0, 0, n / i)", 2.5 / 3, 0.0),
    whole("lengthb(s)", "octet_length(s)", 4, 2, quoted="octet_length(s)"),
    whole("string_split(s || '.5', '.')", "split(s || '.5', '[.]')", ["1000", "5"], ["50", "5"], quoted="split(s, '[.]')"),
    whole("regexp_matches(s, '^5')", "s rlike '^5'", False, True, quoted="s rlike '[0-9]+'"),
    whole("to_decimal(s, 18, 2) > 400", "cast(s as decimal(18, 2)) > 400", True, False, quoted="cast(s as decimal(18, 2))"),
    whole("y ~* 'TRUE'", "y rlike '(?i)TRUE'", False, True, quoted="rlike '(?i)"),
    whole("s similar to '5%'", "s like '5%'", False, True, quoted="s like 'a%'"),
    whole("i // 2", "i div 2", 1, 0, quoted="i div 2"),
    whole("i ** 2", "pow(i, 2)", 9.0, 0.0, quoted="pow(n, 2)"),
]  # fmt: skip


def hint_of(text: str) -> str:
    with pytest.raises(ExpressionError) as error:
        check(text, COLUMNS)
    return error.value.hint


@pytest.mark.parametrize("case", OBEYED, ids=[f"{case.text} → {case.corrected}" for case in OBEYED])
def test_a_hint_names_sql_that_is_accepted_in_place_of_the_refused_part(case: Obeyed) -> None:
    hint = hint_of(case.text)
    assert (case.quoted or case.replacement) in hint
    check(case.corrected, COLUMNS)


@pytest.mark.spark
def test_an_expression_corrected_by_its_hint_gives_the_rows_that_were_meant(spark: SparkSession) -> None:
    selected = []
    for number, case in enumerate(OBEYED):
        checked = guarded(check(case.corrected, COLUMNS))
        error = f"{checked.error} IS NOT NULL" if checked.error else "false"
        selected += [f"{checked.sql} AS v{number}", f"{error} AS e{number}"]
    rows = spark.sql(f"SELECT {', '.join(selected)} FROM ({ROWS}) ORDER BY s").collect()
    values = {
        f"{case.text} → {case.corrected}": tuple(BAD if row[f"e{number}"] else plain(row[f"v{number}"]) for row in rows)
        for number, case in enumerate(OBEYED)
    }
    assert values == {f"{case.text} → {case.corrected}": case.values for case in OBEYED}


def plain(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value


def test_each_cast_that_there_is_not_has_a_hint_that_gives_the_type() -> None:
    """Each expression in backquotes is accepted; one of them has the wanted type, or is a part of the value."""
    names = ["boolean", "int", "bigint", "double", "decimal(10,2)", "string", "binary", "date", "timestamp", "timestamp_ntz"]
    names += ["array<int>", "array<string>", "map<string,int>", "struct<a:int>"]
    columns = {f"c{number}": type_text.parse(name) for number, name in enumerate(names)}
    refused_casts = 0
    for (column, source), name in itertools.product(columns.items(), names):
        hint = refusal(f"cast({column} as {name})", columns)
        refused_casts += bool(hint)
        types = {check(code, columns).type for code in re.findall(r"`([^`]+)`", hint) if "(x" not in code}
        whole_value = isinstance(source, types_.Atom | types_.Decimal)
        none_is_there = re.search(r"there is no|has no parts|for (milli)?seconds|is not null", hint)
        assert not hint or not whole_value or none_is_there or type_text.parse(name) in types, (str(source), name, hint)
    assert refused_casts > 50


def refusal(text: str, columns: Mapping[str, types_.Type]) -> str:
    """Returns the hint, or an empty text if the expression is accepted."""
    try:
        check(text, columns)
    except ExpressionError as error:
        return error.hint
    return ""


WORDS = words("""
    a all and array as at bigint boolean by cast count date days decimal distinct double escape for from here in int interval is it its json
    like map minutes months not null numbers of on or place seconds string such text texts that the then timestamp to true false try_cast
    with write
""")


EXAMPLES = (
    "did you mean", "for example", "give it a type", "write `'a map", "write `like 'a/%'", "write a day that exists", "write a time that",
    "write it in single quotes", "write the number itself", "write when it is so", "write `derive: {",
)  # fmt: skip
"""Hints that show the form of what the author has to write: test_obeyed_hints.py judges that it is accepted."""


def shape(hint: str) -> str:
    """Returns a hint without the author's own names and values."""

    def plain_sql(match: re.Match[str]) -> str:
        text = re.sub(r"'[^']*'", "'s'", match[0])
        text = re.sub(r"(?<![\w'])-?\d+(\.\d+)?", "1", text)
        text = re.sub(r"<>|<=>|[<>]=?|(?<= )=(?= )", "=", text)
        return re.sub(r"[A-Za-z_][\w.]*(?!\w*\()", lambda word: word[0] if word[0] in WORDS else "c", text)

    return re.sub(r"`[^`]*`", plain_sql, hint)


def test_each_hint_of_types_in_a_case_has_a_judged_value() -> None:
    """Each `sql-type` hint in a case resembles one in OBEYED, whose value Spark computes, or leaves the choice to a person."""
    shapes = {shape(hint_of(case.text)) for case in OBEYED}
    texts = [path.read_text(encoding="utf-8") for path in judged_hints.CASES]
    hints = {match[1] for text in texts for match in re.finditer(r": sql-type: .*\n  hint: (.*)$", text, re.MULTILINE)}
    other_hints = {hint for hint in hints if shape(hint) not in shapes and not hint.startswith(EXAMPLES)}
    assert sorted(hint for hint in other_hints if not judged_hints.is_judged(hint)) == []
