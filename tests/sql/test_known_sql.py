"""SQL that analysts know from elsewhere is accepted, or refused with what to write instead."""

from __future__ import annotations

import re

import pytest

from framework.sql.expressions import ExpressionError, check
from tests.support.sql_columns import MORE_COLUMNS

KNOWN_SQL = r"""
lcase(s)  ;  ucase(s)  ;  len(s)  ;  mid(s, 1, 2)  ;  left(s, 2)  ;  right(s, 2)  ;  split_part(s, ',', 1)
position('a' in s)  ;  position('a', s)  ;  charindex('a', s)  ;  starts_with(s, 'a')  ;  repeat(s, 3)  ;  btrim(s)
trim(both ' ' from s)  ;  trim(leading '0' from s)  ;  substring(s from 2 for 3)  ;  substr(s from 2)
format_string('%s-%d', s, i)  ;  regexp_count(s, '[0-9]+')  ;  regexp_extract_all(s, '([0-9]+)', 1)  ;  extract(year from t)
extract(hour from t)  ;  extract(dow from d)  ;  date_part('month', d)  ;  dayname(d)  ;  months_between(t, t)
next_day(d, 'MON')  ;  dateadd(day, 1, t)  ;  dateadd('day', 1, t)  ;  date_diff(d, d)  ;  timestampadd(hour, 1, t)
timestampdiff(minute, t, t)  ;  make_timestamp(2026, 1, 1, 0, 0, 0)  ;  from_utc_timestamp(t, 'Europe/Berlin')
to_utc_timestamp(t, 'Europe/Berlin')  ;  convert_timezone('Europe/Berlin', 'UTC', u)  ;  unix_timestamp(s, 'yyyy-MM-dd')
interval '1 day' + t  ;  t + interval '1' day  ;  t + interval '1 day 2 hours'  ;  d = '2026-01-05'
t >= '2026-01-05 10:00:00'  ;  d between '2026-01-01' and '2026-01-31'  ;  log(n)  ;  log(10, n)  ;  sin(n)  ;  cos(n)
tan(n)  ;  conv(s, 16, 10)  ;  bin(l)  ;  hash(s, i)  ;  xxhash64(s)  ;  sha1(s)  ;  unbase64(s)  ;  encode(s, 'utf-8')
decode(raw, 'utf-8')  ;  url_decode(s)  ;  parse_url(s, 'HOST')  ;  get_json_object(s, '$.a')  ;  from_json(s, 'a int')
to_json(place)  ;  variant_get(parse_json(s), '$.a', 'int')  ;  array_append(list, 'a')  ;  slice(list, 1, 2)
sequence(1, 5)  ;  struct(s, i)  ;  struct(s as a)  ;  map('a', i)  ;  map_concat(codes, codes)
transform(list, x -> upper(x))  ;  filter(list, x -> x like 'a%')  ;  aggregate(ints, 0, (a, x) -> a + x)
exists(list, x -> x = 'a')  ;  zip_with(list, list, (a, b) -> a || b)  ;  transform_values(codes, (k, v) -> v + 1)  ;  int(s)
string(i)  ;  double(s)  ;  date(t)  ;  timestamp(s)  ;  decimal(s)  ;  boolean(s)  ;  iff(b, 1, 2)  ;  iif(b, 1, 2)
nullifzero(i)  ;  zeroifnull(i)  ;  equal_null(s, r)  ;  concat(s, i)  ;  concat(i, i)  ;  s || i  ;  i || i
s like any ('a%', 'b%')  ;  s like all ('a%', '%b')  ;  s not like any ('a%', 'b%')  ;  s ilike any ('a%', 'b%')
s rlike '(?i)abc'  ;  regexp_like(s, '(?i)abc')  ;  regexp_replace(s, '(?i)a', 'b')  ;  s in ('a', 'b')
date_trunc('month', t)  ;  trunc(d, 'MM')  ;  to_char(t, 'yyyy')  ;  to_char(i, '999')  ;  to_date(s, 'yyyy-MM-dd')
try_to_date(s)  ;  ifnull(s, 'a')  ;  nvl2(s, 1, 2)  ;  isnull(s)  ;  coalesce(s, 'a')  ;  decode(i, 1, 'a', 2, 'b', 'c')
greatest(i, 2)  ;  least(i, l)  ;  i / 0  ;  i % 3  ;  mod(i, 3)  ;  i div 2  ;  power(n, 2)  ;  round(n, 2)  ;  round(n)
ceil(n)  ;  ceil(p, 1)  ;  width_bucket(n, 0, 10, 5)  ;  t::date  ;  s::int  ;  cast(s as decimal(10, 2))
try_cast(s as int)  ;  safe_cast(s as int)  ;  to_number(s, '999')  ;  initcap(s)  ;  lpad(s, 5)  ;  lpad(s, 5, '0')
translate(s, 'a', 'b')  ;  soundex(s)  ;  levenshtein(s, r)  ;  md5(s)  ;  sha2(s, 256)  ;  crc32(s)  ;  ascii(s)  ;  chr(i)
concat_ws(',', s, r)  ;  concat_ws(',', list)  ;  array_join(list, ',')  ;  split(s, ',')  ;  split(s, ',')[0]
element_at(list, 1)  ;  list[0]  ;  codes['a']  ;  place.floor  ;  size(list)  ;  cardinality(list)
array_contains(list, 'a')  ;  array_sort(list)  ;  array_position(list, 'a')  ;  arrays_zip(list, ints)
arrays_overlap(list, list)  ;  flatten(array(list, list))  ;  map_keys(codes)  ;  map_entries(codes)
map_from_entries(map_entries(codes))  ;  named_struct('a', s)  ;  array('a', s)  ;  datediff(day, d, d)  ;  datediff(d, d)
date_add(d, 1)  ;  d + 1  ;  add_months(d, 1)  ;  last_day(d)  ;  quarter(d)  ;  weekofyear(d)  ;  dayofweek(d)  ;  hour(t)
from_unixtime(l)  ;  to_timestamp(l)  ;  timestamp_seconds(l)  ;  timestamp_millis(l)
to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')  ;  date_format(t, 'yyyy-MM-dd')  ;  str_to_map(s, ',', ':')  ;  json_array_length(s)
json_object_keys(s)  ;  schema_of_json('{"a": 1}')  ;  xpath_string(s, 'a/b')  ;  case when i > 0 then 'a' else 'b' end
case s when 'a' then 1 end  ;  not b  ;  b and not b  ;  b is true  ;  s is distinct from r  ;  s <=> r  ;  ~i  ;  i & 1
i << 2  ;  shiftleft(i, 2)  ;  bit_count(i)  ;  typeof(s)  ;  if(i > 0, i, raise_error('i is not positive'))  ;  nullif(s, '')
isnan(n)  ;  format_number(n, 2)  ;  s || null  ;  `s`  ;  date '2026-01-05'  ;  timestamp '2026-01-05 10:00:00'
make_dt_interval(1) + t  ;  to_timestamp_ntz(s)  ;  regexp_substr(s, 'a')  ;  regexp_instr(s, 'a')  ;  instr(s, 'a')
locate('a', s)  ;  replace(s, 'a', 'b')  ;  reverse(s)  ;  space(3)  ;  overlay(s placing 'x' from 2)  ;  contains(s, 'a')
endswith(s, 'a')  ;  find_in_set('a', s)  ;  elt(1, s, r)  ;  sentences(s)  ;  to_binary(s, 'hex')  ;  hex(i)  ;  unhex(s)
date_from_unix_date(i)  ;  unix_date(d)  ;  try_divide(i, 0)  ;  try_element_at(list, 1)  ;  monthname(d)  ;  dayofyear(d)
is_variant_null(parse_json(s))
"""
REFUSED = {
    "extract(epoch from t)": "unix_timestamp(t)",
    "week(d)": "weekofyear(d)",
    "t - t": "timestampdiff(second, t, t)",
    "d - d": "datediff(d, d)",
    "parse_json(s)": "variant_get(parse_json(s), '$.a', 'int')",
    "variant_get(s, '$.a', 'int')": "variant_get(parse_json(s), '$.a', 'int')",
    "s ~ 'a'": "s rlike '[0-9]+'",
    "s similar to 'a%'": "s rlike '[0-9]+'",
    "date_trunc(month, t)": "date_trunc('month', t)",
    "trunc(n)": "cast(n as bigint)",
    "div0(n, i)": "if(i = 0, 0, n / i)",
    "n ^ 2": "pow(n, 2)",
    "truncate(n, 2)": "cast(n * 100 as bigint) / 100",
    "codes.a": "codes['a']",
    "assert_true(b)": "if(n > 0, n, raise_error('n is not positive'))",
    "make_interval(1)": "make_dt_interval(1, 2) + t",
    "field(s, 'a', 'b')": "case s when 'a' then 1 when 'b' then 2 else 0 end",
    "interval 1 day": "t + interval 1 day",
    "(s, i) in (('a', 1))": "s = 'a' and i = 1",
    "i between symmetric 1 and 2": "i between 1 and 2",
    "now()": "t",
    "rand()": "i",
}
"""An expression, and what the hint says to write."""


def test_what_analysts_know_is_taken() -> None:
    written = [text.strip() for line in KNOWN_SQL.strip().splitlines() for text in line.split("  ;  ")]
    assert len(written) > 200
    for text in written:
        check(text, MORE_COLUMNS)


@pytest.mark.parametrize(("text", "instead"), REFUSED.items())
def test_what_is_refused_has_a_replacement_that_works(text: str, instead: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        check(text, MORE_COLUMNS)
    check(instead, MORE_COLUMNS)
    words = re.findall(r"[a-z_]{3,}|= 'a'|\w+ = 0", instead)
    assert any(word in caught.value.hint for word in words) or "_event_time" in caught.value.hint or "[" in instead, (
        caught.value.hint
    )
