"""Samples of every operator and function of expressions, over columns of all types."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from framework.base import type_text
from framework.plan import ColumnSql
from framework.sql.expressions import Checked, check, guarded

COLUMNS = {
    "t": "tinyint",
    "h": "smallint",
    "i": "int",
    "j": "int",
    "l": "bigint",
    "k": "bigint",
    "f": "float",
    "d": "double",
    "e": "double",
    "n": "decimal(18,2)",
    "m": "decimal(38,10)",
    "w": "decimal(38,0)",
    "s": "string",
    "r": "string",
    "x": "string",
    "b": "boolean",
    "c": "boolean",
    "day": "date",
    "due": "date",
    "at": "timestamp",
    "till": "timestamp",
    "local": "timestamp_ntz",
    "raw": "binary",
    "ints": "array<int>",
    "texts": "array<string>",
    "lists": "array<array<int>>",
    "counts": "map<string,int>",
    "place": "struct<building:string,floor:int>",
}
TYPES = {name: type_text.parse(text) for name, text in COLUMNS.items()}
PLAIN = {
    "int": ("i", "j", "h"),
    "bigint": ("l", "k", "i"),
    "double": ("d", "e", "f"),
    "string": ("s", "r", "x"),
    "boolean": ("b", "c", "(i > 0)"),
    "date": ("day", "due", "day"),
    "timestamp": ("at", "till", "at"),
    "decimal": ("n", "m", "w"),
    "array": ("ints", "ints", "ints"),
    "binary": ("raw", "raw", "raw"),
}
FAILING = {
    "int": "cast(x as int)",
    "bigint": "(k div j)",
    "double": "(e / d)",
    "string": "texts[j]",
    "boolean": "(j / i > 0)",
    "date": "cast(x as date)",
    "timestamp": "cast(x as timestamp)",
    "decimal": "(m * n)",
    "array": "lists[j]",
    "binary": "cast(texts[j] as binary)",
}
TEMPLATES = """
abs({int}) | abs({bigint}) | abs({double}) | abs(n) | abs(t) | abs(h) | abs(f)
add_months({date}, {int}) | add_months(at, 5) | add_months(day, h)
array({int}, {int}) | array({string}, {string}) | array(i, 2.5) | array(i, l) | array(1, null, i) | array(day, due)
array_contains({array}, {int}) | array_contains(texts, {string})
array_distinct({array}) | array_distinct(texts) | array_max({array}) | array_min(texts) | array_size({array})
array_join(texts, ',') | array_join(texts, {string})
ascii({string}) | base64({binary})
i between {int} and {int} | {string} not between 'a' and 'b' | d between {int} and n
bround({double}, 1) | bround({decimal}, 1) | bround({int}, -1) | bround(d) | bround(w, -0)
cardinality(counts) | cbrt({double}) | ceil({double}) | ceil({decimal}) | ceil({int}) | ceil(f) | ceil(m) | ceil(w)
ceiling(l)
char_length({string}) | length({string}) | length({binary}) | length(s || r)
coalesce({int}, {int}) | coalesce({int}, {decimal}, {bigint}) | coalesce(null, {string}, 'x') | coalesce({date}, at)
nvl({int}, 0)
ifnull({string}, {string}) | nvl2({int}, {int}, {double}) | nullif(i, {int}) | nullif(n, 0) | nullif(s, '')
concat({string}, {string}) | concat({string}) | concat_ws({string}, {string}, {string})
concat_ws(',', texts, {string})
contains({string}, {string}) | startswith({string}, {string}) | endswith({string}, {string})
crc32({binary}) | crc32({string}) | md5({string}) | md5({binary}) | sha2({string}, 256) | sha2(raw, 512)
hex({string}) | hex({int}) | hex({bigint}) | hex({binary})
date_add({date}, {int}) | date_sub({date}, {int}) | date_add(at, 1) | datediff({date}, {date}) | datediff(at, day)
{date} + {int} | {date} - 3
date_format({timestamp}, 'yyyy-MM-dd HH:mm:ss.SSS') | date_format({date}, 'dd/MM/yy EEE a hh') | date_format(at, 'X')
date_format(at, 'yyyy-MM-dd\\'T\\'HH:mmXXX')
date_from_unix_date({int}) | unix_date({date})
day({date}) | dayofmonth({date}) | dayofweek({date}) | dayofyear({date}) | month({date}) | quarter({date})
weekday({date}) | weekofyear({date}) | year({date}) | year(at)
hour({timestamp}) | minute({timestamp}) | second({timestamp}) | hour(day)
element_at({array}, h) | element_at(ints, cast(x as int)) | element_at(counts, {string}) | try_element_at({array}, h)
get({array}, {int}) | get(texts, h) | element_at(ints, -1) | element_at(texts, h)
exp({double}) | ln({double}) | log10({int}) | log2({decimal}) | sqrt({double}) | sqrt(i) | pow({double}, {double})
power(i, n) | sign({int}) | signum(n) | sign(f)
flatten(lists) | floor({double}) | floor({decimal}) | floor(l) | floor(m)
from_unixtime({bigint}) | from_unixtime(i, 'yyyy-MM-dd') | unix_timestamp({timestamp}) | unix_timestamp(day)
greatest({int}, {int}) | greatest({double}, i, n) | least({string}, {string}) | least({date}, at) | greatest(i, n, l)
least(d, f)
if({boolean}, {int}, {bigint}) | if({boolean}, {string}, null) | if(b, i, n)
initcap({string}) | lower({string}) | upper({string}) | trim({string}) | ltrim({string}) | rtrim({string})
reverse({string}) | reverse({array})
instr({string}, {string}) | locate({string}, {string}) | left({string}, {int}) | right({string}, {int})
isnan({double}) | isnan(i) | isnull({int}) | isnotnull({string}) | last_day({date}) | last_day(at)
lpad({string}, 5, {string}) | rpad({string}, 3, '*') | lpad(s, 4)
make_date({int}, {int}, {int}) | make_date(2024, {int}, 29) | make_date(2023, 2, {int})
map_contains_key(counts, {string}) | map_keys(counts) | map_values(counts) | size(counts) | size({array})
sort_array({array}) | sort_array(texts, false)
mod({int}, {int}) | mod({double}, {double}) | mod(n, m) | pmod({int}, {int}) | pmod({double}, {double}) | pmod(l, 7)
pmod(n, i) | pmod(t, h) | pmod(m, n) | negative({int}) | negative(n)
named_struct('a', {int}, 'b', {string})
regexp_extract({string}, '([a-z]+)-([0-9]+)', 2) | regexp_extract(s, '(b)')
regexp_replace({string}, r'\\d+', '<$0>') | regexp_replace(s, '[aeiou]', '') | regexp_like({string}, '^[a-c]')
replace({string}, {string}) | replace({string}, {string}, {string}) | split({string}, ',') | split(s, '[,-]', {int})
substring_index({string}, '-', 2) | substring_index(s, 'b', -1) | translate({string}, {string}, {string})
round({double}, 1) | round({decimal}, 1) | round({int}, -1) | round({bigint}, -2) | round(t, -1) | round(i) | round(d)
round(f, 1) | round(n, -1) | round(m, 3) | round(w) | round(w, 2) | round(h, -3) | round(n, 5)
substr({string}, {int}) | substring({string}, {int}, {int})
timestamp_micros({bigint}) | timestamp_millis({bigint}) | timestamp_seconds({bigint}) | timestamp_seconds(i)
unix_micros({timestamp}) | unix_millis({timestamp}) | unix_seconds({timestamp})
to_date({string}) | to_date(x, 'dd/MM/yyyy') | to_date(at) | to_timestamp({string})
to_timestamp(x, 'yyyy-MM-dd HH:mm:ss') | to_timestamp(day) | to_timestamp(x, 'yyyy-MM-dd\\'T\\'HH:mm:ssX')
try_to_date(x) | try_to_date(x, 'dd/MM/yyyy') | try_to_timestamp({string})
try_to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')
try_add({int}, {int}) | try_subtract({bigint}, {bigint}) | try_multiply({decimal}, {decimal})
try_divide({double}, {double}) | try_mod({int}, {int}) | try_add(d, i) | try_divide(i, 2) | try_add(n, 1)
try_add({timestamp}, interval 1 day)
{int} + {int} | {int} - {int} | {int} * {int} | {int} / {int} | {int} % {int} | {int} div {int} | {double} + {double}
{double} / {double} | {double} % {double}
{decimal} + {decimal} | {decimal} / {decimal} | {decimal} % {decimal} | {bigint} div {bigint} | {bigint} * {bigint}
- {int} | - {bigint} | - {double} | - n | - t | - h | + i | ~ {int}
acos({double}) | acosh({double}) | asin({double}) | asinh({double}) | atan({double}) | atan2({double}, {double}) | atanh({double})
cos({double}) | cosh({double}) | cot({double}) | csc({double}) | degrees({double}) | e() | pi() | expm1({double}) | factorial({int})
hypot({double}, {int}) | log({double}) | log(2, {double}) | log1p({double}) | radians({double}) | rint({double}) | sec({double})
sin({double}) | sinh({double}) | tan({double})
tanh({double}) | width_bucket({double}, 0, 10, 5) | bin({bigint}) | conv({string}, 16, 10)
bit_count({int}) | bit_get({bigint}, 3) | getbit(i, h) | bit_length({string}) | octet_length({string}) | shiftleft({int}, 2)
shiftright({bigint}, {int}) | shiftrightunsigned({int}, 1) | {int} << 3 | {bigint} >> {int} | {int} >>> 1 | positive({int})
nanvl({double}, 0) | nullifzero({int}) | zeroifnull({int}) | zeroifnull(n)
aggregate(ints, 0, (a, x) -> a + x) | aggregate(texts, '', (a, x) -> a || x, a -> length(a)) | reduce(ints, i, (a, x) -> a * x)
array_append(ints, {int}) | array_compact(texts) | array_except(ints, ints) | array_insert(ints, 1, i) | array_insert(ints, h, i)
array_intersect(texts, texts) | array_position(texts, s) | array_prepend(texts, s) | array_remove(ints, i) | array_repeat(s, 3)
array_repeat(i, cast(t as int)) | array_sort(ints) | array_sort(texts, (x, y) -> if(x < y, 1, -1)) | array_union(ints, ints)
arrays_overlap(ints, ints) | exists(texts, x -> x like 'a%') | forall(ints, x -> x > i) | filter(ints, x -> x / i > 1)
filter(texts, (x, n) -> n > 0) | transform(ints, x -> x + 1) | transform(texts, (x, n) -> x || n) | transform(ints, x -> x / i)
transform_keys(counts, (k, v) -> k || s) | transform_values(counts, (k, v) -> v / i) | map_filter(counts, (k, v) -> v > 1)
map_zip_with(counts, counts, (k, v, w) -> v + w) | zip_with(ints, texts, (x, y) -> x || y)
map('a', {int}) | map(coalesce(s, ''), i, 'z', j)
map_concat(counts, counts) | map_entries(counts) | map_from_arrays(array('a', 'b'), array(i, j))
map_from_entries(map_entries(counts)) | sequence(1, t) | sequence(day, date_add(day, 3)) | slice(ints, 1, 2) | slice(ints, h, i)
sequence(at, at + interval 3 hours, interval 1 hour) | str_to_map(s, ',', '-') | str_to_map(s)
btrim({string}) | btrim({string}, 'a') | trim(both 'a' from {string}) | trim(leading {string} from s) | trim(trailing from {string})
char({int}) | chr(t) | character_length({string}) | len({string}) | lcase({string}) | ucase({string}) | elt(2, {string}, {string})
decode(raw, 'utf-8') | decode({int}, 1, 'one', 2, 'two', 'many') | encode({string}, 'utf-8') | find_in_set({string}, 'a,b')
format_number({double}, 2) | format_number(n, '#,##0.0') | format_string('%05d %s', i, s) | printf('%s', {string})
is_valid_utf8({string}) | make_valid_utf8(s) | validate_utf8(s) | try_validate_utf8(s) | levenshtein({string}, {string})
luhn_check({string}) | mask({string}) | overlay({string} placing 'x' from 2 for 1) | position('a' in {string})
position({string}, s) | quote({string}) | regexp_count({string}, '[a-c]') | regexp_extract_all(s, '([a-z])') | regexp_instr(s, 'b')
regexp_substr(s, '[b-d]') | repeat({string}, 2) | repeat(s, t) | sentences({string}) | soundex({string}) | space(3) | space(t)
split_part({string}, ',', 2) | split_part(s, ',', h) | to_char(n, '999.99') | to_number(x, '9999') | to_varchar(i, '99')
try_to_number(x, '9999') | to_binary(s, 'utf-8') | try_to_binary({string}, 'hex') | typeof({int}) | unbase64({string}) | unhex({string})
substring({string} from 2 for 3) | s like 'a/%' escape '/' | s || {int} || day | equal_null(s, r)
url_decode({string}) | try_url_decode(s) | url_encode({string}) | parse_url('https://a.b/c?d=' || s, 'QUERY') | try_parse_url(s, 'HOST')
hash({int}, s) | xxhash64({string}, ints) | sha({string}) | sha1({string}) | octet_length(raw) | int(x) | date(x) | bigint({double})
from_json(s, 'a int, b string') | from_json('{"a": ' || x || '}', 'a double').a | from_csv(x, 'a int, b string') | to_csv(place)
to_json(place) | to_json(counts) | to_json(ints) | get_json_object('{"a": "' || s || '"}', '$.a') | json_array_length(x)
json_object_keys('{"a": 1}') | convert_timezone('Europe/Berlin', 'UTC', local) | from_utc_timestamp({timestamp}, 'Asia/Tokyo')
to_utc_timestamp({timestamp}, 'America/New_York') | date_diff({date}, {date})
xpath('<a><b>' || s || '</b></a>', 'a/b/text()') | xpath_string({string}, 'a') | xpath_double('<a>' || x || '</a>', 'a')
xpath_boolean('<a/>', 'a') | xpath_float('<a>' || x || '</a>', 'a') | xpath_int('<a>' || x || '</a>', 'a') | xpath_long({string}, 'a')
xpath_number('<a>' || x || '</a>', 'a') | xpath_short('<a>' || x || '</a>', 'a') | from_xml('<r><a>' || x || '</a></r>', 'a int, b string')
to_xml(place) | schema_of_json('{"a": 1}') | schema_of_csv('1,x') | schema_of_xml('<r><a>1</a></r>')
variant_get(parse_json({string}), '$.a', 'int') | variant_get(parse_json('{"a": ' || x || '}'), '$.a', 'int')
try_variant_get(try_parse_json(x), '$', 'string') | variant_get(parse_json('{"a": [' || x || ', 1]}'), '$.a[0]', 'double')
is_variant_null(try_parse_json(x)) | schema_of_variant(parse_json(x)) | to_json(try_parse_json(x))
variant_get(to_variant_object(place), '$.building', 'string') | to_json(to_variant_object(counts)) | to_json(to_variant_object(ints))
variant_get(to_variant_object(place), '$', 'struct<building: string, floor: int>') | variant_get(parse_json(x), '$', 'timestamp')
arrays_zip(ints, texts) | arrays_zip(texts, lists) | if({boolean}, {int}, raise_error('no'))
coalesce({string}, raise_error('no')) | bitmap_bit_position({bigint}) | bitmap_bucket_number({bigint}) | bitmap_count(raw)
hll_sketch_estimate(raw) | hll_union(raw, raw)
theta_sketch_estimate(raw) | theta_union(raw, raw) | theta_union(raw, raw, 12) | theta_difference(raw, raw) | theta_intersection(raw, raw)
kll_sketch_get_n_bigint(raw) | kll_sketch_get_n_double(raw) | kll_sketch_get_n_float(raw) | kll_sketch_to_string_bigint(raw)
kll_sketch_to_string_double(raw) | kll_sketch_to_string_float(raw) | kll_sketch_get_quantile_bigint(raw, 0.5)
kll_sketch_get_quantile_double(raw, 0.5) | kll_sketch_get_quantile_float(raw, 1) | kll_sketch_get_rank_bigint(raw, 5)
kll_sketch_get_rank_double(raw, 0.5) | kll_sketch_get_rank_float(raw, 5) | hll_sketch_estimate(unhex('0201070403000108CBD7C204' || x))
theta_sketch_estimate(unhex('01030300003ACC93E56B61EEC8804420')) | kll_sketch_get_n_bigint(unhex('02020F04C80008000700000000000000'))
{string} like any ('a%', '%b') | {string} not like all ('a%', '%b') | s not like any ('a%', '%b')
s ilike all ('%A%', 'b%') | {string} ilike any ('A%') | {string} rlike '(?i)^A'
datediff(month, day, due) | dateadd(day, {int}, {timestamp})
dateadd(day, 1) | timestampadd(hour, t, at) | timestampdiff(minute, at, till) | dayname({date}) | monthname({date})
extract(year from {timestamp}) | date_part('week', {date})
datepart('second', at) | extract(day from due - day) | extract(hour from at - till)
make_dt_interval(1, t) * 2 + at | make_ym_interval(1, t) + at | make_timestamp(2026, t, 1, 2, 3, 4.5)
make_timestamp_ltz(2026, t, 1, 2, 3, 4.5) | make_timestamp_ntz(2026, t, 1, 2, 3, 4.5) | months_between({date}, {date})
try_make_timestamp(2026, {int}, 1, 0, 0, 0) | try_make_timestamp_ltz(2026, t, 1, 0, 0, 0) | try_make_timestamp_ntz(2026, t, 1, 0, 0, 0)
next_day({date}, 'MON') | to_timestamp_ltz({string}) | to_timestamp_ntz(x) | to_unix_timestamp({timestamp}) | {timestamp} > '2026-01-01'
day = '2026-01-05' | day in ('2026-01-05', '2026-01-06') | at + interval '1 day 2 hours'
at - interval '1-2' year to month | due - day > interval 1 day
{bigint} div -1 | {bigint} div 10 | i div 0 | t div h | i % 7 | d / 2 | i / 0 | n / 3 | n % 2 | l % -1 | i * 2.5
i + 1Y
{int} & {int} | i \\ l | t ^ h | ~ l | {string} || {string}
{int} = {int} | {int} <> {bigint} | {double} < {int} | {decimal} <= {int} | {string} > {string}
{boolean} >= {boolean} | {int} <=> {int} | {date} < {timestamp} | {timestamp} >= date'2026-01-05' | raw = raw
ints = ints | place = place | n = w | m < d | day != due | f == d
{int} is distinct from {int} | {int} is not distinct from {bigint} | b is true | {boolean} is not false
{boolean} is unknown | {int} is null | {string} is not null
{int} in (1, 2, {int}) | {int} not in ({int}, {int}) | s in ('a', r) | i in (n, 2.5) | d in (i, 1)
day in (date'2026-01-05', due) | {bigint} in (1)
{string} like 'a%' | {string} not like '%\\\\%%' | {string} ilike 'AB_' | {string} rlike '^[a-z]+$' | s regexp 'x|y'
{boolean} and {boolean} | {boolean} or {boolean} | {boolean} and {boolean} or {boolean} | not {boolean}
{boolean} or not ({boolean} and {boolean}) | b and c and {boolean} and b | b or c or {boolean}
case when {boolean} then {int} when {boolean} then {bigint} else {int} end | case when {boolean} then {string} end
case {int} when {int} then 'a' when {int} then 'b' else {string} end | case when b then i when c then n else 2.5 end
{timestamp} + interval 1 day | {timestamp} - interval '90' minutes | {timestamp} + interval 2 months
{date} + interval 1 week | {date} - interval 1 year | {date} + interval 5 hours | interval 3 seconds + at
day - interval -2 days
place.building | place.FLOOR + 1 | ints[{int}] | ints[h] | counts[{string}] | lists[i][j] | texts[t]
i + 1 > 5 and s like 'a%' or not b | -i * j + 3 - k / 2 | (i + j) * (i - j) | coalesce(cast(x as int), i + 1, 0)
if(j <> 0, i / j, 0) | case when j = 0 then 0 else i div j end
upper(trim(s)) || '-' || lower(texts[0]) | round(d / e, 2) > n | cast(x as decimal(10,2)) * 2 | abs(i) + abs(j)
-(-i) | - -5 + i | -2147483648 + i | 1.5 + i | 0.01 * n | 1e3 * i | 5. * n | .5 + i | 3L * i | 7S + t | 2.5BD + f
1.5F * i | 12345678901 + l | 99999999999999999999 + n
"""
EDGES = {
    "first year of the calendar": (
        "coalesce(year(at), 0) <> -290308 and coalesce(year(till), 0) <> -290308 and coalesce(year(day), 0) > -290308",
        [
            f"date_trunc('{unit}', {{timestamp}})"
            for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "millisecond", "microsecond")
        ]
        + ["date_trunc('day', day)"],
    ),
    "first year of dates": (
        "coalesce(year(day), 0) between -5877639 and 5881578 and coalesce(year(due), 0) between -5877639 and 5881578",
        [f"trunc({{date}}, '{unit}')" for unit in ("year", "quarter", "month", "week")] + ["trunc(at, 'mm')"],
    ),
    "not a number becomes a bad row": (
        "coalesce(abs(d), 0) < double('infinity') and coalesce(abs(f), 0) < double('infinity')",
        [f"cast({name} as {type})" for name in "df" for type in ("decimal(18,2)", "decimal(38,0)", "decimal(5,5)")],
    ),
}


@dataclass(frozen=True)
class Sample:
    """An expression, and where `error` may be true only because Spark throws."""

    text: str
    checked: Checked
    rows: str = "true"


def variants(template: str) -> Iterator[str]:
    """Yields the template on plain columns, and once more for every argument that may itself fail."""
    kinds = re.findall(r"\{(\w+)\}", template)
    for failing in (None, *range(len(kinds))):
        used: dict[str, int] = {}
        fills = []
        for index, kind in enumerate(kinds):
            used[kind] = used.get(kind, -1) + 1
            fills.append(FAILING[kind] if index == failing else PLAIN[kind][min(used[kind], 2)])
        text = template
        for fill in fills:
            text = re.sub(r"\{\w+\}", lambda _, fill=fill: fill, text, count=1)  # type: ignore[misc]
        yield text


def templates() -> list[str]:
    # `|` separates samples, so the operator `|` is written `\` above.
    texts = [sample.strip().replace(" \\ ", " | ") for line in TEMPLATES.strip().splitlines() for sample in line.split(" | ")]
    return [text for text in texts if text]


def pairs() -> Iterator[str]:
    """Arithmetic and comparison over all pairs of numeric types, and every cast that is allowed."""
    numbers = ["t", "h", "i", "l", "f", "d", "n", "m", "w", "2", "2.5", "3L"]
    for first_operand, second_operand in itertools.product(numbers, numbers):
        if first_operand.isalpha() or second_operand.isalpha():
            for operator in "+-*/%":
                yield f"{first_operand} {operator} {second_operand}"
            yield f"coalesce({first_operand}, {second_operand})"
            yield f"{first_operand} < {second_operand}"
    sources = ["t", "h", "i", "l", "f", "d", "n", "m", "w", "s", "x", "b", "day", "at", "local", "raw"]
    names = [
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal(18,2)",
        "decimal(38,0)",
        "decimal(5,5)",
        "string",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "binary",
    ]
    for source, name in itertools.product(sources, names):
        if source in "fd" and name.startswith("decimal"):
            continue
        for form in ("cast", "try_cast"):
            try:
                check(f"{form}({source} as {name})", TYPES)
            except ValueError:
                continue
            yield f"{form}({source} as {name})"


def samples() -> list[Sample]:
    texts = [text for template in templates() for text in variants(template)]
    all_samples = [Sample(text, safe(text)) for text in dict.fromkeys([*texts, *pairs()])]
    for rows, edge in EDGES.values():
        all_samples += [Sample(text, safe(text), rows) for template in edge for text in variants(template)]
    return all_samples


def safe(text: str) -> Checked:
    """The expression in a form that never throws; its error is a condition."""
    tried = guarded(check(text, TYPES))
    return replace(tried, error=ColumnSql(f"{tried.error} IS NOT NULL", tried.sql.reads)) if tried.error else tried
