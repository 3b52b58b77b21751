"""Attacks on the allow-list: whatever goes in, only allowed SQL comes out."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping

import pytest

from framework.base.type_text import parse
from framework.base.types import Type
from framework.sql import casts, functions, grammar
from framework.sql.expressions import Checked, ExpressionError, check
from framework.sql.select import select
from framework.sql.special_syntax import UNITS
from framework.sql.tokens import tokens
from framework.sql.tree import Call, Column, Lambda, Literal, walk
from tests.support.expression_samples import TYPES, samples, templates, variants
from tests.support.time_limits import bar

pytestmark = pytest.mark.slow

COLUMNS = {
    name: parse(text)
    for name, text in {
        "a": "string",
        "b": "string",
        "n": "int",
        "d": "double",
        "p": "boolean",
        "at": "timestamp",
        "texts": "array<string>",
        "place": "struct<building string, floor int>",
        "odd ` name": "int",
    }.items()
}

# What guards call besides.
OURS = {"raise_error"}

SUBQUERIES = [
    "(select 1)",
    "( select 1)",
    "((select 1))",
    "a in (select 1)",
    "a not in (select b from t)",
    "exists (select 1)",
    "not exists(select 1 from t)",
    "n = (with t as (select 1) select * from t)",
    "n = (values 1)",
    "n = (table t)",
    "n = (from t)",
    "n > all (select 1)",
    "n = any (select 1)",
    "n = some (select 1)",
    "array(select 1)",
    "scalar(select 1)",
    "case when (select true) then 1 end",
    "(n, n) in (select 1, 2)",
    "upper((select 'a'))",
    "lateral (select 1)",
]
# Between two of them stand two spaces, or a line ends.
ATTACKS = r"""
reflect('java.lang.System', 'getenv', a)  java_method('java.lang.System', 'exit', 1)  try_reflect('a', 'b')  Reflect('a', 'b')
input_file_name()  input_file_block_start()  read_files('s3://a')  binary_file(a)  parquet(a)  current_user()  current_user
session_user()  session_user  user()  user  current_database()  current_schema()  current_catalog()  current_timezone()  version()
uuid()  rand()  rand(1)  randn(1)  random()  randstr(5)  uniform(1, 2)  shuffle(texts)  now()  current_timestamp()
current_timestamp  current_date()  current_date  current_time()  localtimestamp()  localtimestamp  curdate()  unix_timestamp()
spark_partition_id()  monotonically_increasing_id()  assert_true(p)  assert_true(p, a)  raise_error(a)
aes_encrypt(a, b)  aes_decrypt(a, b)  try_aes_decrypt(a, b)  secret('a', 'b')  try_secret('a', 'b')  ai_query(a, b)  http_request(a)
sequence(1, 1000000000)  repeat('x', 1000000000)  space(1000000000)  array_repeat('x', 1000000000)  lpad(a, 1000000000, 'x')
rpad(a, 10001)  lpad(a, -1)
format_string('%1000000000d', n)  printf('%1000000000s', a)  format_number(d, 1000000000)  stack(1000000000, n)
explode(texts)  explode_outer(texts)  posexplode(texts)  inline(texts)  json_tuple(a, 'b')  range(10)
from_avro(a, b)  from_protobuf(a, b)  xpath(a, b)  xpath_string(a, upper('x'))  from_xml(a, b)
parse_json(a)  array(parse_json(a))  variant_get(a, '$', 'int')  variant_get(parse_json(a), 'a', 'int')
variant_get(parse_json(a), b, 'int')  variant_get(parse_json(a), '$.a', 'variant')  variant_get(parse_json(a), '$.a', b)
hash(parse_json(a))  parse_json(a) = parse_json(b)
array_contains(array(parse_json(a)), parse_json(b))  cast(parse_json(a) as int)  collate(a, 'UTF8_LCASE')  collation(a)
kll_sketch_merge_bigint(binary(a), binary(a))  kll_sketch_get_quantile_bigint(binary(a), d)  kll_sketch_get_quantile_bigint(binary(a), 1.5)
theta_union(binary(a), binary(b), n)  theta_union(binary(a), binary(b), 40)  approx_top_k_estimate(place)  st_geomfromwkb(binary(a))
make_interval(n)  to_time(a)  make_time(1, 2, 3)  sql_keywords()  python_worker_logs()


upper(a -> a)
window(at, '1 day')  session_window(at, '1 day')  lag(a)  row_number()  ntile(2)  sum(n)  count(*)  count(1)  max(n)  first(a)
any(p)  every(p)  some(p)  collect_list(a)  listagg(a)  try_sum(n)  grouping(a)  sum(n) filter (where p)  count(distinct a)
upper(distinct a)  upper(all a)  upper(a) over ()  upper(a) over w  upper(a) filter (where p)  upper(a) respect nulls
nth_value(a, 1) ignore nulls  percentile(n, 0.5) within group (order by n)  identifier('a')  identifier(a)
identifier('up' || 'per')(a)  upper(str => a)  substring(a, pos => 1)  `upper`(a)  `reflect`(a)  "upper"(a)  'upper'(a)
system.builtin.upper(a)  system.builtin.reflect('a', 'b')  spark_catalog.default.f(a)  builtin.upper(a)  a.upper()  place.upper(a)
`system`.`builtin`.`reflect`(a)  upper (a)(b)  upper(a)()  place.building(a)  {fn upper(a)}  {d '2026-01-01'}  ?  :a  :1  @a  @@version
$a  $1  a:b  a:['b']  a::variant  a ->> b  a #> b  n ** 2  n // 2  n ~~ 1  a ~ b  a rlike any ('a')
a like all ()  a like any (select 1)  a like any ('a', b)  a similar to 'a'  n between symmetric 1 and 2
execute immediate 'select 1'  execute immediate a  set x = 1  declare x int  begin end  call f()  use a  drop table a
insert into a values (1)  values (1)  table a  select a  explain a  ;  a;  ;a  a; select 1  a union select 1  *  a.*  place.*  upper(*)
coalesce(*)  struct(*)  all a  distinct a  a as b  a b  (a, b)  (n, n) = (1, 2)  row(a)  ()  upper(a,)  upper(,a)
-- a  a -- b  /* a */ a  a /* b */  /*+ broadcast(a) */ a  a /* /* */ */  # a  a // b  a --
at + interval n day
at + interval '1' day day  at + interval 1.5 day  at + interval 1000000000 year
cast(a as int) collate x  a collate UTF8_LCASE  cast(a as char(3))  cast(a as interval day)  cast(a as variant)  cast(a as void)
cast(a as string collate UTF8_LCASE)  cast(a as struct<x: int>)  cast(a as date format 'x')  convert(a, int)  cast(a as `int`)
cast(a as int) as b  cast(a as int, b)  cast(a int)  cast(a as decimal(39, 0))  cast(a as decimal(1000000000000))  a::int::strng
X'41'  B'1'  N'a'  U&'a'  E'a'  u'a'  _utf8'a'  time'10:00'  timestamp_ltz'2026-01-01 00:00:00'  decimal'1'  binary'a'  int'1'
'a' 'b'  r'a' 'b'  'a' r'b'  r'a''b'  "a"  'a' "b"  1'a'  a'b'  date'2026-01-01' 'b'  date'tomorrow'  date'now'
timestamp'now'  timestamp'epoch'  timestamp'2026-01-01 00:00:00 Europe/Berlin'  timestamp'2026-01-01 00:00:00+19:00'
1e400  -1e400  1e39f  1e-99999  1e99999999999999999999  1e400d  1e99999bd  1e-99999bd  128y  32768s  9223372036854775808l  1.5l
0x1F  1_000  1e  1e+  1.2.3  1..2  1dd  1ll  1bdbd  99999999999999999999999999999999999999999  1a  1.a  .5.5
"""
ODD = [
    "upper\u200b(a)",
    "up\u00adper(a)",
    "\ufeffa",
    "a\u2060",
    "a\u00a0",
    "\u2028a",
    "\u0430",
    "ａ",
    "uррer(a)",
    "ｕｐｐｅｒ(a)",
    "a\u0000",
    "a\x1b[31m",
    "a\u202e",
    "'\u202eb'",
    "'\u2066b\u2069'",
    "'a\x00b'",
    "'a\x85b'",
    "`a\u200b`",
    "`\u202ea`",
    "a \u2013 b",
    "‘a’",
    "“a”",
    "a \uff1b b",
    "n \u2212 1",
    "n \u00d7 2",
    "n ≠ 1",
    "\u0661",
    "1\u0661",
    "'\ud800'",
    "a\x0b",
    "a\x0c b",
    r"\u0061",
    r"'\x27'",
    r"'\047'",
    r"'\0'",
    r"'\Z'",
    r"'\b'",
    r"'\a'",
    "'\\\n'",
    "'a\\'",
    r"'a\\\'",
    "r'a\\' b'",
    "'''",
    "'a''",
    "'a'''b'",
    "`a",
    "``",
    "`a``",
    "`a`b`",
    "`a.b`",
    "a``",
    "'${env:HOME}'",
    "'${spark.app.name}'",
    "r'${system:user.home}'",
    "`${env:HOME}`",
    "'a' || '$${env:HOME}'",
    "\ue000",
    "\U000e0041",
]


DEEP = [
    "(" * 200 + "n" + ")" * 200,
    "(" * 100_000 + "n" + ")" * 100_000,
    "(" * 9_999,
    ")" * 9_999,
    "[" * 9_999,
    "upper(" * 1_600,
    "- " * 4_999 + "n",
    "~" * 9_000 + "n",
    "not " * 2_400 + "p",
    "!" * 9_000 + "p",
    "case when p then " * 580,
    "case " * 1_900,
    "if(p, " * 1_500,
    "a || " * 1_900 + "a",
    "n + " * 2_400 + "n",
    "place" + ".building" * 1_000,
    "texts" + "[0]" * 3_000,
    "n" + "::int" * 1_900,
    "cast(" * 1_900,
    "cast(a as " + "array<" * 1_600,
    "cast(a as " + "struct<x: " * 900,
    "n in (" * 1_600,
    "n between " * 900,
    "n is null " * 900,
    "n = " * 2_400 + "n",
    "x" * 9_999,
    "`" + "x" * 9_990 + "`",
    "x" * 100_000,
    "'" + "x" * 100_000 + "'",
    "1" * 9_999 + "a",
    "1" * 9_999,
    "." * 9_999,
    "'" * 9_999,
    "''" * 4_999 + "'",
    "'" + r"\'" * 4_990,
    "`" * 9_999,
    "r'" * 4_999,
    "a " * 4_999,
    "${" * 4_999,
    "p and (" * 1_400,
    "p or p and " * 900,
    "/*" * 4_999,
    "-" * 9_999,
    "upper(" + "a, " * 3_300 + "a)",
    "upp" * 3_300 + "(a)",
]


def attacks() -> list[str]:
    return [attack for line in ATTACKS.splitlines() for attack in line.split("  ") if attack]


def accepted(text: str, columns: Mapping[str, Type] = COLUMNS) -> Checked | None:
    try:
        return check(text, columns)
    except ExpressionError as error:
        bad_faults = [fault for fault in error.faults if not (0 <= fault.offset <= len(text) and fault.code and fault.message)]
    assert not bad_faults
    return None


@pytest.mark.parametrize("text", [*SUBQUERIES, *attacks(), *ODD], ids=ascii)
def test_attacks_are_refused(text: str) -> None:
    assert accepted(text) is None
    # Nor does it get in as a part of something that is allowed, or of a select.
    assert accepted(f"upper({text})") is None
    assert accepted(f"coalesce(1, {text})") is None
    with pytest.raises(ExpressionError):
        select(f"select {text} as result from input", COLUMNS)
    with pytest.raises(ExpressionError):
        select(f"select n from input where {text}", COLUMNS)


def test_attacks_are_refused_with_the_right_code() -> None:
    """The list above would prove nothing if its columns or literals were wrong: what it is made of is accepted."""
    for text in (
        "upper(a)", "upper (a)", "a || b", "texts[0]", "place.building", "unix_timestamp(at)", "lpad(a, 10000, 'x')", "rpad(a, 3)",
        "at + interval '1' day", "cast(a as decimal(38, 0))", "a::int::string", "r'a' || 'b'", "a like 'a'", "n between 1 and 2",
        "date'2026-01-01'", "timestamp'2026-01-01 00:00:00+18:00'", "1e308", "3.4e38f", "1e-9999", "127y", "1e37bd", "not p",
        r"'\u0027 || a || \u0027'", "substring(a, 1, 2)", "count.a", "coalesce(1, n)", "`odd `` name`",
    ):  # fmt: skip
        columns = COLUMNS | {"count": parse("struct<a: int>")}
        assert harmful(text, check(text, columns)) == []


@pytest.mark.parametrize("text", DEEP, ids=[f"{text[:12]}… {len(text)}" for text in DEEP])
@pytest.mark.timed
def test_deep_and_long_expressions_are_refused_at_once(text: str) -> None:
    started = time.process_time()
    assert accepted(text) is None
    with pytest.raises(ExpressionError):
        select(f"select {text} as result from input", COLUMNS)
    assert time.process_time() - started < bar(1)


def test_the_sql_holds_only_allowed_functions() -> None:
    for sample in samples():
        assert harmful(sample.text, check(sample.text, TYPES)) == []


def test_pieces_of_samples_in_any_order_come_out_harmless() -> None:
    draw = random.Random(17)
    texts = [text for template in templates() for text in variants(template)]
    foreign_pieces = [
        "select",
        "reflect",
        "--",
        ";",
        "'",
        "`",
        "(",
        ")",
        "->",
        "$",
        "${",
        "::",
        "\\",
        "exists",
        "rand",
        "over",
        "as",
        "\u202e",
    ]
    accepted_count = 0
    for _ in range(8000):
        first_words, second_words = draw.choice(texts).split(" "), draw.choice(texts).split(" ")
        words = first_words[: draw.randint(0, len(first_words))] + second_words[draw.randint(0, len(second_words)) :]
        if draw.random() < 0.3:
            words.insert(draw.randint(0, len(words)), draw.choice(foreign_pieces))
        text = " ".join(words)
        checked = accepted(text, TYPES)
        accepted_count += checked is not None
        assert checked is None or harmful(text, checked) == []
    assert accepted_count > 1000


def harmful(text: str, checked: Checked) -> list[str]:
    """The parts of the resulting SQL besides allowed functions, words of the grammar, used columns, and literals."""
    problems: list[str] = []
    expression = grammar.parse(text)
    allowed_texts = {token.value for token in tokens(text) if token.kind == "string"}
    allowed_texts |= {node.value for node, _ in walk(expression) if isinstance(node, Literal)}
    lambdas = {name for node, _ in walk(expression) if isinstance(node, Lambda) for name in node.parameters} | {"k", "e"}
    allowed_texts |= {number for value in allowed_texts for number in re.findall(r"-?[0-9.]+", value)}  # of intervals
    sql = checked.sql.replace(f"RLIKE {casts.ENDLESS}", "IS NULL")
    sql = GUARD.sub("NULL", sql)
    sql = re.sub(r" AS array<struct<[^()]*>>\)", " AS string)", sql)  # of arrays_zip
    words = tokens(sql)
    allowed_texts |= {"<!DOCTYPE"}  # the guard of XML
    allowed_texts |= {parse(value).sql for value in allowed_texts if value.startswith("struct<")}  # of variant_get
    allowed_texts |= {
        parse(f"struct<{value}>").sql for value in allowed_texts if re.fullmatch(r"a \w+(, b \w+)?", value)
    }  # of from_json
    problems += [
        word.text for word in words if word.kind == "string" and word.value not in allowed_texts and not word.value.isalpha()
    ]
    problems += [word.text for word in words if word.kind == "mark" and word.text in (";", "=>", "?", ":", "::")]
    for node, _ in walk(grammar.parse(sql)):
        if isinstance(node, Call) and node.name not in functions.names() | {"timestampadd", "timestampdiff"}:
            problems.append(node.name)
        if isinstance(node, Column) and node.name not in checked.sql.reads | lambdas and node.name.lower() not in UNITS:
            problems.append(node.name)
    return problems


GUARD = re.compile(r"raise_error\('[A-Za-z _]+'\)")
