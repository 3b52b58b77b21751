"""Every operator and function of the expression tables against Spark itself: type, value, and an error exactly where it throws.

Rows are drawn from each type's extremes. Spark's own TryEval (inside try_to_binary) says for every row whether the original
throws, so that one query answers for many expressions.
"""

from __future__ import annotations

import decimal
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from framework.base import types
from framework.sql import functions
from framework.sql.expressions import Checked, check, guarded
from framework.sql.select import select
from tests.support.expression_samples import COLUMNS, EDGES, TYPES, Sample, pairs, safe, samples, templates, variants
from tests.support.selection import few

pytestmark = pytest.mark.spark


MICROS = [
    0,
    1,
    -1,
    1767225600123456,
    951782400000000,
    -62135596800000000,
    253402300799999999,
    2**63 - 1,
    -(2**63),
    -9223372036854775000,
]
DAYS = [0, 1, -1, 20454, 11016, -719162, 2932896, 2**31 - 1, -(2**31), 106751991, 106751992, -106751991, -106751992]
WORDS = ["", "a", "B", "abc", "a,b,c", "  x y ", "ÄÖü", "日本語", "%_\\", "a\nb", "item-17-blue", "b"]
NUMBERS = [
    "1",
    " 2 ",
    "-5",
    "3.7",
    "1e3",
    "abc",
    "",
    "2147483648",
    "9223372036854775808",
    "true",
    "NaN",
    "2026-01-05",
    "2026-02-30",
]
NUMBERS += [
    "2026-01-05 10:00:00",
    "2026-01-05T10:00:00Z",
    "05/01/2026",
    "12:30",
    "+99999-01-01",
    "0",
    "f",
    "99999999999999999999.5",
]
VALUES: dict[str, list[Any]] = {
    "tinyint": [0, 1, -1, 2, 127, -128],
    "smallint": [0, 1, -1, 3, 32767, -32768, 100],
    "int": [0, 1, -1, 2, 3, 4, 12, 30, 31, 2026, 2024, 2**31 - 1, -(2**31)],
    "bigint": [
        0,
        1,
        -1,
        5,
        1767225600,
        2**31,
        2**63 - 1,
        -(2**63),
        9223372036854775,
        9223372036854776,
        9223372036854,
        9223372036855,
    ],
    "float": [0.0, -0.0, 1.5, -2.5, 3.4028235e38, float("nan"), float("inf"), float("-inf"), 1e-45],
    "double": [0.0, -0.0, 1.5, -2.5, 0.1, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), 9.3e18, 2147483648.0],
    "decimal(18,2)": [decimal.Decimal(v) for v in ("0", "1.50", "-2.55", "0.01", "9999999999999999.99", "-9999999999999999.99")],
    "decimal(38,10)": [
        decimal.Decimal(v) for v in ("0", "1.5", "-0.0000000001", "9" * 28 + ".9999999999", "-" + "9" * 28, "123456.789")
    ],
    "decimal(38,0)": [decimal.Decimal(v) for v in ("0", "1", "-7", "9" * 38, "-" + "9" * 38, "12345678901234567890")],
    "boolean": [True, False],
    "date": DAYS,
    "timestamp": MICROS,
    "timestamp_ntz": MICROS,
    "binary": [b"", b"abc", b"\xff\xfe", b"1"],
    "array<int>": [[], [1], [1, None, 3], [2**31 - 1, 5, 5, 2]],
    "array<string>": [[], ["a"], ["b", None, "a"], ["x", "abc"]],
    "array<array<int>>": [[], [[1]], [[1, 2], []], [[3], None]],
    "map<string,int>": [{}, {"a": 1}, {"b": 2, "abc": None}],
    "struct<building:string,floor:int>": [("A", 1), (None, 2**31 - 1), ("B", None)],
}
TEXTS = {"s": WORDS, "r": WORDS, "x": NUMBERS}


PIECES = r"""
a b - é . ^ $ \d \W \. \- \b [a-z] [^a-c\d_] [-a] [a-] [\].] [a-c-e] [+--] ( (?: ) | ? * + {2} {1,3} {2,} *?
{,2} [ ] (?i) \ { } \Q # && [a&&b]
"""

PARTS = r"""
yyyy yy uuuu MMMM MMM MM M dd d HH hh mm ss SSS S EEE E a XXX X 'T' '' - / : y D Q ww Z z VV SSSSSSSSS ddd [ ] {
# e L G
"""


def drawn(kind: str, name: str, draw: random.Random) -> Any:
    choices = TEXTS.get(name) or VALUES[kind]
    return None if draw.random() < 0.12 else draw.choice(choices)


@pytest.fixture(scope="module")
def rows(spark: Any) -> Any:
    """400 rows in which every type's extremes meet each other."""
    draw = random.Random(7)
    data = [tuple(drawn(kind, name, draw) for name, kind in COLUMNS.items()) for _ in range(400)]
    stored = {"date": "int", "timestamp": "bigint", "timestamp_ntz": "bigint"}
    schema = ", ".join(f"`{name}` {stored.get(kind, kind)}" for name, kind in COLUMNS.items())
    read = {
        "date": "date_from_unix_date({0})",
        "timestamp": "timestamp_micros({0})",
        "timestamp_ntz": "cast(timestamp_micros({0}) as timestamp_ntz)",
    }
    frame = spark.createDataFrame(data, schema).selectExpr(
        *(read.get(kind, "{0}").format(f"`{name}`") + f" AS `{name}`" for name, kind in COLUMNS.items())
    )
    return frame.localCheckpoint()


def test_every_function_has_a_sample() -> None:
    called = {
        name.lower()
        for template in [*templates(), *(edge_template for _, edge in EDGES.values() for edge_template in edge)]
        for name in re.findall(r"(\w+)\(", template)
    }
    assert called | functions.ALIASES.keys() | {name for name in functions.names() if " " in name} >= functions.names()


def test_types_are_those_of_spark(rows: Any) -> None:
    all_samples = samples()
    originals = analysed(rows, [sample.text for sample in all_samples])
    safe = analysed(rows, [sample.checked.sql for sample in all_samples])
    ours = [str(sample.checked.type) for sample in all_samples]
    texts = [sample.text for sample in all_samples]
    wrong = [row for row in zip(texts, ours, originals, safe, strict=True) if not row[1] == row[2] == row[3]]
    assert not wrong


def analysed(rows: Any, texts: list[str]) -> list[str]:
    """The type that Spark's analyser gives to each text, or why it refuses it."""
    try:
        schema = rows.selectExpr(*(f"{text} AS c{index}" for index, text in enumerate(texts))).schema
    except Exception as error:
        if len(texts) == 1:
            return [str(error)[:200]]
        half = len(texts) // 2
        return analysed(rows, texts[:half]) + analysed(rows, texts[half:])
    return [field.dataType.simpleString() for field in schema]


@pytest.mark.parametrize(
    ("nth", "compiled"), few([(12, True), (40, False), (80, False)], (80, False))
)  # every nth of the pairs of types, which are very many
def test_values_and_errors_are_those_of_spark(nth: int, compiled: bool, rows: Any, spark: Any) -> None:
    """Most of the time goes into what Spark compiles; `make test` has every eightieth pair, most of them interpreted."""
    often = set(pairs())
    chosen_samples = [
        sample for index, sample in enumerate(samples()) if index % (nth if sample.text in often else max(1, nth // 10)) == 0
    ]
    wrong = []
    # Shared parts would be computed before the TryEval that must catch what they throw.
    settings = {"spark.sql.subexpressionElimination.enabled": "false"}
    with configured(spark, settings):
        for batch in chunks([sample for sample in chosen_samples if compiled or JOINED.search(sample.text)], 25):
            wrong += compared(rows, batch)
    with configured(spark, {**settings, **INTERPRETED}):
        for batch in chunks([sample for sample in chosen_samples if not compiled and not JOINED.search(sample.text)], 25):
            wrong += compared(rows, batch)
    assert not wrong


JOINED = re.compile(r"\|\||concat\(")  # if it does not compile these, Spark computes even the parts behind a null
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextmanager
def configured(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.mark.parametrize("nth", few([1, 6]))
def test_safe_forms_survive_shared_parts_and_filters(nth: int, rows: Any) -> None:
    """Computes error and value side by side under Spark's usual optimizer, as an engine does."""
    safe_forms = [safe(text) for template in templates() for text in variants(template)]
    failing = [checked for checked in safe_forms if checked.error]
    assert len(failing) > 200
    failing = failing[::nth]
    for start in range(0, len(failing), 40):
        batch = failing[start : start + 40]
        frame = rows.selectExpr(
            "*", *(f"if({checked.error}, NULL, xxhash64({hashed(checked)})) AS c{index}" for index, checked in enumerate(batch))
        )
        assert frame.selectExpr(*(f"bit_xor(c{index})" for index in range(len(batch)))).collect()
        assert rows.where(" OR ".join(f"({checked.error})" for checked in batch)).count() > 0


def hashed(checked: Checked) -> str:
    return f"to_json({checked.sql})" if types.holds_map(checked.type) else checked.sql


SELECTS = """
select * from input
select * except (counts, PLACE), i + 1 as i1, upper(s) s2 from input where i < 100
select I, place.FLOOR, place.building as b1, `day` from input where b or not c;
select cast(i as bigint) * 2 as twice, d / e as part, at + interval 1 day as later, texts from input where s like 'a%' and i <> 1000
select case when b then i end as i, coalesce(s, r) as s, n from input where day is not null and l > -5
select null is null as always, 1 as one, 'it''s' as text, r'\\d' `a raw one` from input where d is distinct from e
"""


def test_selects_are_those_of_spark(rows: Any, spark: Any) -> None:
    rows.createOrReplaceTempView("input")
    row_counts = []
    for text in SELECTS.strip().splitlines():
        selected = select(text, TYPES)
        kept_rows = guarded(selected.where).sql if selected.where else "true"
        tried_items = [guarded(item.value) for item in selected.items]
        safe = rows.where(kept_rows).selectExpr(
            *(f"{tried.sql} AS {types.identifier(item.name)}" for item, tried in zip(selected.items, tried_items, strict=True))
        )
        expected = spark.sql(text.rstrip(";"))
        assert [field.dataType.simpleString() for field in expected.schema] == [
            str(item.value.type) for item in selected.items
        ], text
        assert [field.dataType.simpleString() for field in safe.schema] == [str(item.value.type) for item in selected.items], text
        assert [name.lower() for name in expected.columns] == [item.name.lower() for item in selected.items], text
        errors = [tried.error for tried in tried_items if tried.error]
        failed = rows.where(" OR ".join(f"{error} IS NOT NULL" for error in errors) or "false").where(kept_rows).count()
        if failed:
            # One row makes Spark throw; here it fails no other row.
            with pytest.raises(Exception, match=r"(?i)overflow|DIVIDE_BY_ZERO"):
                expected.selectExpr(f"xxhash64({', '.join(map(types.identifier, expected.columns))})").collect()
        else:
            hashes = [
                frame.selectExpr("to_json(struct(*)) AS row").groupBy("row").count()
                for frame in (expected.toDF(*safe.columns), safe)
            ]
            assert hashes[0].exceptAll(hashes[1]).count() == 0, text
            assert hashes[1].exceptAll(hashes[0]).count() == 0, text
        row_counts.append((failed, safe.count()))
    assert any(failed for failed, _ in row_counts)
    assert all(count > 0 for _, count in row_counts)


def test_an_index_that_ends_the_jvm_in_spark_is_an_error(rows: Any) -> None:
    checked = safe("element_at(ints, i)")
    distinct_rows = (
        rows.where("i = -2147483648 AND ints IS NOT NULL").selectExpr(checked.sql, checked.error or "false").distinct().collect()
    )
    assert [tuple(row) for row in distinct_rows] == [(None, True)]


def test_the_largest_expressions_are_read_by_spark(rows: Any) -> None:
    largest = [
        "(" * 23 + "i" + ")" * 23 + " + i" * 40,
        " or ".join(f"i = {number}" for number in range(700)),
        " || ".join(["s"] * 95),
        "case " + " ".join(f"when i = {number} then 'label {number}'" for number in range(200)) + " end",
        "coalesce(" * 22 + "i + 1" + ", 0)" * 22,
    ]
    for text in largest:
        checked = check(text, TYPES)
        assert rows.selectExpr(checked.sql, checked.error or "false").schema[0].dataType.simpleString() == str(checked.type)


def test_accepted_patterns_are_accepted_by_java(spark: Any) -> None:
    """A pattern that is refused costs its author a minute; one that is wrongly accepted ends every batch."""
    draw = random.Random(3)
    pieces = [" ", *PIECES.split()]
    tried = {"".join(draw.choices(pieces, k=draw.randint(1, 7))) for _ in range(30000)}
    accepted = sorted(pattern for pattern in tried if "'" not in pattern and fits(f"s rlike r'{pattern}'"))
    assert len(accepted) > 1000
    frame = spark.createDataFrame([(pattern,) for pattern in accepted], "p string")
    assert (
        frame.selectExpr("count_if('ab-1.é' rlike p) + count_if(regexp_replace('ab', p, 'x') = 'x') AS n").collect()[0]["n"] > 0
    )


@pytest.mark.long
def test_accepted_date_patterns_are_accepted_by_java(spark: Any) -> None:
    draw = random.Random(5)
    parts = [" ", *PARTS.split()]
    tried = {"".join(draw.choices(parts, k=draw.randint(1, 6))) for _ in range(20000)}
    quoted = {pattern: pattern.replace("'", "\\'") for pattern in sorted(tried)}
    print_patterns = [pattern for pattern, text in quoted.items() if fits(f"date_format(at, '{text}')")]
    parse_patterns = [pattern for pattern, text in quoted.items() if fits(f"to_timestamp(s, '{text}')")]
    assert len(print_patterns) > 300
    assert len(parse_patterns) > 300
    frame = spark.createDataFrame([(pattern,) for pattern in print_patterns], "p string")
    assert frame.selectExpr("count(date_format(timestamp'2026-01-05 10:11:12', p)) AS n").collect()[0]["n"] == len(print_patterns)
    frame = spark.createDataFrame([(pattern,) for pattern in parse_patterns], "p string")
    assert (
        frame.selectExpr("count_if(try_to_timestamp('2026', p) IS NULL AND try_to_date('01-05', p) IS NULL) AS n").collect()[0][
            "n"
        ]
        > 0
    )


def fits(text: str) -> bool:
    try:
        check(text, TYPES)
    except ValueError:
        return False
    return True


def chunks(all_samples: list[Sample], size: int) -> Iterator[list[Sample]]:
    for start in range(0, len(all_samples), size):
        yield all_samples[start : start + size]


def compared(rows: Any, batch: list[Sample]) -> list[tuple[str, str]]:
    """The problems of these expressions, all measured in one query."""
    columns, aggregates = [], []
    for index, sample in enumerate(batch):
        comparable = "to_json({})" if types.holds_map(sample.checked.type) else "{}"  # Spark compares no maps
        text, ours = (comparable.format(sql) for sql in (sample.text, sample.checked.sql))
        same = f"try_to_binary(if(({text}) <=> ({ours}), 'a', 'b'), 'utf-8')"
        columns += [
            f"{same} AS same{index}",
            f"{sample.checked.error or 'false'} AS failed{index}",
            f"{sample.rows} AS looked{index}",
        ]
        columns.append(f"xxhash64({ours}) AS safe{index}")
        aggregates += [
            f"bit_xor(safe{index})",
            f"count_if(looked{index} AND same{index} IS NULL AND NOT failed{index}) AS missed{index}",
            f"count_if(looked{index} AND same{index} IS NOT NULL AND failed{index}) AS invented{index}",
            f"count_if(failed{index} IS NULL) AS unknown{index}",
            f"count_if(same{index} = X'62' AND NOT failed{index}) AS different{index}",
        ]
    try:
        counts = rows.selectExpr(*columns).selectExpr(*aggregates).collect()[0].asDict()
    except Exception as error:
        if len(batch) == 1:
            return [(batch[0].text, f"the safe form throws: {str(error)[:300]}")]
        return [problem for sample in batch for problem in compared(rows, [sample])]
    return [
        (sample.text, f"{counts[failure + str(index)]} rows {failure}")
        for index, sample in enumerate(batch)
        for failure in ("missed", "invented", "unknown", "different")
        if counts[failure + str(index)]
    ]
